#include "uec.hpp"

#include <utility>

#include "orrery/network/packet_rules.hpp"
#include "packet/ports/trimming_queues.hpp"

namespace orrery::network {
namespace {

TransportSide make_uec(const NodeServices& services) {
  auto queues = std::make_unique<TrimmingQueues>(services);
  TransportSide made;
  made.hosts = std::make_unique<UecTransport>(services, queues->run());
  made.queues = std::move(queues);
  return made;
}

}  // namespace

extern const TransportType uec_transport;
constinit const TransportType uec_transport{
    .name = "uec",
    .help = "Ultra Ethernet: packets on many paths in any order; only lost ones again",
    .make = make_uec,
    .has_own_queues = true,
    .sprays = true,
    .tells_again = true,
    .discipline = "trimming",
};

}  // namespace orrery::network
