#include "credit_queues.hpp"
#include "packet/transports/host_transport.hpp"

namespace orrery::network {

std::unique_ptr<QueueDiscipline> make_queues(const NodeServices& services) {
  const PacketRules& rules = services.system.rules;
  if (rules.uses_credits) return std::make_unique<CreditQueues>(services);
  return rules.queues()->make(services);
}

}  // namespace orrery::network
