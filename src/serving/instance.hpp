#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "orrery/base/time.hpp"
#include "orrery/serving/pipeline.hpp"
#include "orrery/serving/record.hpp"
#include "orrery/serving/step_model.hpp"
#include "router.hpp"
#include "scheduler.hpp"

namespace orrery::serving {

/// A KV transfer that has ended, or blocks that the home of a request may free.
struct Arrived {
  std::uint32_t request = 0;
  bool is_transfer = false;  ///< else the home may free
  std::uint32_t member = 0;
  Time first_token = {};  ///< time of the last message, by layers: that of the first token
};

/// An instance as a logical process without its kernel: a scheduler, or those of data-parallel ranks that begin each
/// step together, with the steps that are under way.
class Instance {
 public:
  /// What it tells others, and keeps.
  struct Ways {
    bool reports_counts = false;  ///< numbers of requests that wait and run
    bool records_steps = false;
    bool tells_prefills = false;  ///< Effects::prefills
    bool is_carried_out = false;  ///< others carry out its steps
  };
  /// A request whose first token a step makes, so that its layers become complete one after the other.
  struct Prefill {
    std::uint32_t request = 0, number = 0;  ///< number of the scheduler
    Time start, end;
  };
  /// Collects what the instance does to others in one moment.
  struct Effects {
    std::vector<Report> reports;                        ///< reports in the order in which they are made
    std::vector<std::pair<std::uint32_t, Pull>> pulls;  ///< (number of the member, what it asks for)
    std::vector<Time> step_ends;                        ///< ends of the steps that were scheduled
    std::vector<Prefill> prefills;                      ///< prompts of which a step computes the rest
    std::vector<std::uint64_t> begun;                   ///< numbers of the steps that others carry out

    void clear() {
      reports.clear();
      pulls.clear();
      step_ends.clear();
      prefills.clear();
      begun.clear();
    }
  };

  /// `members`: not empty, equal in their options, with consecutive numbers.
  Instance(std::vector<Scheduler> members, const Pipeline& pipeline, StepModel& cost, const Ways& ways);

  std::uint32_t first() const { return members_.front().number(); }
  std::uint32_t num_members() const { return static_cast<std::uint32_t>(members_.size()); }
  std::vector<Scheduler>& members() { return members_; }
  const std::vector<Scheduler>& members() const { return members_; }

  /// Returns when the earliest step under way ends; max() if there is none.
  Time next_end() const { return flight_.empty() ? Time::max() : flight_.front().end; }

  // What happens at one time, in this order.
  void end_steps(Time now, Effects& effects);
  void take_arrived(std::span<const Arrived> arrived);
  void take_deliveries(std::span<const Delivery> deliveries);
  void begin_steps(Time now, Effects& effects);

  // Steps that others carry out (Effects::begun).
  /// Returns the shapes of a step that has not ended, for all members.
  std::span<const StepShape* const> shapes_of(std::uint64_t number);
  /// Returns the bytes that an NPU of a stage sends to the next one in the step whose shapes were asked for last.
  Bytes activations() const;
  std::uint64_t needs(std::uint64_t number) const;  ///< number behind the last step whose tokens the step needs
  void start_step(std::uint64_t number, Time now);
  /// Notes that the oldest step ends now; end_steps follows.
  void end_oldest(Time now);

  /// Writes the sums over time into the records of the members.
  void close_records();

  std::vector<StepRecord> steps;
  std::vector<StepItem> items;
  std::vector<std::uint32_t> preempted;

 private:
  /// The steps of all members that begin together.
  struct Flight {
    Time scheduled, start, end;
    std::uint64_t number = 0;
    std::vector<Step> steps;  // [members]; a rank without work has an empty one
  };

  /// The pipeline, with the durations of the step at hand and the ends of the one before it.
  struct Stages {
    const Pipeline& pipeline;
    std::vector<Time> times, free_from;  // [stages]
  };

  /// Sets when the flight starts and ends, and keeps its stages busy until it has passed them.
  void pass_stages(Time now, Flight& flight);
  void note_all(Flight& flight);
  bool schedule_all(Time now, Flight& flight, Effects& effects);
  void tell_prefills(const Flight& flight, Effects& effects);
  void note(const Step& step, Scheduler& member);
  void advance_sums(Time now);
  Flight take_spare();

  std::vector<Scheduler> members_;
  StepModel& cost_;
  Ways ways_;
  std::size_t depth_;
  std::deque<Flight> flight_;
  std::vector<Flight> spare_;
  Stages stages_;
  std::vector<const StepShape*> shapes_;  // [members] of the step at hand
  Time busy_until_, summed_until_;
  std::uint64_t next_number_ = 0;
  std::vector<std::array<unsigned __int128, 3>> sums_;  // [members] used, running, waiting, times ps
};

}  // namespace orrery::serving
