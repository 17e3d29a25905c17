#include "dimension_order.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace orrery::collective {

AxisOrder ascending(const GroupLayout& layout) {
  AxisOrder order(layout.axes.size());
  std::iota(order.begin(), order.end(), 0U);
  return order;
}

AxisOrder rotated(const GroupLayout& layout, std::uint64_t turn) {
  AxisOrder order = ascending(layout);
  std::ranges::rotate(order, order.begin() + static_cast<std::ptrdiff_t>(turn % order.size()));
  return order;
}

bool goes_up_and_down(const Options& options, Kind kind) {
  return kind == Kind::all_reduce && options.chunks.optimization == Optimization::local_bw_aware;
}

Themis::Themis(const network::DelayModel& delays, const Options& options, const GroupLayout& layout, Kind kind)
    : delays_(delays),
      options_(options),
      layout_(layout),
      kind_(parent(kind)),
      reduces_(kind != Kind::broadcast && kind != Kind::scatter) {
  for (std::uint32_t a = 0; a < layout.axes.size(); ++a) load_.push_back(all_ways(a, Bytes(0)));
}

AxisOrder Themis::next(Bytes chunk) {
  AxisOrder order = ascending(layout_);
  // An all-gather is a reduce-scatter of all that it makes, backwards.
  if (kind_ == Kind::all_gather)
    for (const Axis& axis : layout_.axes) chunk = times(chunk, axis.size);
  const auto [least, most] = std::ranges::minmax_element(load_);
  const auto least_axis = static_cast<std::uint32_t>(least - load_.begin());
  if (*most - *least >= one_way(least_axis, chunk / 16) - one_way(least_axis, Bytes(0)))
    std::ranges::stable_sort(order, {}, [&](std::uint32_t a) { return load_[a]; });
  for (const std::uint32_t a : order) {
    load_[a] = plus(load_[a], all_ways(a, chunk) - all_ways(a, Bytes(0)));
    if (shrinks()) chunk = chunk / layout_.axes[a].size;
  }
  return order;
}

Ps Themis::one_way(std::uint32_t a, Bytes size) {
  if (up_and_down()) return duration(a, Kind::reduce_scatter, size);
  return duration(a, kind_, kind_ == Kind::all_gather ? size / layout_.axes[a].size : size);
}

Ps Themis::all_ways(std::uint32_t a, Bytes size) {
  const Ps down = up_and_down() ? duration(a, Kind::all_gather, size / layout_.axes[a].size) : 0;
  return plus(one_way(a, size), down);
}

Ps Themis::duration(std::uint32_t a, Kind kind, Bytes size) {
  const auto [known, is_new] = durations_.try_emplace({a, kind, size}, 0);
  if (!is_new) return known->second;
  const Axis& axis = layout_.axes[a];
  PhaseShape shape = shape_on(options_, axis, algorithms_for(options_, kind_)[axis.dimensions[0]], kind);
  shape.size = size;
  shape.reduces = reduces_;
  const GroupContext context = group_context(delays_, options_, layout_, axis);
  const auto evaluators = make_algorithms(shape, axis.size, options_.rules).map([&](const PhaseAlgorithm& algorithm) {
    return evaluate_groups(algorithm, context);
  });
  return known->second = std::max(evaluators.of(0).duration(), evaluators.of(1).duration());
}

}  // namespace orrery::collective
