#include "orrery/collective/message_program.hpp"

#include <algorithm>
#include <map>

#include "message_program_parts.hpp"

namespace orrery::collective {
namespace {

/// Where a member is in a phase.
struct PlaceInPhase {
  PlaceInPhase(const ProgramPhase& phase, std::uint32_t member)
      : position(phase.cell(member) % phase.axis->size),
        group(phase.cell(member) / phase.axis->size),
        members(phase.axis->members.data() + (phase.cell(member) - position)) {}

  std::uint32_t position = 0;  ///< position in its dimension group
  std::uint32_t group = 0;
  const std::uint32_t* members = nullptr;  ///< [positions] of the group
};

}  // namespace

MessageProgram::Parts::Parts(const network::DelayModel& delays, const Options& options,
                             std::shared_ptr<const GroupLayout> of, Kind kind, Bytes size, Turn turn,
                             const Schedule& schedule)
    : layout(std::move(of)),
      clears_first(delays.rules().clears_first),
      in_order_of_chunks(options.rules.chunks_begin_in_order) {
  const Chunks chunks = cut(options, kind, size, delays.topology().num_npus(), layout->num_members);
  num_chunks = chunks.count;
  const Routes routes = routes_of(delays, options, *layout, kind, chunks, turn);
  std::vector<std::uint32_t> first;  // [routes] of its stages
  for (const Route& route : routes.routes) {
    first.push_back(static_cast<std::uint32_t>(phases.size()));
    for (const Phase& phase : route) phases.push_back(make_phase(delays, options, phase));
  }
  if (goes_whole(options, kind))
    for (ProgramPhase& phase : phases) phase.has_data = groups_with_data(*phase.axis);
  const std::vector<std::uint32_t> dimensions = dimensions_of_turns(options, *layout, kind);
  const std::uint32_t queues = options.chunks.queues;
  for (const ScheduledService& service : schedule.services) {
    services.push_back({service.chunk, service.stage - first[routes.of(service.chunk)], service.stage});
    queue_of.push_back(dimensions[service.queue / queues] * queues + service.queue % queues);
  }
}

ProgramPhase MessageProgram::Parts::make_phase(const network::DelayModel& delays, const Options& options,
                                               const Phase& phase) {
  const Axis& axis = *phase.axis;
  ProgramPhase made;
  made.axis = &axis;
  if (!axis.in_order) {
    std::vector<std::uint32_t>& of_members = cells[&axis];
    if (of_members.empty()) of_members = axis.places();  // phases point into it
    made.cells = of_members.data();
  }
  const GroupContext context = group_context(delays, options, *layout, axis);
  made.programs = make_algorithms(phase.shape, axis.size, options.rules).map([&](const PhaseAlgorithm& algorithm) {
    return algorithm.program(context);
  });
  made.in_service = in_service(delays, options, phase);
  return made;
}

/// The root is the first in each dimension: the groups of an axis that hold data are those whose members are first in
/// all lower dimensions.
std::vector<bool> MessageProgram::Parts::groups_with_data(const Axis& axis) const {
  std::vector<bool> has_data(axis.num_groups(), true);
  for (const ProgramPhase& phase : phases) {
    if (phase.axis >= &axis) continue;
    for (std::uint32_t group = 0; group < axis.num_groups(); ++group)
      if (PlaceInPhase(phase, axis.members[std::size_t{group} * axis.size]).position != 0) has_data[group] = false;
  }
  return has_data;
}

MessageProgram::MessageProgram(std::unique_ptr<const Parts> parts)
    : parts_(std::move(parts)),
      num_chunks_(static_cast<std::uint32_t>(parts_->num_chunks)),
      services_(parts_->services) {
  std::map<std::uint32_t, std::uint32_t> number;
  for (std::uint32_t service = 0; service < services_.size(); ++service) {
    const auto [found, is_new] =
        number.try_emplace(parts_->queue_of[service], static_cast<std::uint32_t>(queues_.size()));
    if (is_new) {
      queues_.emplace_back();
      slots_.push_back(static_cast<std::uint32_t>(
          std::min<std::uint64_t>(parts_->phases[services_[service].stage].in_service, services_.size())));
    }
    queues_[found->second].push_back(service);
    queue_of_.push_back(found->second);
  }
}

MessageProgram::~MessageProgram() = default;

bool MessageProgram::sends_clears_first() const { return parts_->clears_first; }
bool MessageProgram::begins_in_order_of_chunks() const { return parts_->in_order_of_chunks; }

std::uint32_t MessageProgram::place_of_queue(std::uint32_t service) const { return parts_->queue_of[service]; }

Time MessageProgram::opening(std::uint32_t service) const {
  return parts_->phases[services_[service].stage].programs.of(services_[service].chunk).opening();
}

std::uint32_t MessageProgram::num_steps(std::uint32_t service, std::uint32_t member) const {
  const ProgramPhase& phase = parts_->phases[services_[service].stage];
  return phase.programs.of(services_[service].chunk).num_steps(PlaceInPhase(phase, member).position);
}

const SlidingWindow* MessageProgram::sliding_window(std::uint32_t service) const {
  return parts_->phases[services_[service].stage].programs.of(services_[service].chunk).sliding_window();
}

const CustomCollective* MessageProgram::custom_collective(std::uint32_t service) const {
  return parts_->phases[services_[service].stage].programs.even->custom_collective();
}

const MemberStep& MessageProgram::step(std::uint32_t service, std::uint32_t k, std::uint32_t member) const {
  const ProgramPhase& phase = parts_->phases[services_[service].stage];
  const PlaceInPhase here(phase, member);
  phase.programs.of(services_[service].chunk).step(here.position, k, step_);
  for (Receiver& to : step_.step.sends) to.member = here.members[to.member];
  for (std::uint32_t& from : step_.step.receives) from = here.members[from];
  if (phase.has_data.empty() || phase.has_data[here.group]) return step_;
  step_.step.bytes = Bytes(0);
  if (step_.step.through_switch) step_.step.through_switch->down = Bytes(0);
  step_.reduction = Time::zero();
  return step_;
}

std::size_t MessageProgram::memory() const {
  std::size_t bytes = sizeof(*this) + services_.size() * 2 * (sizeof(Service) + 2 * sizeof(std::uint32_t));
  for (const auto& [axis, of_members] : parts_->cells) bytes += of_members.size() * sizeof(std::uint32_t);
  if (parts_->everyone) bytes += parts_->everyone->members.size() * sizeof(std::uint32_t);
  for (const ProgramPhase& phase : parts_->phases)
    bytes += sizeof(phase) + phase.programs.even->memory() + (phase.programs.odd ? phase.programs.odd->memory() : 0);
  return bytes;
}

Bytes clear_to_send_size() { return clear_to_send_bytes; }

}  // namespace orrery::collective
