#include "routes.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "orrery/collective/custom_collective.hpp"

namespace orrery::collective {
namespace {

/// The order in which a chunk takes the axes: of an all-gather backwards, of a local_bw_aware all-reduce on its way up.
using Order = std::vector<std::uint32_t>;

bool goes_up_and_down(const Options& options, Kind kind) {
  return kind == Kind::all_reduce && options.optimization == Optimization::local_bw_aware;
}

/// Phases over several axes: `baseline` takes the kind in each, `local_bw_aware` all-reduce goes up, turns and comes
/// down.
Route grid_route(const Options& options, const GroupLayout& layout, Kind kind, const Order& order) {
  const std::vector<Algorithm>& list = algorithms(options, kind);
  const auto phase = [&](std::uint32_t a, Kind phase_kind, bool down) {
    const std::uint32_t d = layout.axes[a].dimensions[0];
    return Phase{&layout.axes[a], {list[d], phase_kind, {}, true}, a, down};
  };
  Route route;
  if (goes_up_and_down(options, kind)) {
    // Chunks that take turns in a dimension take turns there between their two halves too.
    const std::size_t up = options.dimension_order == DimensionOrder::ascending ? order.size() - 1 : order.size();
    for (std::size_t k = 0; k < up; ++k) route.push_back(phase(order[k], Kind::reduce_scatter, false));
    if (up < order.size()) route.push_back(phase(order.back(), Kind::all_reduce, false));
    for (std::size_t k = up; k-- > 0;) route.push_back(phase(order[k], Kind::all_gather, true));
    return route;
  }
  for (const std::uint32_t a : order) route.push_back(phase(a, kind, false));
  if (kind == Kind::all_gather) std::ranges::reverse(route);
  return route;
}

/// Broadcast from the highest axis down, reduce from the lowest up. An algorithm that has no rule of its own for the
/// kind does an all-reduce in its line.
Route whole_route(const Options& options, const GroupLayout& layout, Kind kind) {
  Route route;
  for (std::uint32_t a = 0; a < layout.axes.size(); ++a) {
    const Algorithm& algorithm = algorithms(options, kind)[layout.axes[a].dimensions[0]];
    const bool has_rule = algorithm.kind == AlgorithmKind::binomial_tree || algorithm.kind == AlgorithmKind::in_switch;
    route.push_back({&layout.axes[a], {algorithm, has_rule ? kind : Kind::all_reduce, {}, true}, a, false});
  }
  if (kind == Kind::broadcast) std::ranges::reverse(route);
  return route;
}

/// The line that carries the whole collective, if the grid's axes do not.
const Algorithm* algorithm_of_line(const Options& options, const GroupLayout& layout, Kind kind) {
  static constexpr Algorithm ring, custom{AlgorithmKind::custom, 0, true};
  if (!procedures(options, layout, kind).empty()) return &custom;
  if (layout.always_ring) return &ring;
  const std::vector<Algorithm>& list = algorithms(options, kind);
  const auto one = std::ranges::find_if(list, &Algorithm::whole_communicator);
  if (one != list.end()) return &*one;
  return layout.axes.empty() ? &ring : nullptr;
}

/// Of a chunk that takes the axes in an order.
Route route_of(const Options& options, const GroupLayout& layout, Kind kind, Bytes chunk, const Order& order) {
  if (layout.num_members == 1) return {};
  const Kind shape_kind = parent(kind);
  Route route;
  if (const Algorithm* const line = algorithm_of_line(options, layout, kind))
    route.push_back({&*layout.line, {*line, shape_kind, {}, true}, 0, false});
  else if (goes_whole(options, kind))
    route = whole_route(options, layout, kind);
  else
    route = grid_route(options, layout, shape_kind, order);
  for (Phase& phase : route) {
    if (phase.shape.algorithm.kind == AlgorithmKind::custom)
      phase.shape.procedure = procedure_for(procedures(options, layout, kind), layout.num_members);
    phase.shape.size = chunk;
    phase.shape.reduces = kind != Kind::broadcast && kind != Kind::scatter;
    if (phase.shape.kind == Kind::reduce_scatter) chunk = chunk / phase.axis->size;
    if (phase.shape.kind == Kind::all_gather) chunk = times(chunk, phase.axis->size);
  }
  return route;
}

Order ascending(const GroupLayout& layout) {
  Order order(layout.axes.size());
  std::iota(order.begin(), order.end(), 0U);
  return order;
}

/// The order of round-robin: the chunk begins with the axis whose turn it is and goes on upwards.
Order rotated(const GroupLayout& layout, std::uint64_t turn) {
  Order order = ascending(layout);
  std::ranges::rotate(order, order.begin() + static_cast<std::ptrdiff_t>(turn % order.size()));
  return order;
}

/// Themis (Rashidi et al., ISCA 2022): every chunk takes the axes in ascending order of the time for which they will be
/// busy with the chunks before it. An axis' load begins with the latencies of what a chunk does there.
class Themis {
 public:
  Themis(const network::DelayModel& delays, const Options& options, const GroupLayout& layout, Kind kind)
      : delays_(delays),
        options_(options),
        layout_(layout),
        kind_(parent(kind)),
        reduces_(kind != Kind::broadcast && kind != Kind::scatter) {
    for (std::uint32_t a = 0; a < layout.axes.size(); ++a) load_.push_back(on_axis(a, Bytes(0)));
  }

