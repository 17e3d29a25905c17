#include "instance.hpp"

#include <algorithm>
#include <utility>

namespace orrery::serving {

Instance::Instance(std::vector<Scheduler> members, StepModel& cost, bool reports_counts, bool records_steps)
    : members_(std::move(members)),
      cost_(cost),
      reports_counts_(reports_counts),
      records_steps_(records_steps),
      depth_(members_.front().options().ahead ? 2 : 1),
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
    if (reports_counts_) {
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
      member.take_transfer(each.request);
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
    any = member.schedule(now, !flight_.empty(), flight.steps[m]) || any;
    for (const Pull& pull : member.pulls()) effects.pulls.emplace_back(member.number(), pull);
  }
  return any;
}

void Instance::begin_steps(Time now, Effects& effects) {
  while (flight_.size() < depth_) {
    Flight flight = take_spare();
    if (!schedule_all(now, flight, effects)) {
      spare_.push_back(std::move(flight));
      return;
    }
    flight.number = next_number_++;
    flight.scheduled = now;
    flight.start = std::max(now, busy_until_);
    Time duration;
    if (members_.size() == 1) {
      duration = cost_.duration(flight.steps[0].shape, flight.number);
    } else {
      std::vector<const StepShape*> shapes;
      for (const Step& step : flight.steps) shapes.push_back(&step.shape);
      duration = cost_.group_duration(shapes, flight.number);
    }
    flight.end = flight.start + std::max(duration, Time::from_ps(1));
    busy_until_ = flight.end;
    for (std::size_t m = 0; m < members_.size(); ++m) {
      Step& step = flight.steps[m];
      step.number = flight.number;
      step.scheduled = now;
      step.start = flight.start;
      step.end = flight.end;
      if (step.is_empty()) step.used_blocks = members_[m].pool().used();
      note(step, members_[m]);
    }
    effects.step_ends.push_back(flight.end);
    flight_.push_back(std::move(flight));
  }
}

void Instance::note(const Step& step, Scheduler& member) {
  InstanceRecord& record = member.record();
  ++record.steps;
  record.busy += step.end - step.start;
  record.peak_used = std::max(record.peak_used, member.pool().used());
  if (!records_steps_) return;
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
