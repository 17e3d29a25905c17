#include "credit_queues.hpp"
#include "packet/transports/host_transport.hpp"
#include "shared_buffers.hpp"

namespace orrery::network {

std::unique_ptr<QueueDiscipline> make_queues(const NodeServices& services) {
  if (services.system.rules.uses_credits) return std::make_unique<CreditQueues>(services);
  return std::make_unique<SharedBuffers>(services);
}

}  // namespace orrery::network
