#include "collectives.hpp"

#include "link_collectives.hpp"
#include "orrery/base/error.hpp"

namespace orrery::npu {
namespace {

[[noreturn]] void refuse() {
  ensure_failed("an NPU carries out a collective of a host", std::source_location::current());
}

}  // namespace

bool Collectives::join(Execution&, NodeId, GroupId, const communicator::Membership&, Time,
                       std::optional<collective::Turn>, Time) {
  refuse();
}
std::optional<NodeId> Collectives::arrive(Execution&, const network::Message&, Time) { refuse(); }
std::optional<NodeId> Collectives::wake(Execution&, NodeId, network::StepId, Time) { refuse(); }

std::unique_ptr<Collectives> make_collectives(const Context& context) {
  if (context.services.links == nullptr) return std::make_unique<Collectives>();
  return std::make_unique<LinkCollectives>();
}

}  // namespace orrery::npu
