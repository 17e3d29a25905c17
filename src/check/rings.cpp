#include "rings.hpp"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "orrery/base/text.hpp"

namespace orrery::check {
namespace {

// Up to so many members every algorithm is about as good as another.
constexpr std::uint32_t small_ring = 2, small_dimension = 4;
constexpr Bytes some_bytes(1U << 20U);  // routes depend on the size in some schedulers; who is in a ring does not

std::string key_of(collective::Kind kind) {
  return fmt::format("system.collectives.{}", name(collective::parent(kind)));
}

/// Returns what decides who the members of groups are.
std::string_view key_of_groups(const config::Configuration& configuration) {
  if (!configuration.workload.jobs.empty()) return "the allocation or the groups of the job (jobs.allocation)";
  const config::Workload& workload = configuration.workload;
  if (workload.generated) return "the sizes or the placement in workload.parallel";
  return workload.groups ? "workload.groups" : "the groups in the traces (workload.traces)";
}

}  // namespace

bool UnaskedRings::is_given(collective::Kind kind) const {
  const auto& places = subject_.configuration.places;
  return places.contains(key_of(kind)) || places.contains(fmt::format("system.collectives.{}", name(kind)));
}

void UnaskedRings::look_at(const communicator::CommunicatorSpec& spec, const collective::GroupLayout& layout,
                           collective::Kind kind, NpuId first_member) {
  const bool has_library = subject_.configuration.collectives.library.library.has_value();  // which chooses itself
  if (kind == collective::Kind::barrier || has_library) return;
  const auto [found, added] = known_.try_emplace({&layout, kind});
  if (added) found->second = subject_.run.engine.figures(layout, kind, some_bytes);
  for (const auto& phase : found->second.phases) {
    if (phase.is_fallback && phase.size > small_ring && flat_.insert(spec.id).second)
      note_flat(spec, kind, first_member);
    const bool may_be_default =
        phase.dimensions.size() == 1 && phase.algorithm == "ring" && phase.size > small_dimension && !phase.is_fallback;
    if (may_be_default && !is_given(kind) && defaults_.insert({spec.id, phase.dimensions[0]}).second)
      note_default(phase, kind, first_member);
  }
}

void UnaskedRings::note_flat(const communicator::CommunicatorSpec& spec, collective::Kind kind, NpuId first_member) {
  const auto& group = *spec.group;
  notices_.add(
      "flat-ring", first_member.value(),
      fmt::format("{} ({}: {}) fills no grid of the dimensions in system.network.dimensions: its {} goes round "
                  "one ring in the order listed, whatever {} says. Change {}, or ask for the ring: {}: "
                  "[oneRing]",
                  trace::describe(group), counted(group.members.size(), "member"), list(group.members), name(kind),
                  key_of(kind), key_of_groups(subject_.configuration), key_of(kind)));
}

void UnaskedRings::note_default(const collective::PhaseFigures& phase, collective::Kind kind, NpuId first_member) {
  const auto& dimension = subject_.run.topology().dimension(phase.dimensions[0]);
  if (dimension.shape->pattern != topology::TrafficPattern::exchanges) return;
  notices_.add(
      fmt::format("default-ring {}", phase.dimensions[0]), first_member.value(),
      fmt::format("{} is not given, and dimension {} ({} of {}) takes ring, in {}: halvingDoubling, which "
                  "suits the shape, needs a size that is a power of two. Name an algorithm for each dimension, "
                  "such as direct, or ring to keep it",
                  key_of(kind), phase.dimensions[0], topology::name(dimension.shape), dimension.size,
                  counted(phase.steps, "step")));
}

}  // namespace orrery::check
