// What an engine computes, and keeps of it.
#include "engine_state.hpp"

#include <algorithm>

#include "message_program_parts.hpp"
#include "orrery/base/error.hpp"
#include "orrery/collective/whole_durations.hpp"
#include "sent_bytes.hpp"
#include "turns.hpp"
#include "validation.hpp"

namespace orrery::collective {
namespace {

/// Returns the size by which a collective is known.
Bytes size_of_key(Kind kind, Bytes size) { return kind == Kind::barrier ? Bytes(0) : size; }

}  // namespace

ExpertTime Engine::State::expert_time(const GroupLayout& layout, Bytes size) const {
  return expert_exchange(options.library.experts, expert_group(delays.topology(), options, layout),
                         static_cast<double>(size.count()));
}

std::optional<std::string> Engine::State::carrier(const GroupLayout& layout, Kind kind, Bytes size) const {
  if (!options.custom.whole || layout.num_members == 1 || layout.custom) return {};
  return options.custom.whole->carrier(kind, layout.num_members, whole_buffer(kind, layout.num_members, size));
}

Time Engine::State::library_duration(const GroupLayout& layout, Kind kind, Bytes size) {
  const CollectiveKey key{&layout, kind, size};
  if (const auto known = library_durations.find(key); known != library_durations.end()) return known->second;
  const auto rounded = [&](double seconds) { return duration_from_ns(seconds * 1e9, delays.rounding()); };
  const Time time = is_of_experts(kind) ? rounded(expert_time(layout, size).seconds)
                    : has_library()     ? rounded(library.time(layout, kind, size).seconds)
                                        : options.custom.whole->duration(delays, first_members.at(&layout), kind,
                                                                         whole_buffer(kind, layout.num_members, size));
  return library_durations.emplace(key, std::max(time, tick(delays.rounding()))).first->second;
}

KnownPlan& Engine::State::plan(const GroupLayout& layout, Kind kind, Bytes size, Turn turn) {
  const CollectiveKey key{&layout, kind, size_of_key(kind, size), that_counts(options, layout, kind, turn)};
  if (KnownPlan* const known = plans.find(key)) return *known;
  Plan made(delays, options, layout, kind, size, key.turn);
  const std::size_t bytes = made.memory() + (made.completes_together() ? 0 : layout.num_members * sizeof(Ps));
  return plans.add(key, {std::move(made), {}}, bytes);
}

const std::vector<Ps>& Engine::State::relative(KnownPlan& known, std::size_t num_members) {
  std::vector<Ps>& ends = known.relative;
  if (ends.empty()) {
    arrivals.assign(num_members, 0);
    ends.resize(num_members);
    known.plan.run(arrivals, ends, workspace);
  }
  return ends;
}

void Engine::State::finish_unequal(const KnownPlan& known, std::span<const Time> since, Time first,
                                   std::span<Time> out) {
  arrivals.resize(since.size());
  completions.resize(since.size());
  for (std::size_t i = 0; i < since.size(); ++i) arrivals[i] = (since[i] - first).ps();
  known.plan.run(arrivals, completions, workspace);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = first + Time::from_ps(completions[i]);
}

Time Engine::State::minimum_duration(const GroupLayout& layout) {
  const auto [known, is_new] = minimum_durations.try_emplace(&layout);
  if (is_new) known->second = computed_minimum_duration(layout);
  return known->second;
}

Time Engine::State::computed_minimum_duration(const GroupLayout& layout) const {
  const Time endpoint_delay = options.endpoint_delay_of(layout.subgroup);
  // Kernels of experts know no endpoint delays.
  const double ns =
      std::min(options.library.experts.kernels->latency, options.library.experts.kernels->latency_in_server) * 1e9;
  const Time least_of_experts = duration_from_ns(ns, delays.rounding());
  std::uint64_t fewest = ~std::uint64_t{0};
  for (const Kind kind : {Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter, Kind::all_to_all, Kind::broadcast,
                          Kind::reduce, Kind::gather, Kind::scatter}) {
    const bool is_custom = !custom_collectives(options, layout, kind).empty();
    if (!is_custom && !layout.always_ring && algorithms_for(options, kind).empty()) continue;
    for (const Route& route : possible_routes(options, layout, kind)) {
      if (!std::ranges::all_of(route, has_steps)) continue;  // collectives of this kind are refused
      std::uint64_t count = 0;
      for (const Phase& phase : route) {
        const auto algorithms = make_algorithms(phase.shape, phase.axis->size, options.rules);
        count += std::min(algorithms.of(0).fewest_endpoint_delays(), algorithms.of(1).fewest_endpoint_delays());
      }
      fewest = std::min(fewest, count);
    }
  }
  if (fewest == ~std::uint64_t{0}) return tick(delays.rounding());
  return std::max(tick(delays.rounding()),
                  std::min(endpoint_delay * static_cast<std::int64_t>(fewest), least_of_experts));
}

const CollectiveTraffic& Engine::State::traffic(const GroupLayout& layout, Kind kind, Bytes size) {
  const CollectiveKey key{&layout, kind, size_of_key(kind, size)};
  if (const auto found = traffics.find(key); found != traffics.end()) return found->second;
  return traffics.emplace(key, computed_traffic(layout, kind, size)).first->second;
}

std::shared_ptr<const MessageProgram> Engine::State::program(const GroupLayout& layout, Kind kind, Bytes size,
                                                             Turn turn) {
  const CollectiveKey key{&layout, kind, size_of_key(kind, size), that_counts(options, layout, kind, turn)};
  if (const auto* const known = programs.find(key)) return *known;
  auto made = made_program(layout, kind, size, key.turn);
  const std::size_t bytes = made->memory();
  return programs.add(key, std::move(made), bytes);  // who uses a program holds it
}

std::shared_ptr<const MessageProgram> Engine::State::made_program(const GroupLayout& layout, Kind kind, Bytes size,
                                                                  Turn turn) {
  if (has_library() && !is_of_experts(kind)) return library.program(layout, kind, size);
  const Schedule& schedule = this->plan(layout, kind, size, turn).plan.schedule();
  return std::make_shared<const MessageProgram>(std::make_unique<const MessageProgram::Parts>(
      delays, options, layout.shared_from_this(), kind, size, turn, schedule));
}

CollectiveTraffic Engine::State::computed_traffic(const GroupLayout& layout, Kind kind, Bytes size) {
  if (is_of_experts(kind))
    return expert_traffic(delays.topology(), layout, expert_time(layout, size), options.library.node_dimensions);
  if (has_library() && options.library.relative) return library.traffic(layout, kind, size);
  return collective::traffic_of(delays, options, layout, kind, size);
}

}  // namespace orrery::collective
