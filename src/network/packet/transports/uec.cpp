#include "uec.hpp"

#include "packet/ports/trimming_queues.hpp"
#include "transport_registry.hpp"

namespace orrery::network {

TransportSide make_uec(const NodeServices& services) {
  auto queues = std::make_unique<TrimmingQueues>(services);
  TransportSide made;
  made.hosts = std::make_unique<UecTransport>(services, queues->run());
  made.queues = std::move(queues);
  return made;
}

}  // namespace orrery::network
