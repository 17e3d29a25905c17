#include "instant_nodes.hpp"

#include <algorithm>

#include "orrery/base/error.hpp"

namespace orrery::npu {

bool InstantNodes::holds(NodeId id) const { return std::ranges::find(nodes_, id) != nodes_.end(); }

void InstantNodes::tell(NodeId id, const EventHistory& history) {
  const auto found = std::ranges::find(nodes_, id);
  ensure(found != nodes_.end(), "the end of a node that nobody awaits");
  const auto index = static_cast<std::size_t>(found - nodes_.begin());
  if (histories_->confirm_instant(index, history)) return;
  nodes_.erase(found);
  histories_->replace_instant(index, history);
  if (history.is_known()) nodes_.push_back(id);
}

/// Returns the first node that is no receive; their number if there is none.
std::size_t InstantNodes::first_stored() const {
  const auto found = std::ranges::find_if(nodes_, [&](NodeId id) { return is_stored(id); });
  return static_cast<std::size_t>(found - nodes_.begin());
}

NodeId InstantNodes::take() {
  std::size_t index = 0;
  if (histories_ != nullptr)
    index = histories_->begin_instant();
  else if (is_in_event())
    index = first_stored();
  else
    is_in_store_ = is_stored(nodes_.front());
  const NodeId id = nodes_[index];
  nodes_.erase(nodes_.begin() + static_cast<std::ptrdiff_t>(index));
  return id;
}

}  // namespace orrery::npu
