#include "step_traffic.hpp"

#include <algorithm>
#include <utility>

#include "orrery/base/error.hpp"

namespace orrery::serving {
namespace {

/// The ordinal of messages that carry activations to the next stage, which belong to no collective.
constexpr std::uint32_t of_activations = 0;

/// Tells the messages of an instance from those of communicators of jobs, and of other instances.
GroupId group_of(const InstanceSpec& spec) {
  constexpr std::uint32_t first = 1U << 30U;
  return GroupId(first + spec.npus.front().value());
}

}  // namespace

/// Carries out what a member's run of a collective asks for.
class StepTraffic::Transport final : public collective::CollectiveTransport {
 public:
  Transport(StepTraffic& traffic, const Group& group, std::uint32_t member, Time now)
      : traffic_(traffic), group_(group), member_(member), now_(now) {}

  void send(std::uint32_t to, Bytes size, network::StepId step, Payload what, std::uint32_t own_step) override {
    network::Message message = message_to(to, size, step);
    message.step.receipt_step = own_step;
    message.step.wants_receipt = what == Payload::acknowledged_data;
    traffic_.services_.send(message, now_);
  }
  void send_to_switch(std::span<const collective::MessageProgram::Receiver> members, Bytes size, Bytes result,
                      network::StepId step, Payload, std::uint32_t chunk) override {
    std::vector<NpuId> npus;
    for (const auto& member : members) npus.push_back(group_.members[member.member]);
    const bool is_first = members[0].member == member_;
    network::Message message = message_to(members[is_first ? 1 : 0].member, size, step);
    message.combining = {static_cast<std::uint32_t>(npus.size()), result, chunk};
    traffic_.services_.multicast(message, std::move(npus), now_);
  }
  void wake(network::StepId step, Time time, bool) override {
    if (time == now_)
      due_.push_back(step);
    else
      traffic_.schedule({false, group_.ordinal, member_, step}, time);
  }
  /// Wakes the run for the steps that need no time, and for those that become due by that, in their order.
  void wake_due(collective::MemberRun& run) {
    for (std::size_t i = 0; i < due_.size(); ++i) run.wake(due_[i], now_, *this);
    due_.clear();
  }

 private:
  network::Message message_to(std::uint32_t member, Bytes size, network::StepId step) const {
    const NpuId source = group_.members[member_];
    return {.source = source,
            .destination = group_.members[member],
            .node = NodeId(group_.ordinal),
            .size = size,
            .kind = network::Message::Kind::step_data,
            .last = {now_, source},
            .step = {.group = traffic_.group_, .ordinal = group_.ordinal, .member = member_, .id = step}};
  }