  Order next(Bytes chunk) {
    Order order = ascending(layout_);
    // An all-gather is a reduce-scatter of all that it makes, backwards.
    if (kind_ == Kind::all_gather)
      for (const Axis& axis : layout_.axes) chunk = times(chunk, axis.size);
    const auto [least, most] = std::ranges::minmax_element(load_);
    const auto least_axis = static_cast<std::uint32_t>(least - load_.begin());
    if (*most - *least >= one_way(least_axis, chunk / 16) - one_way(least_axis, Bytes(0)))
      std::ranges::stable_sort(order, {}, [&](std::uint32_t a) { return load_[a]; });
    for (const std::uint32_t a : order) {
      load_[a] = plus(load_[a], on_axis(a, chunk) - on_axis(a, Bytes(0)));
      if (shrinks()) chunk = chunk / layout_.axes[a].size;
    }
    return order;
  }

 private:
  bool shrinks() const { return kind_ != Kind::all_to_all && (kind_ != Kind::all_reduce || up_and_down()); }
  bool up_and_down() const { return goes_up_and_down(options_, kind_); }

  /// For how long a chunk that comes to the axis with so many bytes is there: on its way up, or the only one.
  Ps one_way(std::uint32_t a, Bytes size) {
    if (up_and_down()) return duration(a, Kind::reduce_scatter, size);
    return duration(a, kind_, kind_ == Kind::all_gather ? size / layout_.axes[a].size : size);
  }
  /// On all its ways.
  Ps on_axis(std::uint32_t a, Bytes size) {
    const Ps down = up_and_down() ? duration(a, Kind::all_gather, size / layout_.axes[a].size) : 0;
    return plus(one_way(a, size), down);
  }

  Ps duration(std::uint32_t a, Kind kind, Bytes size) {
    const auto [known, is_new] = durations_.try_emplace({a, kind, size}, 0);
    if (is_new) {
      const Axis& axis = layout_.axes[a];
      const PhaseShape shape{algorithms(options_, kind_)[axis.dimensions[0]], kind, size, reduces_};
      const auto program = make_lines(shape, line_context(delays_, options_, layout_, axis));
      known->second = std::max(program->duration(0), program->duration(1));
    }
    return known->second;
  }

