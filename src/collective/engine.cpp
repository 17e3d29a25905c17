#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <string>

#include "dimension_order.hpp"
#include "engine_state.hpp"
#include "expert_layout.hpp"
#include "group_layout.hpp"
#include "orrery/base/error.hpp"
#include "orrery/collective/collective.hpp"
#include "orrery/collective/kind.hpp"
#include "orrery/collective/message_program.hpp"
#include "orrery/collective/whole_durations.hpp"
#include "symmetry.hpp"
#include "turns.hpp"
#include "validation.hpp"

namespace orrery::collective {
namespace {

/// Returns whether collectives of some communicators are among all members as one group.
bool needs_whole(const Options& options) {
  const auto uses = [](const std::vector<Algorithm>* list) {
    return std::ranges::any_of(*list, &Algorithm::whole_communicator);
  };
  return !options.custom.of_kind.empty() ||
         std::ranges::any_of(std::array{&options.all_reduce, &options.all_gather, &options.reduce_scatter,
                                        &options.all_to_all, &options.broadcast, &options.reduce},
                             uses);
}

}  // namespace

Engine::Engine(const network::DelayModel& delays, Options options)
    : state_(std::make_unique<State>(delays, std::move(options))) {
  state_->options.validate(state_->delays.topology());
}

Engine::~Engine() = default;

const Rules& Engine::rules() const { return state_->options.rules; }
Time Engine::endpoint_delay(bool is_subgroup) const { return state_->options.endpoint_delay_of(is_subgroup); }
Time Engine::endpoint_delay(const GroupLayout& layout) const { return endpoint_delay(layout.subgroup); }

void Engine::share_among(std::vector<std::vector<std::uint32_t>> sharers) {
  ensure(state_->plans.empty() && state_->library_durations.empty(), "collectives have been computed already");
  state_->library.forget_groups();
  state_->options.sharing.sharers = std::move(sharers);
}

std::shared_ptr<const GroupLayout> Engine::layout(std::span<const NpuId> members, std::uint64_t dimensions,
                                                  std::uint32_t custom) {
  std::vector<NpuId> world;
  if (members.empty()) {
    for (std::uint32_t npu = 0; npu < state_->delays.topology().num_npus(); ++npu) world.emplace_back(npu);
    members = world;
  }
  const Options& options = state_->options;
  GroupLayout built =
      build_layout(state_->delays, {.members = members,
                                    .sub_grid = dimensions != all_dimensions,
                                    .needs_whole = custom > 0 || needs_whole(options),
                                    .subgroup_is_ring = options.rules.subgroup_is_ring,
                                    .world_by_ids = options.rules.subgroup_is_ring && custom == 0,
                                    .two_directions = options.rules.two_directions,
                                    .all_axes = options.chunks.dimension_order == DimensionOrder::all_axes});
  if (!options.sharing.set_of.empty()) built.sharing = options.sharing.set_of[members.front().index()];
  if (custom > 0 && built.num_members > 1) built.custom = options.custom.of_nodes[custom - 1];
  if (state_->has_library() && !state_->delays.topology().links().empty())
    built.slowest_ports = slowest_ports(state_->delays.topology(), members);
  std::vector<std::shared_ptr<const GroupLayout>>& alike = state_->layouts[hash(built)];
  for (const std::shared_ptr<const GroupLayout>& known : alike)
    if (*known == built) return known;
  alike.push_back(std::make_shared<const GroupLayout>(std::move(built)));
  if (options.custom.whole)
    state_->first_members.emplace(alike.back().get(), std::vector(members.begin(), members.end()));
  return alike.back();
}

std::shared_ptr<const GroupLayout> layout_of(Engine& engine, const trace::Group& group, std::uint64_t dimensions,
                                             std::uint32_t custom) {
  const auto& circuits = engine.state_->options.circuits;
  if (!circuits) return engine.layout(group.members, dimensions, custom);
  return engine.layout(positions_of(*circuits, group), dimensions, custom);
}

std::vector<NpuId> Engine::split(NpuId npu, std::uint64_t dimensions) const {
  return members_of_sub_grid(state_->delays.topology(), npu, dimensions);
}

void Engine::validate(const GroupLayout& layout, Kind kind) const {
  if (layout.num_members == 1) return;
  if (!layout.always_ring && custom_collectives(state_->options, layout, kind).empty() &&
      algorithms_for(state_->options, kind).empty())
    throw Error(
        ErrorCode::bad_input, {.key = fmt::format("{}-implementation", name(parent(kind)))},
        fmt::format("no algorithm is given, but a collective of kind {} needs one", name(kind)),
        fmt::format("one for each of the {} dimensions of the topology", state_->delays.topology().num_dimensions()));
  for (const Route& route : possible_routes(state_->options, layout, kind))
    for (const Phase& phase : route) validate_phase(state_->delays.topology(), state_->options, layout, phase, kind);
}

std::vector<std::vector<std::uint32_t>> groups_in_switches(const Engine& engine, const GroupLayout& layout) {
  std::set<std::vector<std::uint32_t>> groups;
  const Options& options = engine.state_->options;
  if (layout.num_members == 1 || !options.uses_switch_operations()) return {};
  for (const Kind kind : {Kind::all_reduce, Kind::reduce, Kind::broadcast}) {
    if (layout.always_ring || algorithms_for(options, kind).empty()) continue;
    for (const Route& route : possible_routes(options, layout, kind))
      for (const Phase& phase : route) {
        if (phase.shape.is_custom || !entry_of(phase.shape.algorithm).is_in_switch) continue;
        const auto& members = phase.axis->members;
        for (std::size_t first = 0; first < members.size(); first += phase.axis->size)
          groups.emplace(members.begin() + static_cast<std::ptrdiff_t>(first),
                         members.begin() + static_cast<std::ptrdiff_t>(first + phase.axis->size));
      }
  }
  return {groups.begin(), groups.end()};
}

void Engine::finish(const GroupLayout& layout, Kind kind, Bytes size, std::span<const Time> arrivals,
                    std::span<Time> completions, Turn turn) {
  ensure(arrivals.size() == layout.num_members && completions.size() == layout.num_members,
         "a collective needs one arrival and one completion of each member");
  if (layout.num_members == 1) {
    completions[0] = arrivals[0];
    return;
  }
  if (state_->is_whole(layout, kind, size)) {
    const Time last = std::ranges::max(arrivals);
    std::ranges::fill(completions, last + state_->library_duration(layout, kind, size));
    return;
  }
  KnownPlan& known = state_->plan(layout, kind, size, turn);
  const auto [first, last] = std::ranges::minmax(arrivals);
  Time least = last + tick(state_->delays.rounding());
  if (last + Time::from_ps(known.plan.end()) == Time::max()) {  // the last completion is no later than this
    std::ranges::fill(completions, Time::max());
    return;
  }
  if (first == last && known.plan.completes_together()) {
    std::ranges::fill(completions, std::max(first + Time::from_ps(known.plan.end()), least));
    return;
  }
  if (first != last) {
    state_->finish_unequal(known, arrivals, first, completions);
    // A late member may let others serve their chunks in an order that ends sooner than the shared one.
    if (known.plan.orders_by_member()) least = std::max(least, first + least_duration(layout, kind, size));
  } else {
    const std::vector<Ps>& relative = state_->relative(known, arrivals.size());
    for (std::size_t i = 0; i < completions.size(); ++i) completions[i] = first + Time::from_ps(relative[i]);
  }
  for (Time& completion : completions) completion = std::max(completion, least);
}

Time Engine::least_duration(const GroupLayout& layout, Kind kind, Bytes size) {
  if (layout.num_members == 1) return Time::zero();
  if (state_->is_whole(layout, kind, size)) return state_->library_duration(layout, kind, size);
  Ps least = std::numeric_limits<Ps>::max();
  for (const Turn turn : turns(layout, kind)) {
    KnownPlan& known = state_->plan(layout, kind, size, turn);
    const bool is_together = known.plan.completes_together();
    least =
        std::min(least, is_together ? known.plan.end() : std::ranges::min(state_->relative(known, layout.num_members)));
    least = std::min(least, known.plan.shortest().value_or(least));
    // Where ways differ and dimensions have turns of their own, there are too many cases to look at each.
    if (!is_together && turn.digits > 0 && layout.axes.size() > 1) least = 0;
  }
  return std::max(Time::from_ps(least), tick(state_->delays.rounding()));
}

bool Engine::turns_go_on() const {
  const Options& of = state_->options;
  return of.rules.turns_go_on && (of.chunks.queues > 1 || takes_turns_at_trees(of, Kind::all_reduce));
}

bool has_library(const Engine& engine) { return engine.state_->has_library(); }

const LibraryEffect& effect_of(const Engine& engine, const GroupLayout& layout, Kind kind, Bytes size) {
  static const LibraryEffect none;
  const bool is_of_library = has_library(engine) && !is_of_experts(kind) && layout.num_members > 1;
  return is_of_library ? engine.state_->library.effect(layout, kind, size) : none;
}

std::uint32_t num_queues(const Engine& engine) { return engine.state_->options.chunks.queues; }

bool turn_decides_way(const Engine& engine, const GroupLayout& layout, Kind kind) {
  const Options& options = engine.state_->options;
  if (!engine.turns_go_on()) return false;
  if (!layout.always_ring && takes_turns_at_trees(options, kind)) return true;
  if (options.chunks.queues == 1 || goes_up_and_down(options, parent(kind))) return false;
  return std::ranges::any_of(possible_routes(options, layout, kind), [&options](const Route& route) {
    return std::ranges::any_of(route, [&options](const Phase& phase) {
      if (phase.axis->size <= 2 || phase.shape.is_custom || !entry_of(phase.shape.algorithm).goes_round) return false;
      // Where all messages leave at once, nobody waits for the direction of others.
      const std::uint32_t window = phase.shape.algorithm.window, farthest = phase.axis->size - 1;
      const bool leaves_at_once = entry_of(phase.shape.algorithm).takes_window && (window == 0 || window >= farthest);
      return !leaves_at_once || !options.rules.sliding_windows;
    });
  });
}

Turn Engine::next_turn(Turn turn, const GroupLayout& layout, Kind kind, Bytes size) const {
  const Options& options = state_->options;
  if (!options.rules.turns_go_on || layout.num_members == 1 || state_->is_whole(layout, kind, size)) return {};
  const Chunks chunks = cut(options, kind, size, state_->delays.topology().num_npus(), layout.num_members);
  return after(options, layout, kind, turn, chunks.count);
}

std::uint32_t Engine::kinds_of_all() const {
  std::uint32_t bits = 0;
  for (unsigned kind = 0; kind <= static_cast<unsigned>(last_kind); ++kind)
    if (state_->options.rules.subgroup_is_ring &&
        std::ranges::any_of(algorithms_for(state_->options, static_cast<Kind>(kind)), &Algorithm::whole_communicator))
      bits |= 1U << kind;
  return bits;
}

std::vector<Turn> Engine::turns(const GroupLayout& layout, Kind kind) const {
  const Options& of = state_->options;
  std::set<Turn> different;
  const std::uint32_t queues = of.rules.turns_go_on && layout.num_members > 1 ? of.chunks.queues : 1;
  for (std::uint32_t queue = 0; queue < queues; ++queue)
    for (const bool is_odd_tree : {false, of.rules.turns_go_on})
      different.insert(that_counts(of, layout, kind, in_all_dimensions(of, layout, kind, queue, is_odd_tree)));
  return {different.begin(), different.end()};
}

std::vector<std::uint32_t> Engine::equivalence_classes(const GroupLayout& layout, std::span<const Kind> kinds,
                                                       std::span<const std::uint32_t> signatures) const {
  ensure(signatures.size() == layout.num_members, "every member has a signature");
  std::vector<Phase> phases;
  for (const Kind kind : kinds)
    for (const Route& route : possible_routes(state_->options, layout, kind))
      phases.insert(phases.end(), route.begin(), route.end());
  const auto in_whole = [&](const Phase& phase) { return layout.whole && phase.axis == &*layout.whole; };
  std::vector<const Axis*> axes;
  if (std::ranges::none_of(phases, in_whole))
    for (const Axis& axis : layout.axes) axes.push_back(&axis);
  else if (std::ranges::all_of(phases, in_whole))
    axes.push_back(&*layout.whole);
  const auto is_regular = [](const Axis* axis) { return axis->ports.empty() && axis->npus.empty(); };
  if (!axes.empty() && std::ranges::all_of(axes, is_regular))
    return collective::equivalence_classes(axes, phases, state_->options.rules, signatures);
  // Groups whose links differ have no symmetry, and neither have the grid and the group of all members together.
  std::vector<std::uint32_t> positions(signatures.size());
  std::iota(positions.begin(), positions.end(), 0U);
  return positions;
}

Time Engine::minimum_duration(const GroupLayout& layout) {
  if (layout.num_members == 1) return Time::zero();
  // A measured series may correct a time down, so that no more than a tick is certain.
  const auto& whole = state_->options.custom.whole;
  if (state_->has_library() || (whole && whole->carries_some(layout.num_members)))
    return tick(state_->delays.rounding());
  return state_->minimum_duration(layout);
}

const CustomCollective* Engine::custom_collective(const GroupLayout& layout, Kind kind) const {
  return custom_for(custom_collectives(state_->options, layout, kind), layout.num_members);
}

CollectiveFigures Engine::figures(const GroupLayout& layout, Kind kind, Bytes size) const {
  if (layout.num_members == 1) return {};
  const Options& options = state_->options;
  const auto carrier = is_of_experts(kind) ? std::optional(std::string(options.library.experts.kernels.name()))
                                           : state_->carrier(layout, kind, size);
  if (state_->has_library() || carrier) {
    PhaseFigures whole;
    for (const Axis& axis : layout.axes)
      whole.dimensions.insert(whole.dimensions.end(), axis.dimensions.begin(), axis.dimensions.end());
    if (layout.axes.empty()) whole.dimensions = layout.whole->dimensions;
    whole.size = layout.num_members;
    whole.kind = kind;
    whole.bytes = size;
    if (carrier) {
      if (is_of_experts(kind)) whole.experts = state_->expert_time(layout, size);
      whole.algorithm = *carrier;
      return {1, {whole}};
    }
    whole.library = state_->library.figures(layout, kind, size);
    whole.algorithm = whole.library->time.algorithm;
    if (const auto choice = state_->library.choice(layout, kind, size)) {
      whole.algorithm = choice->algorithm;
      whole.protocol = choice->protocol;
      whole.channels = choice->channels;
    }
    return {1, {whole}};
  }
  const Chunks chunks = cut(options, kind, size, state_->delays.topology().num_npus(), layout.num_members);
  const Routes routes = routes_of(state_->delays, options, layout, kind, chunks, {});
  CollectiveFigures result{chunks.count, {}};
  for (const Phase& phase : routes.routes[routes.of(0)]) {
    const PhaseShape& shape = phase.shape;
    const bool is_whole = layout.whole && phase.axis == &*layout.whole;
    result.phases.push_back(
        {.dimensions = phase.axis->dimensions,
         .size = phase.axis->size,
         .algorithm = shape.is_custom ? "custom" : name(shape.algorithm),
         .kind = shape.kind,
         .bytes = shape.size,
         .steps = make_algorithms(shape, phase.axis->size, options.rules).of(0).depth(),
         .is_fallback = is_whole && !shape.is_custom && !layout.always_ring && !shape.algorithm.whole_communicator});
  }
  return result;
}

bool Engine::fits(const GroupLayout& layout, Kind kind, Bytes size) {
  try {
    if (least_duration(layout, kind, size) == Time::max()) return false;
    (void)traffic(layout, kind, size);
    return true;
  } catch (const OutOfRange&) {
    return false;
  }
}

std::shared_ptr<const MessageProgram> Engine::message_program(const GroupLayout& layout, Kind kind, Bytes size,
                                                              Turn turn) {
  return state_->program(layout, kind, size, turn);
}

const CollectiveTraffic& Engine::traffic(const GroupLayout& layout, Kind kind, Bytes size) {
  return state_->traffic(layout, kind, size);
}

}  // namespace orrery::collective
