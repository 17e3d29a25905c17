#include "orrery/collective/message_program.hpp"

#include <algorithm>
#include <map>

#include "message_program_parts.hpp"

namespace orrery::collective {
namespace {

/// Where a member stands in a phase.
struct Standing {
  Standing(const ScriptPhase& phase, std::uint32_t member)
      : place(phase.stand(member) % phase.axis->size),
        line(phase.stand(member) / phase.axis->size),
        members(phase.axis->members.data() + (phase.stand(member) - place)) {}

  std::uint32_t place = 0;  ///< in its line
  std::uint32_t line = 0;
  const std::uint32_t* members = nullptr;  ///< [places] that stand in the line
};

}  // namespace

MessageProgram::Parts::Parts(const network::DelayModel& delays, const Options& options,
                             std::shared_ptr<const GroupLayout> of, Kind kind, Bytes size, const Schedule& schedule)
    : layout(std::move(of)) {
  const Chunks chunks = cut(options, kind, size, delays.topology().num_npus(), layout->num_members);
  num_chunks = chunks.count;
  const Routes routes = routes_of(delays, options, *layout, kind, chunks);
  std::vector<std::uint32_t> first;  // [routes] of its stages
  for (const Route& route : routes.routes) {
    first.push_back(static_cast<std::uint32_t>(phases.size()));
    for (const Phase& phase : route) phases.push_back(make_phase(delays, options, phase));
  }
  if (goes_whole(options, kind))
    for (ScriptPhase& phase : phases) phase.has_data = lines_with_data(*phase.axis);
  for (const collective::Service& service : schedule.services) {
    services.push_back({service.chunk, service.stage - first[routes.of(service.chunk)], service.stage});
    queue_of.push_back(service.queue);
  }
}

ScriptPhase MessageProgram::Parts::make_phase(const network::DelayModel& delays, const Options& options,
                                              const Phase& phase) {
  const Axis& axis = *phase.axis;
  ScriptPhase made;
  made.axis = &axis;
  if (!axis.in_order) {
    std::vector<std::uint32_t>& of_members = stands[&axis];
    of_members.resize(layout->num_members);
    for (std::uint32_t stand = 0; stand < axis.members.size(); ++stand) of_members[axis.members[stand]] = stand;
    made.stands = of_members.data();
  }
  made.lines = make_line_script(phase.shape, line_context(delays, options, *layout, axis));
  made.in_service = in_service(delays, options, phase);
  return made;
}

/// The root is the first in each dimension: the lines of an axis that hold data are those whose members are first in
/// all lower ones.
std::vector<bool> MessageProgram::Parts::lines_with_data(const Axis& axis) const {
  std::vector<bool> has_data(axis.num_lines(), true);
  for (const ScriptPhase& phase : phases) {
    if (phase.axis >= &axis) continue;
    for (std::uint32_t line = 0; line < axis.num_lines(); ++line)
      if (Standing(phase, axis.members[std::size_t{line} * axis.size]).place != 0) has_data[line] = false;
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
      places_.push_back(static_cast<std::uint32_t>(
          std::min<std::uint64_t>(parts_->phases[services_[service].stage].in_service, services_.size())));
    }
    queues_[found->second].push_back(service);
    queue_of_.push_back(found->second);
  }
}

MessageProgram::~MessageProgram() = default;

Time MessageProgram::opening(std::uint32_t service) const {
  return parts_->phases[services_[service].stage].lines->opening();
}

std::uint32_t MessageProgram::num_steps(std::uint32_t service, std::uint32_t member) const {
  const ScriptPhase& phase = parts_->phases[services_[service].stage];
  return phase.lines->num_steps(Standing(phase, member).place);
}

const CustomCollective* MessageProgram::procedure(std::uint32_t service) const {
  return parts_->phases[services_[service].stage].lines->procedure();
}

MessageProgram::Move MessageProgram::move(std::uint32_t service, std::uint32_t step, std::uint32_t member) const {
  const ScriptPhase& phase = parts_->phases[services_[service].stage];
  const Standing here(phase, member);
  Move move = phase.lines->move(services_[service].chunk, here.place, step);
  if (phase.has_data.empty() || phase.has_data[here.line]) return move;
  move.message = Bytes(0);
  if (move.from_switch) move.from_switch = Bytes(0);
  move.reduction = Time::zero();
  return move;
}

void MessageProgram::receivers(std::uint32_t service, std::uint32_t step, std::uint32_t member,
                               std::vector<Receiver>& out) const {
  out.clear();
  const ScriptPhase& phase = parts_->phases[services_[service].stage];
  const Standing here(phase, member);
  phase.lines->receivers(services_[service].chunk, here.place, step, out);
  for (Receiver& to : out) to.member = here.members[to.member];
}

void MessageProgram::senders(std::uint32_t service, std::uint32_t step, std::uint32_t member,
                             std::vector<std::uint32_t>& out) const {
  out.clear();
  const ScriptPhase& phase = parts_->phases[services_[service].stage];
  const Standing here(phase, member);
  phase.lines->senders(services_[service].chunk, here.place, step, out);
  for (std::uint32_t& from : out) from = here.members[from];
}

std::size_t MessageProgram::memory() const {
  std::size_t bytes = sizeof(*this) + services_.size() * 2 * (sizeof(Service) + 2 * sizeof(std::uint32_t));
  for (const auto& [axis, of_members] : parts_->stands) bytes += of_members.size() * sizeof(std::uint32_t);
  for (const ScriptPhase& phase : parts_->phases) bytes += sizeof(phase) + phase.lines->memory();
  return bytes;
}

Bytes clear_to_send_size() { return control_message; }

}  // namespace orrery::collective
