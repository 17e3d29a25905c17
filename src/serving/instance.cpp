#include "instance.hpp"

#include <algorithm>
#include <utility>

#include "padding.hpp"

namespace orrery::serving {

Instance::Instance(std::vector<Scheduler> members, const Pipeline& pipeline, StepModel& cost, const Ways& ways)
    : members_(std::move(members)),
      cost_(cost),
      ways_(ways),
      depth_(pipeline.stages + (members_.front().options().ahead ? 1 : 0)),
      stages_{pipeline, std::vector<Time>(pipeline.stages), std::vector<Time>(pipeline.stages)},
      sums_(members_.size()) {}

/// Adds to the integrals over time what held since the last call.
void Instance::advance_sums(Time now) {
  const auto span = static_cast<std::uint64_t>((now - summed_until_).ps());
  if (span == 0) return;
  summed_until_ = now;
  for (std::size_t m = 0; m < members_.size(); ++m) {
    const Scheduler& member = members_[m];
    sums_[m][0] += static_cast<unsigned __int128>(member.pool().used()) * span;
    sums_[m][1] += static_cast<unsigned __int128>(member.num_running()) * span;
    sums_[m][2] += static_cast<unsigned __int128>(member.num_waiting()) * span;
  }
}

void Instance::close_records() {
  for (std::size_t m = 0; m < members_.size(); ++m) {
    InstanceRecord& record = members_[m].record();
    record.evicted = members_[m].pool().evicted();
    record.used_at_end = members_[m].pool().used();
    const auto split = [](unsigned __int128 sum, std::uint64_t& high, std::uint64_t& low) {
      high = static_cast<std::uint64_t>(sum >> 64U);
      low = static_cast<std::uint64_t>(sum);
    };
    split(sums_[m][0], record.used_sum_high, record.used_sum_low);
    split(sums_[m][1], record.running_sum_high, record.running_sum_low);
    split(sums_[m][2], record.waiting_sum_high, record.waiting_sum_low);
  }
}

void Instance::end_steps(Time now, Effects& effects) {
  advance_sums(now);
  if (flight_.empty() || flight_.front().end != now) return;
  Flight flight = std::move(flight_.front());
  flight_.pop_front();
  for (std::size_t m = 0; m < members_.size(); ++m) {
    Scheduler& member = members_[m];
    member.finish(flight.steps[m], now);
    if (ways_.reports_counts) {
      effects.reports.push_back({Report::Kind::waiting, member.number(), member.num_waiting(), flight.scheduled});
      effects.reports.push_back({Report::Kind::running, member.number(), member.num_running(), flight.scheduled});
    }
    for (const std::uint32_t request : member.left())
      effects.reports.push_back({Report::Kind::finished, member.number(), request, flight.scheduled});
  }
  spare_.push_back(std::move(flight));
}

void Instance::take_arrived(std::span<const Arrived> arrived) {
  for (const Arrived& each : arrived) {
    Scheduler& member = members_[each.member];
    if (each.is_transfer)
      member.take_transfer(each.request, each.first_token);
    else
      member.release_kept(each.request);
  }
}

void Instance::take_deliveries(std::span<const Delivery> deliveries) {
  for (const Delivery& each : deliveries)
    members_[each.instance - first()].deliver(each.request, each.home, each.first_token, each.is_measured);
}

Instance::Flight Instance::take_spare() {
  if (spare_.empty()) {
    Flight flight;
    flight.steps.resize(members_.size());
    return flight;
  }
  Flight flight = std::move(spare_.back());
  spare_.pop_back();
  return flight;
}

/// Lets each member schedule a step. Returns false if none has one.
bool Instance::schedule_all(Time now, Flight& flight, Effects& effects) {
  bool any = false;
  for (std::size_t m = 0; m < members_.size(); ++m) {
    Scheduler& member = members_[m];
    flight.steps[m].number = flight.number;
    any = member.schedule(now, !flight_.empty(), flight.steps[m]) || any;
    for (const Pull& pull : member.pulls()) effects.pulls.emplace_back(member.number(), pull);
  }
  return any;
}

void Instance::pass_stages(Time now, Flight& flight) {
  const Time least = Time::from_ps(1);
  shapes_.clear();
  for (const Step& step : flight.steps) shapes_.push_back(&step.shape);
  if (stages_.pipeline.stages > 1)
    cost_.stage_durations(shapes_, flight.number, stages_.times);
  else if (shapes_.size() == 1)
    stages_.times[0] = cost_.duration(*shapes_[0], flight.number);
  else
    stages_.times[0] = cost_.group_duration(shapes_, flight.number);
  flight.start = std::max(now, stages_.free_from[0]);
  // A token that a step needs comes with the end of the step that makes it.
  for (const Flight& earlier : flight_)
    for (const Step& step : flight.steps)
      if (earlier.number < step.after) flight.start = std::max(flight.start, earlier.end);
  const Bytes activations = this->activations();
  const Time hop = stages_.pipeline.hop && activations > Bytes(0) ? stages_.pipeline.hop(activations) : Time();
  Time at = flight.start;
  for (std::size_t s = 0; s < stages_.free_from.size(); ++s) {
    at = std::max(at, stages_.free_from[s]) + std::max(stages_.times[s], least);
    stages_.free_from[s] = at;
    if (s + 1 < stages_.free_from.size()) at += hop;
  }
  flight.end = at;
}

Bytes Instance::activations() const {
  if (stages_.pipeline.stages == 1) return {};
  std::uint64_t rows = 1;
  for (const StepShape* const shape : shapes_)
    rows = std::max(rows, padded(stages_.pipeline.graph_sizes, std::max<std::uint64_t>(1, shape->tokens())));
  return Bytes((rows * stages_.pipeline.row_bytes + stages_.pipeline.tp - 1) / stages_.pipeline.tp);
}

/// Writes the times of a flight into the records.
void Instance::note_all(Flight& flight) {
  for (std::size_t m = 0; m < members_.size(); ++m) {
    Step& step = flight.steps[m];
    step.start = flight.start;
    step.end = flight.end;
    note(step, members_[m]);
  }
  busy_until_ = flight.end;
}

std::span<const StepShape* const> Instance::shapes_of(std::uint64_t number) {
  shapes_.clear();
  for (const Step& step : flight_[number - flight_.front().number].steps) shapes_.push_back(&step.shape);
  return shapes_;
}

std::uint64_t Instance::needs(std::uint64_t number) const {
  std::uint64_t after = 0;
  for (const Step& step : flight_[number - flight_.front().number].steps) after = std::max(after, step.after);
  return after;
}

void Instance::start_step(std::uint64_t number, Time now) { flight_[number - flight_.front().number].start = now; }

void Instance::end_oldest(Time now) {
  flight_.front().end = now;
  note_all(flight_.front());
}

void Instance::begin_steps(Time now, Effects& effects) {
  while (flight_.size() < depth_) {
    Flight flight = take_spare();
    flight.number = next_number_;
    if (!schedule_all(now, flight, effects)) {
      spare_.push_back(std::move(flight));
      return;
    }
    ++next_number_;
    flight.scheduled = now;
    for (std::size_t m = 0; m < members_.size(); ++m) {
      Step& step = flight.steps[m];
      step.scheduled = now;
      if (step.is_empty()) step.used_blocks = members_[m].pool().used();
    }
    if (!ways_.is_carried_out) {
      pass_stages(now, flight);
      note_all(flight);
      if (ways_.tells_prefills) tell_prefills(flight, effects);
      effects.step_ends.push_back(flight.end);
    } else {
      flight.end = Time::max();
      effects.begun.push_back(flight.number);
    }
    flight_.push_back(std::move(flight));
  }
}

void Instance::tell_prefills(const Flight& flight, Effects& effects) {
  for (std::size_t m = 0; m < members_.size(); ++m)
    for (const Step::Sampled& sampled : flight.steps[m].sampled) {
      const std::uint32_t request = members_[m].request_of(sampled.slot), number = members_[m].number();
      if (!members_[m].goes_on_elsewhere(request)) continue;
      effects.prefills.push_back({request, number, flight.start, flight.end});
      effects.reports.push_back({Report::Kind::prefilling, number, request, flight.scheduled});
    }
}

void Instance::note(const Step& step, Scheduler& member) {
  InstanceRecord& record = member.record();
  ++record.steps;
  record.busy += step.end - std::max(step.start, busy_until_);  // steps of a pipeline overlap
  record.peak_used = std::max(record.peak_used, member.pool().used());
  if (!ways_.records_steps) return;
  steps.push_back({.instance = member.number(),
                   .used_blocks = step.used_blocks,
                   .number = step.number,
                   .scheduled = step.scheduled,
                   .start = step.start,
                   .end = step.end,
                   .num_items = static_cast<std::uint32_t>(step.items.size()),
                   .num_preempted = static_cast<std::uint32_t>(step.preempted.size())});
  items.insert(items.end(), step.items.begin(), step.items.end());
  preempted.insert(preempted.end(), step.preempted.begin(), step.preempted.end());
}

}  // namespace orrery::serving
