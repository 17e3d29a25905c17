#include "routes.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "dimension_order.hpp"
#include "orrery/collective/registry.hpp"
#include "validation.hpp"

namespace orrery::collective {
namespace {

/// Returns whether an algorithm is the ring of a dimension, which becomes an exchange with all neighbours in a torus.
bool is_ring(const Algorithm& algorithm) { return algorithm == Algorithm{}; }

/// Returns the joint axes that begin with an axis, if rings carry out the collective in all of them; else null.
const JointAxes* joins(const GroupLayout& layout, const std::vector<Algorithm>& list, std::uint32_t axis) {
  const auto found = std::ranges::find(layout.joint, axis, &JointAxes::first);
  if (found == layout.joint.end()) return nullptr;
  const bool are_rings = std::ranges::all_of(found->axis.dimensions, [&](std::uint32_t d) { return is_ring(list[d]); });
  return are_rings ? &*found : nullptr;
}

/// Returns the axes of a grid as chunks take them: with joint ones in place of those that they consist of, if rings
/// carry out the collective in all of these.
AxisOrder joined(const GroupLayout& layout, const std::vector<Algorithm>& list, AxisOrder order) {
  for (const JointAxes& joint : layout.joint) {
    const auto is_inside = [&](std::uint32_t a) { return a > joint.first && a < joint.first + joint.count; };
    if (joins(layout, list, joint.first) != nullptr) std::erase_if(order, is_inside);
  }
  return order;
}

/// Returns the phases over several axes. `baseline` takes the kind in each. A `local_bw_aware` all-reduce goes up,
/// turns and comes down.
Route grid_route(const Options& options, const GroupLayout& layout, Kind kind, const AxisOrder& given) {
  const std::vector<Algorithm>& list = algorithms_for(options, kind);
  const AxisOrder order = joined(layout, list, given);
  const auto phase = [&](std::uint32_t a, Kind phase_kind, bool down) {
    const JointAxes* const joint = joins(layout, list, a);
    const Axis& axis = joint != nullptr ? joint->axis : layout.axes[a];
    return Phase{&axis, shape_on(options, axis, list[axis.dimensions[0]], phase_kind), a, down};
  };
  Route route;
  if (goes_up_and_down(options, kind)) {
    // Chunks that take turns in a dimension take turns there between their two halves too.
    const bool turns_in_one_phase = is_ascending(options.chunks.dimension_order);
    const std::size_t up = turns_in_one_phase ? order.size() - 1 : order.size();
    for (std::size_t k = 0; k < up; ++k) route.push_back(phase(order[k], Kind::reduce_scatter, false));
    if (up < order.size()) route.push_back(phase(order.back(), Kind::all_reduce, false));
    for (std::size_t k = up; k-- > 0;) route.push_back(phase(order[k], Kind::all_gather, true));
    return route;
  }
  for (const std::uint32_t a : order) route.push_back(phase(a, kind, false));
  if (kind == Kind::all_gather) std::ranges::reverse(route);
  return route;
}

/// Returns the kind of steps by which an algorithm carries out a kind: its own for a broadcast or reduce that goes
/// whole, if it has some; else those of the parent.
Kind steps_for(const Algorithm& algorithm, const Options& options, Kind kind) {
  return goes_whole(options, kind) && entry_of(algorithm).kinds.contains(kind) ? kind : parent(kind);
}

/// Returns the phases of a broadcast, from the highest axis down, or of a reduce, from the lowest up.
Route whole_route(const Options& options, const GroupLayout& layout, Kind kind) {
  Route route;
  for (std::uint32_t a = 0; a < layout.axes.size(); ++a) {
    const Algorithm& algorithm = algorithms_for(options, kind)[layout.axes[a].dimensions[0]];
    route.push_back({&layout.axes[a], {algorithm, steps_for(algorithm, options, kind)}, a, false});
  }
  if (kind == Kind::broadcast) std::ranges::reverse(route);
  return route;
}

/// Returns the algorithm that carries out the whole collective among all members, if the grid's axes do not.
const Algorithm* algorithm_of_whole(const Options& options, const GroupLayout& layout, Kind kind) {
  static constexpr Algorithm ring;
  const std::vector<Algorithm>& list = algorithms_for(options, kind);
  if (layout.always_ring) {
    const bool stays = list.size() == 1 && entry_of(list[0]).stays_in_subgroups &&
                       carries_out(entry_of(list[0]), parent(kind), layout.num_members);
    return stays ? &list[0] : &ring;
  }
  const auto one = std::ranges::find_if(list, &Algorithm::whole_communicator);
  if (one != list.end()) return &*one;
  return layout.axes.empty() ? &ring : nullptr;
}

/// How many times its bytes a chunk of an exchange with experts has as an all-to-all between servers, and among the
/// NPUs of a server, at the shares of the links that its kernels reach.
struct ExpertFactors {
  double outside = 1, inside = 1;
};
ExpertFactors expert_factors(const Options& options, const GroupLayout& layout) {
  ExpertGroup group{.ranks = layout.num_members, .link = 1, .nic = 1};
  for (const Axis& axis : layout.axes)
    if (axis.dimensions[0] >= options.library.node_dimensions) group.servers *= axis.size;
  const ExpertTime of_byte = expert_exchange(options.library.experts, group, 1);
  const ExpertKernels& kernels = *options.library.experts.kernels;
  const double servers = group.servers, npus = static_cast<double>(group.ranks) / servers;
  return {servers > 1 ? of_byte.nic_bytes / (1 - 1 / servers) / kernels.nic_share : 0,
          npus > 1 ? of_byte.link_bytes / (1 - 1 / npus) / kernels.link_share : 0};
}

/// Gives each phase of an exchange with experts its bytes. Tokens go to servers first and are handed on there; results
/// come back the other way.
void set_expert_sizes(const Options& options, const GroupLayout& layout, Kind kind, Bytes chunk, Route& route) {
  const auto is_outside = [&](const Phase& phase) {
    return phase.axis->dimensions[0] >= options.library.node_dimensions;
  };
  if (!layout.axes.empty())
    std::ranges::stable_partition(
        route, [&](const Phase& phase) { return is_outside(phase) == (kind == Kind::expert_dispatch); });
  const ExpertFactors factors = expert_factors(options, layout);
  for (Phase& phase : route) {
    const double factor = layout.axes.empty() || !is_outside(phase) ? factors.inside : factors.outside;
    const double bytes = static_cast<double>(chunk.count()) * factor;
    if (bytes > static_cast<double>(Bytes::most().count())) throw OutOfRange();
    phase.shape.size = Bytes(std::max<std::uint64_t>(static_cast<std::uint64_t>(bytes), 1));
  }
}

/// Returns the route of a chunk that takes the axes in an order.
Route route_of(const Options& options, const GroupLayout& layout, Kind kind, Bytes chunk, const AxisOrder& order) {
  if (layout.num_members == 1) return {};
  const Kind shape_kind = parent(kind);
  Route route;
  if (const auto customs = custom_collectives(options, layout, kind); !customs.empty())
    route.push_back(
        {&*layout.whole, {.kind = shape_kind, .is_custom = true, .custom = custom_for(customs, layout.num_members)}});
  else if (const Algorithm* const algorithm = algorithm_of_whole(options, layout, kind))
    route.push_back({&*layout.whole, {*algorithm, steps_for(*algorithm, options, kind)}, 0, false});
  else if (goes_whole(options, kind))
    route = whole_route(options, layout, kind);
  else
    route = grid_route(options, layout, shape_kind, order);
  for (Phase& phase : route) {
    phase.shape.size = chunk;
    phase.shape.in_subgroup = layout.subgroup;
    phase.shape.reduces = kind != Kind::broadcast && kind != Kind::scatter;
    if (phase.shape.kind == Kind::reduce_scatter) chunk = chunk / phase.axis->size;
    if (phase.shape.kind == Kind::all_gather) chunk = times(chunk, phase.axis->size);
  }
  if (is_of_experts(kind)) set_expert_sizes(options, layout, kind, chunk, route);
  return route;
}

/// Turns the phase round if its algorithm has two ways round.
void turn_round(const GroupLayout& layout, Phase& phase) {
  if (phase.shape.is_custom || !entry_of(phase.shape.algorithm).goes_round) return;
  phase.axis = layout.whole && phase.axis == &*layout.whole ? &*layout.whole_back : &layout.axes_back[phase.axis_idx];
}

/// Returns the routes of chunks that take a route, some of them the other way round (Rules::two_directions).
Routes in_both_directions(const Options& options, const GroupLayout& layout, Kind kind, std::uint64_t num_chunks,
                          Route route, Turn turn) {
  const std::uint32_t queues = options.chunks.queues;
  const std::vector<std::uint32_t> dimensions = dimensions_of_turns(options, layout, kind);
  for (Phase& phase : route)
    if (turn.digits > 0) phase.shape.begins_odd = turn.is_odd_tree(dimensions[phase.axis_idx], queues);
  if (!options.rules.two_directions) return {{std::move(route)}, {}};
  for (Phase& phase : route)
    if (phase.down) turn_round(layout, phase);
  if (goes_up_and_down(options, parent(kind)) || queues == 1) return {{std::move(route)}, {}};
  // In each phase the chunk goes the other way round if its queue of that dimension is in the second half.
  Routes routes{{route}, {}};
  std::map<std::vector<bool>, std::uint32_t> known{{std::vector<bool>(route.size()), 0}};
  for (std::uint64_t chunk = 0; chunk < num_chunks; ++chunk) {
    std::vector<bool> turned;
    for (const Phase& phase : route)
      turned.push_back((turn.queue(dimensions[phase.axis_idx], queues) + chunk) % queues >= queues / 2);
    const auto [found, is_new] = known.try_emplace(turned, static_cast<std::uint32_t>(routes.routes.size()));
    routes.of_chunk.push_back(found->second);
    if (!is_new) continue;
    routes.routes.push_back(route);
    for (std::size_t p = 0; p < route.size(); ++p)
      if (turned[p]) turn_round(layout, routes.routes.back()[p]);
  }
  return routes;
}

bool is_in_one_group(const Options& options, const GroupLayout& layout, Kind kind) {
  return !custom_collectives(options, layout, kind).empty() || algorithm_of_whole(options, layout, kind) != nullptr;
}

}  // namespace

PhaseShape shape_on(const Options& options, const Axis& axis, const Algorithm& algorithm, Kind kind) {
  PhaseShape shape{.algorithm = algorithm, .kind = kind};
  const bool has_both = options.chunks.directions == Directions::both;
  if (axis.torus.empty() || !is_ring(algorithm) || (!has_both && axis.torus.size() == 1)) return shape;
  shape.torus = &axis;
  shape.both_directions = has_both;
  return shape;
}

Kind parent(Kind kind) {
  switch (kind) {
    case Kind::broadcast:
    case Kind::reduce:
    case Kind::barrier:
      return Kind::all_reduce;
    case Kind::gather:
      return Kind::all_gather;
    case Kind::expert_dispatch:
    case Kind::expert_combine:
      return Kind::all_to_all;
    case Kind::scatter:
      return Kind::reduce_scatter;
    default:
      return kind;
  }
}

bool goes_whole(const Options& options, Kind kind) {
  return (kind == Kind::broadcast && !options.broadcast.empty()) || (kind == Kind::reduce && !options.reduce.empty());
}

const std::vector<Algorithm>& algorithms_for(const Options& options, Kind kind) {
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

std::span<const std::shared_ptr<const CustomCollective>> custom_collectives(const Options& options,
                                                                            const GroupLayout& layout, Kind kind) {
  if (layout.custom) return {&layout.custom, 1};
  const auto found = options.custom.of_kind.find(kind);
  if (found == options.custom.of_kind.end()) return {};
  return found->second;
}

const CustomCollective* custom_for(std::span<const std::shared_ptr<const CustomCollective>> list,
                                   std::uint32_t num_members) {
  const auto found = std::ranges::find_if(list, [&](const auto& c) { return c->num_positions() == num_members; });
  return found == list.end() ? nullptr : found->get();
}

std::vector<std::uint32_t> dimensions_of_turns(const Options& options, const GroupLayout& layout, Kind kind) {
  if (is_in_one_group(options, layout, kind)) return {0};
  std::vector<std::uint32_t> dimensions;
  for (const Axis& axis : layout.axes) dimensions.push_back(axis.dimensions[0]);
  return dimensions;
}

Chunks cut(const Options& options, Kind kind, Bytes size, std::uint64_t num_npus, std::uint32_t num_members) {
  if (kind == Kind::barrier) return {1, Bytes(num_members)};
  // Kernels of experts hand on what has come while more comes.
  std::uint64_t splits = is_of_experts(kind) ? std::max(options.chunks.splits, 8U) : options.chunks.splits;
  if (const Bytes least = options.chunks.least; least > Bytes(0) && !is_of_experts(kind))
    splits = std::clamp<std::uint64_t>(size.count() / least.count(), 1, splits);
  Bytes chunk = size / splits;
  if (parent(kind) != Kind::all_gather && chunk < Bytes(num_npus)) return {splits, Bytes(num_npus)};
  chunk = std::max(chunk, Bytes(1));
  return {std::max<std::uint64_t>((size.count() + chunk.count() - 1) / chunk.count(), 1), chunk};
}

GroupContext group_context(const network::DelayModel& delays, const Options& options, const GroupLayout& layout,
                           const Axis& axis) {
  const Ps endpoint_delay = options.endpoint_delay_of(layout.subgroup).ps();
  return {delays, options.rules, axis, endpoint_delay, options.local_memory, options.rendezvous, 1, 0, false};
}

Routes routes_of(const network::DelayModel& delays, const Options& options, const GroupLayout& layout, Kind kind,
                 const Chunks& chunks, Turn turn) {
  const DimensionOrder dimension_order = options.chunks.dimension_order;
  const bool has_choice =
      layout.axes.size() > 1 && !goes_whole(options, kind) && !is_in_one_group(options, layout, kind);
  if (is_ascending(dimension_order) || !has_choice)
    return in_both_directions(options, layout, kind, chunks.count,
                              route_of(options, layout, kind, chunks.size, ascending(layout)), turn);
  Routes result;
  Themis themis(delays, options, layout, kind);
  std::map<AxisOrder, std::uint32_t> known;
  for (std::uint64_t chunk = 0; chunk < chunks.count; ++chunk) {
    const AxisOrder order =
        dimension_order == DimensionOrder::themis ? themis.next(chunks.size) : rotated(layout, chunk);
    const auto [found, is_new] = known.try_emplace(order, static_cast<std::uint32_t>(result.routes.size()));
    if (is_new) result.routes.push_back(route_of(options, layout, kind, chunks.size, order));
    result.of_chunk.push_back(found->second);
  }
  return result;
}

std::vector<Route> possible_routes(const Options& options, const GroupLayout& layout, Kind kind) {
  const bool any_order = !is_ascending(options.chunks.dimension_order) && !goes_whole(options, kind);
  std::vector<Route> routes;
  for (std::size_t turn = 0; turn < (any_order ? std::max<std::size_t>(layout.axes.size(), 1) : 1); ++turn)
    routes.push_back(
        route_of(options, layout, kind, Bytes(0), layout.axes.empty() ? AxisOrder{} : rotated(layout, turn)));
  return routes;
}

}  // namespace orrery::collective
