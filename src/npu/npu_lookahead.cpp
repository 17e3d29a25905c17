// How far ahead an NPU can be seen, for the kernel's promises (docs/kernel.md).
#include <algorithm>

#include "npu.hpp"

namespace orrery::npu {
namespace {

using trace::NodeKind;

constexpr std::size_t most_scanned = 64;  // ready nodes of a resource that are looked at

}  // namespace

/// Returns the least time from the start of a node that is ready for this resource to what others may notice.
Time Npu::least_lead(std::size_t resource, const Distances& distances) const {
  const Resources& resources = execution_.schedule().resources();
  if (resources.num_ready(resource) > most_scanned) return Time::zero();
  Time least = Time::max();
  resources.for_each_ready(resource, [&](NodeId id) { least = std::min(least, distances.lead(id)); });
  return least;
}

/// `posted` and `arriving` are the bounds that follow from receives.
pdes::LookaheadBound Npu::bound(const Distances& distances, Time posted, Time arriving) const {
  pdes::LookaheadBound bound{.output = arriving, .reaction = posted};
  const memory::RemoteMemory& memory = execution_.context().memory;
  if (!has_settled_) bound.output = std::min(bound.output, start_time());
  // Events that wait for the answer of a memory may lead to anything after it.
  if (execution_.order().awaits_answer()) bound.reaction = Time::zero();
  for (const RunningNode& running : execution_.all_running()) {
    const bool is_known = running.finish != Time::max();
    // A send's data leave with the clear to send; a collective over links answers what comes. Others notice what a node
    // sends only if its lead is zero.
    const bool may_act =
        !is_known && distances.lead(running.node) == Time::zero() &&
        (execution_.node(running.node).kind == NodeKind::send || collectives_->is_under_way(running.node));
    const Time tail =
        may_act ? Time::zero() : std::min(distances.tail(running.node), least_lead(running.resource, distances));
    if (is_known)
      bound.output = std::min(bound.output, running.finish + tail);
    else
      bound.reaction = std::min(bound.reaction, memory.least_after_answer(tail));
  }
  return bound;
}

pdes::LookaheadBounds Npu::lookahead() const {
  const Lookahead& distances = execution_.lookahead();
  const ActionTimes posted = messaging_->after_posted(), arriving = messaging_->after_arriving();
  pdes::LookaheadBounds bounds{bound(distances.sends, posted.sends(), arriving.sends()),
                               bound(distances.calls, posted.calls(), arriving.calls())};
  if (distances.relays) bounds.relays = bound(*distances.relays, posted.relays(), arriving.relays());
  if (collectives_->is_asked_for_more()) bounds.relays.reaction = Time::zero();
  // Others may ask for data of its memory at any time.
  if (blocks_->may_be_asked()) bounds.sends.reaction = bounds.calls.reaction = bounds.relays.reaction = Time::zero();
  return bounds;
}

pdes::LookaheadBound Npu::lookahead_of_cell() const {
  pdes::LookaheadBound calls = bound(*execution_.lookahead().leaves, messaging_->after_posted().leaves(), Time::max());
  if (collectives_->is_asked_for_more()) calls.reaction = Time::zero();
  return calls;
}

}  // namespace orrery::npu