  const network::DelayModel& delays_;
  const Options& options_;
  const GroupLayout& layout_;
  Kind kind_;
  bool reduces_;
  std::vector<Ps> load_;  ///< [axes]
  std::map<std::tuple<std::uint32_t, Kind, Bytes>, Ps> durations_;
};

}  // namespace

Kind parent(Kind kind) {
  switch (kind) {
    case Kind::broadcast:
    case Kind::reduce:
    case Kind::barrier:
      return Kind::all_reduce;
    case Kind::gather:
      return Kind::all_gather;
    case Kind::scatter:
      return Kind::reduce_scatter;
    default:
      return kind;
  }
}

bool goes_whole(const Options& options, Kind kind) {
  return (kind == Kind::broadcast && !options.broadcast.empty()) || (kind == Kind::reduce && !options.reduce.empty());
}

const std::vector<Algorithm>& algorithms(const Options& options, Kind kind) {
  if (goes_whole(options, kind)) return kind == Kind::broadcast ? options.broadcast : options.reduce;
  switch (parent(kind)) {
    case Kind::all_reduce:
      return options.all_reduce;
    case Kind::all_gather:
      return options.all_gather;
    case Kind::reduce_scatter:
      return options.reduce_scatter;
    default:
      return options.all_to_all;
  }
}

std::span<const std::shared_ptr<const CustomCollective>> procedures(const Options& options, const GroupLayout& layout,
                                                                    Kind kind) {
  if (layout.procedure) return {&layout.procedure, 1};
  const auto found = options.custom.find(kind);
  if (found == options.custom.end()) return {};
  return found->second;
}

const CustomCollective* procedure_for(std::span<const std::shared_ptr<const CustomCollective>> list,
                                      std::uint32_t num_members) {
  const auto found = std::ranges::find_if(list, [&](const auto& p) { return p->num_positions() == num_members; });
  return found == list.end() ? nullptr : found->get();
}

Chunks cut(const Options& options, Kind kind, Bytes size, std::uint64_t num_npus, std::uint32_t num_members) {
  if (kind == Kind::barrier) return {1, Bytes(num_members)};
  Bytes chunk = size / options.splits;
  if (parent(kind) != Kind::all_gather && chunk < Bytes(num_npus)) return {options.splits, Bytes(num_npus)};
  chunk = std::max(chunk, Bytes(1));
  return {std::max<std::uint64_t>((size.count() + chunk.count() - 1) / chunk.count(), 1), chunk};
}

LineContext line_context(const network::DelayModel& delays, const Options& options, const GroupLayout& layout,
                         const Axis& axis) {
  const bool fixed_delay = layout.subgroup && options.rules.fixed_subgroup_endpoint_delay;
  const Ps endpoint_delay = (fixed_delay ? Time::from_ns(10) : options.endpoint_delay).ps();
  return {delays, options.rules, axis, endpoint_delay, options.local_memory, options.rendezvous, 1, 0, false};
}

Routes routes_of(const network::DelayModel& delays, const Options& options, const GroupLayout& layout, Kind kind,
                 const Chunks& chunks) {
  const bool has_choice =
      layout.axes.size() > 1 && !goes_whole(options, kind) && !algorithm_of_line(options, layout, kind);
  if (options.dimension_order == DimensionOrder::ascending || !has_choice)
    return {{route_of(options, layout, kind, chunks.size, ascending(layout))}, {}};
  Routes result;
  Themis themis(delays, options, layout, kind);
  std::map<Order, std::uint32_t> known;
  for (std::uint64_t chunk = 0; chunk < chunks.count; ++chunk) {
    const Order order =
        options.dimension_order == DimensionOrder::themis ? themis.next(chunks.size) : rotated(layout, chunk);
    const auto [found, is_new] = known.try_emplace(order, static_cast<std::uint32_t>(result.routes.size()));
    if (is_new) result.routes.push_back(route_of(options, layout, kind, chunks.size, order));
    result.of_chunk.push_back(found->second);
  }
  return result;
}

std::vector<Route> possible_routes(const Options& options, const GroupLayout& layout, Kind kind) {
  const bool any_order = options.dimension_order != DimensionOrder::ascending && !goes_whole(options, kind);
  std::vector<Route> routes;
  for (std::size_t turn = 0; turn < (any_order ? std::max<std::size_t>(layout.axes.size(), 1) : 1); ++turn)
    routes.push_back(route_of(options, layout, kind, Bytes(0), layout.axes.empty() ? Order{} : rotated(layout, turn)));
  return routes;
}

}  // namespace orrery::collective