  StepTraffic& traffic_;
  const Group& group_;
  std::uint32_t member_;
  Time now_;
  std::vector<network::StepId> due_;
};

StepTraffic::StepTraffic(const InstanceSpec& spec, Services services)
    : spec_(spec), services_(std::move(services)), group_(group_of(spec)), stages_(spec.pipeline.stages) {}

void StepTraffic::add(std::uint64_t number, std::uint64_t after, std::vector<StagePlan> plan, Bytes hop, Time now) {
  flights_.push_back({.number = number, .after = after, .plan = std::move(plan), .hop = hop});
  start_if_ready(0, now);
}

void StepTraffic::schedule(const Wake& wake, Time time) {
  wakes_[next_wake_] = wake;
  services_.wake(next_wake_++, time);
}

/// Starts the next step of a stage if it is there and the stage is free.
void StepTraffic::start_if_ready(std::uint32_t s, Time now) {
  Stage& stage = stages_[s];
  if (stage.is_busy || flights_.empty() || stage.next > flights_.back().number) return;
  Flight& next = flight(stage.next);
  if (next.stage != s || next.messages_to_come > 0 || (s == 0 && next.after > num_ended_)) return;
  stage.is_busy = true;
  stage.has_computed = false;
  stage.section = stage.phase = 0;
  stage.repetition = 0;
  if (s == 0) started_.push_back(next.number);
  proceed(s, now);
}

/// Goes on with the step of a stage until it waits for something.
void StepTraffic::proceed(std::uint32_t s, Time now) {
  for (;;) {
    Stage& stage = stages_[s];
    const StagePlan& plan = flight(stage.next).plan[s];
    while (stage.section < plan.size() && plan[stage.section].phases.empty()) ++stage.section;
    if (stage.section == plan.size()) return end_of_stage(s, now);
    const StepPhase& phase = plan[stage.section].phases[stage.phase];
    if (!stage.has_computed && phase.compute > Time::zero()) {
      stage.has_computed = true;
      return schedule({.is_stage = true, .stage = s}, now + phase.compute);
    }
    if (phase.communicates && begin_collectives(s, phase, now)) return;
    next_phase(s, now);
  }
}

/// Turns to the next phase of a stage, without beginning it.
void StepTraffic::next_phase(std::uint32_t s, Time) {
  Stage& stage = stages_[s];
  const PlanSection& section = flight(stage.next).plan[s][stage.section];
  stage.has_computed = false;
  if (++stage.phase < section.phases.size()) return;
  stage.phase = 0;
  if (++stage.repetition < section.count) return;
  stage.repetition = 0;
  ++stage.section;
}

/// Begins the collective of a phase in each group. Returns whether one is under way.
bool StepTraffic::begin_collectives(std::uint32_t s, const StepPhase& phase, Time now) {
  const std::uint32_t tp = spec_.pipeline.tp, ranks = spec_.members;
  const std::size_t first = std::size_t{s} * tp;
  std::vector<std::vector<NpuId>> groups;
  if (phase.among_ranks) {
    for (std::uint32_t t = 0; t < tp; ++t) {
      auto& group = groups.emplace_back();
      for (std::uint32_t m = 0; m < ranks; ++m) group.push_back(spec_.npus_of(m)[first + t]);
    }
  } else {
    for (std::uint32_t m = 0; m < ranks; ++m) {
      const auto npus = spec_.npus_of(m).subspan(first, tp);
      groups.emplace_back(npus.begin(), npus.end());
    }
  }
  if (groups.front().size() < 2) return false;
  Stage& stage = stages_[s];
  stage.open_groups = static_cast<std::uint32_t>(groups.size());
  for (auto& group : groups) begin_group(s, std::move(group), phase, now);
  return stage.open_groups > 0;
}

void StepTraffic::begin_group(std::uint32_t s, std::vector<NpuId> members, const StepPhase& phase, Time now) {
  std::ranges::sort(members);
  const auto program = spec_.programs->program(members, phase.kind, phase.bytes);
  const std::uint32_t ordinal = next_ordinal_++;
  if (next_ordinal_ == of_activations) ++next_ordinal_;
  auto made = std::make_unique<Group>();
  Group& group = *made;
  group.stage = s;
  group.ordinal = ordinal;
  group.members = std::move(members);
  group.num_open = static_cast<std::uint32_t>(group.members.size());
  for (std::uint32_t i = 0; i < group.members.size(); ++i) group.runs.emplace_back(program, i, false);
  groups_[ordinal] = std::move(made);
  for (std::uint32_t i = 0; i < group.runs.size(); ++i) {
    Transport transport(*this, group, i, now);
    group.runs[i].begin(now, transport);
    transport.wake_due(group.runs[i]);
    if (group.runs[i].is_done()) --group.num_open;
  }
  if (group.num_open > 0) return;
  groups_.erase(ordinal);
  --stages_[s].open_groups;
}

/// Ends the collective of a group with its last member, and goes on with the stage when all groups have ended.
void StepTraffic::end_if_done(Group& group, std::uint32_t member, bool was_done, Time now) {
  if (was_done || !group.runs[member].is_done() || --group.num_open > 0) return;
  const std::uint32_t s = group.stage;
  groups_.erase(group.ordinal);
  if (--stages_[s].open_groups > 0) return;
  next_phase(s, now);
  proceed(s, now);
}

void StepTraffic::end_of_stage(std::uint32_t s, Time now) {
  Stage& stage = stages_[s];
  Flight& done = flight(stage.next);
  const std::uint64_t number = done.number;
  stage.is_busy = false;
  ++stage.next;
  done.stage = s + 1;
  if (done.stage == stages_.size()) {
    ended_.push_back(number);
    ++num_ended_;
    flights_.pop_front();
    start_if_ready(0, now);
  } else {
    const std::uint32_t tp = spec_.pipeline.tp;
    if (done.hop > Bytes(0)) done.messages_to_come = spec_.members * tp;
    for (std::uint32_t m = 0; done.hop > Bytes(0) && m < spec_.members; ++m)
      for (std::uint32_t t = 0; t < tp; ++t) {
        const NpuId source = spec_.npus_of(m)[std::size_t{s} * tp + t];
        services_.send({.source = source,
                        .destination = spec_.npus_of(m)[std::size_t{s + 1} * tp + t],
                        .node = NodeId(of_activations),
                        .size = done.hop,
                        .kind = network::Message::Kind::step_data,
                        .last = {now, source},
                        .step = {.group = group_, .ordinal = of_activations, .id = network::unpacked(number)}},
                       now);
      }
    start_if_ready(s + 1, now);
  }
  start_if_ready(s, now);
}

void StepTraffic::take_wake(std::uint32_t number, Time now) {
  const Wake wake = wakes_.extract(number).mapped();
  if (wake.is_stage) return proceed(wake.stage, now);
  Group& group = *groups_.at(wake.stage);
  collective::MemberRun& run = group.runs[wake.member];
  const bool was_done = run.is_done();
  Transport transport(*this, group, wake.member, now);
  run.wake(wake.step, now, transport);
  transport.wake_due(run);
  end_if_done(group, wake.member, was_done, now);
}

void StepTraffic::take_message(const network::Message& message, Time now) {
  if (message.step.ordinal == of_activations) {
    Flight& of = flight(network::packed(message.step.id));
    if (--of.messages_to_come == 0) start_if_ready(of.stage, now);
    return;
  }
  Group& group = *groups_.at(message.step.ordinal);
  const auto member =
      static_cast<std::uint32_t>(std::ranges::find(group.members, message.destination) - group.members.begin());
  collective::MemberRun& run = group.runs[member];
  const bool was_done = run.is_done();
  Transport transport(*this, group, member, now);
  run.receive(message.step.member, message.step.id, false, now, transport);
  transport.wake_due(run);
  end_if_done(group, member, was_done, now);
}

void StepTraffic::take_receipt(std::uint32_t ordinal, NpuId sender, network::StepId step, Time now) {
  Group& group = *groups_.at(ordinal);
  const auto member = static_cast<std::uint32_t>(std::ranges::find(group.members, sender) - group.members.begin());
  collective::MemberRun& run = group.runs[member];
  const bool was_done = run.is_done();
  Transport transport(*this, group, member, now);
  run.wake(step, now, transport);
  transport.wake_due(run);
  end_if_done(group, member, was_done, now);
}

}  // namespace orrery::serving
