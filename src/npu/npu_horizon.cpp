// How far ahead an NPU is seen: for the kernel's promises (docs/kernel.md).
#include <algorithm>

#include "npu.hpp"

namespace orrery::npu {
namespace {

using trace::NodeKind;

constexpr std::uint32_t most_scanned = 64;  // ready nodes that the horizon looks at

}  // namespace

/// Least time from the start of a ready node of this resource to what others may notice.
Time Npu::least_lead(std::size_t resource, const Distances& distances) const {
  const auto& ready = ready_[resource];
  if (ready.size() + ranked_.size() > most_scanned) return Time::zero();
  Time least = Time::max();
  for (const auto id : ready) least = std::min(least, distances.lead(NodeId(id)));
  if (resource == communication)
    for (const auto& [rank, id] : ranked_) least = std::min(least, distances.lead(NodeId(id)));
  return least;
}

pdes::LookaheadBound Npu::reach(const Distances& distances, Time posted, Time arriving) const {
  pdes::LookaheadBound reach{.output = arriving, .reaction = posted};
  if (!settled_) reach.output = Time::zero();
  for (const Running& running : running_) {
    // A send's data leave with the grant; a collective over links answers what comes.
    const bool may_act =
        running.finish == Time::max() && (node(running.node).kind == NodeKind::send || is_over_links(running.node));
    const Time tail =
        may_act ? Time::zero() : std::min(distances.tail(running.node), least_lead(running.resource, distances));
    if (running.finish == Time::max())
      reach.reaction = std::min(reach.reaction, tail);
    else
      reach.output = std::min(reach.output, running.finish + tail);
  }
  return reach;
}

pdes::LookaheadBounds Npu::lookahead() const {
  pdes::LookaheadBounds horizon{reach(lookahead_.sends, posted_.sends, arriving_.sends),
                                reach(lookahead_.calls, posted_.calls, arriving_.calls)};
  if (lookahead_.relays) horizon.relays = reach(*lookahead_.relays, posted_.relays, arriving_.relays);
  if (std::ranges::any_of(joined_, [](const auto& joined) { return joined->is_over; }))
    horizon.relays.reaction = Time::zero();
  return horizon;
}

}  // namespace orrery::npu
