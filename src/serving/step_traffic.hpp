#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "orrery/base/time.hpp"
#include "orrery/collective/collective_transport.hpp"
#include "orrery/collective/member_run.hpp"
#include "orrery/network/message.hpp"
#include "orrery/serving/simulate.hpp"
#include "orrery/serving/step_plan.hpp"

namespace orrery::serving {

/// The steps of an instance whose collectives and activations are messages of the simulated network. Each stage of a
/// pipeline has one step at a time; its tensor-parallel groups, and those of all data-parallel ranks, go through the
/// phases of a step together.
class StepTraffic {
 public:
  /// What it asks of the owner. `wake` calls take_wake with this number at a later time.
  struct Services {
    std::function<void(const network::Message& message, Time now)> send;
    std::function<void(const network::Message& message, std::vector<NpuId> destinations, Time now)> multicast;
    std::function<void(std::uint32_t number, Time time)> wake;
  };

  /// The spec outlives it.
  StepTraffic(const InstanceSpec& spec, Services services);

  /// Takes in a step that has been scheduled, with a plan for each stage. `after`: number behind the last step that
  /// must end before it starts. `hop`: bytes from an NPU of a stage to the next one.
  void add(std::uint64_t number, std::uint64_t after, std::vector<StagePlan> plan, Bytes hop, Time now);
  void take_wake(std::uint32_t number, Time now);
  void take_message(const network::Message& message, Time now);
  /// Takes in that data of a collective have been delivered, whose sender awaits this.
  void take_receipt(std::uint32_t ordinal, NpuId sender, network::StepId step, Time now);

  /// Returns the numbers of the steps that have started, or ended, since the last call of `clear_news`.
  std::span<const std::uint64_t> started() const { return started_; }
  std::span<const std::uint64_t> ended() const { return ended_; }
  bool has_news() const { return !started_.empty() || !ended_.empty(); }
  void clear_news() {
    started_.clear();
    ended_.clear();
  }

 private:
  /// A step that has been scheduled and has not ended.
  struct Flight {
    std::uint64_t number = 0, after = 0;
    std::vector<StagePlan> plan;
    Bytes hop;
    std::uint32_t stage = 0;             ///< stage at which it is, or to which it is on its way
    std::uint32_t messages_to_come = 0;  ///< activations on their way
  };
  /// A stage, and how far it is with its step.
  struct Stage {
    std::uint64_t next = 0;  ///< number of the next step to start
    bool is_busy = false, has_computed = false;
    std::size_t section = 0, phase = 0;
    std::int64_t repetition = 0;
    std::uint32_t open_groups = 0;  ///< groups whose collective has not ended
  };
  /// A collective of one group.
  struct Group {
    std::uint32_t stage = 0, ordinal = 0, num_open = 0;
    std::vector<NpuId> members;
    std::vector<collective::MemberRun> runs;
  };
  /// What a wake is about.
  struct Wake {
    bool is_stage = true;
    std::uint32_t stage = 0;  ///< or the ordinal of a collective
    std::uint32_t member = 0;
    network::StepId step = {};
  };
  class Transport;

  Flight& flight(std::uint64_t number) { return flights_[number - flights_.front().number]; }
  void start_if_ready(std::uint32_t stage, Time now);
  void proceed(std::uint32_t stage, Time now);
  bool begin_collectives(std::uint32_t stage, const StepPhase& phase, Time now);
  void begin_group(std::uint32_t stage, std::vector<NpuId> members, const StepPhase& phase, Time now);
  void end_of_stage(std::uint32_t stage, Time now);
  void end_if_done(Group& group, std::uint32_t member, bool was_done, Time now);
  void next_phase(std::uint32_t stage, Time now);
  void schedule(const Wake& wake, Time time);

  const InstanceSpec& spec_;
  Services services_;
  GroupId group_;
  std::deque<Flight> flights_;
  std::vector<Stage> stages_;
  std::unordered_map<std::uint32_t, std::unique_ptr<Group>> groups_;  // by ordinal
  std::unordered_map<std::uint32_t, Wake> wakes_;                     // by number
  std::uint32_t next_ordinal_ = 1, next_wake_ = 0;
  std::uint64_t num_ended_ = 0;
  std::vector<std::uint64_t> started_, ended_;
};

}  // namespace orrery::serving
