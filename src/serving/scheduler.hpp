#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "block_pool.hpp"
#include "orrery/base/time.hpp"
#include "orrery/serving/options.hpp"
#include "orrery/serving/record.hpp"
#include "orrery/serving/request.hpp"
#include "orrery/serving/step_shape.hpp"
#include "waiting_queue.hpp"

namespace orrery::serving {

/// A request at an instance.
struct LiveRequest {
  enum class Status : std::uint8_t { waiting, running, pulling, pulled };
  /// The gaps between its tokens.
  struct Gaps {
    bool count = true;  ///< they are among those of the metrics
    Time last_token;
  };

  /// Its output tokens that steps under way make.
  struct Sampling {
    std::uint32_t in_flight = 0;
    std::uint64_t step = 0;  ///< number of the last step that makes one
  };

  std::uint32_t id = 0, prompt = 0, goal = 0;
  std::uint32_t computed = 0;  ///< tokens whose keys and values are written, or are being written
  std::uint32_t known = 0;     ///< output tokens that the scheduler has seen
  Sampling sampling;
  std::uint32_t num_blocks = 0;
  std::uint32_t entered = 0;  ///< its first blocks, which have been offered to the index
  std::uint32_t epoch = 0;    ///< preemptions since it came
  std::uint32_t remote = 0;   ///< tokens that a KV transfer brings, if nothing of them is here
  std::uint32_t home = 0;     ///< instance of its prefill
  Status status = Status::waiting;
  Gaps gaps;
  std::vector<Block> blocks;  ///< with a prefix cache
  RequestRecord record;

  std::uint32_t tokens() const { return prompt + known; }
};

using Slot = std::uint32_t;

/// A step as an instance has scheduled it.
struct Step {
  struct Sampled {
    Slot slot;
    std::uint32_t epoch;
  };
  std::uint64_t number = 0;
  Time scheduled, start, end;
  StepShape shape;
  std::vector<Sampled> sampled;  ///< requests of which it makes a token
  std::vector<std::uint32_t> preempted;
  std::vector<StepItem> items;  ///< if steps are recorded
  std::uint32_t used_blocks = 0;
  std::uint64_t after = 0;  ///< number behind the last step whose tokens it computes on; 0: there is none under way

  bool is_empty() const { return shape.tokens() == 0; }
};

/// What a scheduler asks of others.
struct Pull {
  std::uint32_t request = 0, home = 0;
  std::uint32_t tokens = 0;  ///< missing tokens; 0: the home may free the blocks
};

/// The scheduler of an instance with the rules of vLLM V1. It knows the time only as a number that it notes.
class Scheduler {
 public:
  /// `stages`: stages of the pipeline that a step passes. A request whose token is under way waits so many steps for
  /// the next one. `pulls_layers`: requests come before their prefill has ended, which the end of the transfer tells.
  Scheduler(const Requests& requests, const SchedulerOptions& options, Role role, std::uint32_t number,
            std::uint32_t num_blocks, bool records_items, std::uint32_t stages = 1, bool pulls_layers = false);

  /// Takes in a request from the router. `home` is the instance that holds its prompt's blocks, on a decode instance.
  /// `first_token`: when it was made, there.
  /// `is_measured`: whether the gaps between its tokens count.
  void deliver(std::uint32_t request, std::uint32_t home, Time first_token, bool is_measured = true);
  /// Builds the next step in `step`, whose number is set. Returns false if there is none to begin now. O(requests in
  /// the step).
  bool schedule(Time now, bool is_step_under_way, Step& step);
  /// Takes in the tokens of a step that ends now.
  void finish(const Step& step, Time now);
  /// Takes in that the KV of a request has come, or gives up the blocks kept for another instance. `first_token`: when
  /// its first token was made, if `deliver` did not tell.
  void take_transfer(std::uint32_t request, Time first_token);
  void release_kept(std::uint32_t request);

  /// The requests that left in the last `finish`, in order.
  std::span<const std::uint32_t> left() const { return left_; }
  /// The transfers that the last `schedule` asked for.
  std::span<const Pull> pulls() const { return pulls_; }

  std::uint32_t num_waiting() const { return waiting_.size(); }
  std::uint32_t num_running() const { return static_cast<std::uint32_t>(running_.size()); }
  std::uint32_t request_of(Slot slot) const { return live_[slot].id; }
  /// Says whether a request has further tokens, which a decode instance makes.
  bool goes_on_elsewhere(std::uint32_t request) const {
    return role_ == Role::prefill && requests_[request].output > 1;
  }
  const BlockPool& pool() const { return pool_; }
  const SchedulerOptions& options() const { return options_; }
  Role role() const { return role_; }
  std::uint32_t number() const { return number_; }
  InstanceRecord& record() { return record_; }
  std::vector<RequestRecord>& finished() { return finished_; }
  TokenGaps& gaps() { return gaps_; }
  /// Returns a line about what waits, for the report about a run that stands still.
  std::string describe_waiting() const;

 private:
  using Status = LiveRequest::Status;

  void schedule_running(std::uint32_t& budget, Step& step);
  void schedule_waiting(Time now, std::uint32_t& budget, Step& step);
  bool admit(Slot slot, Time now, std::uint32_t& budget, Step& step);
  bool make_room(std::uint32_t need, Slot slot, Step& step);
  void look_up(const LiveRequest& live, std::vector<Block>& found) const;
  void begin_pull(LiveRequest& live, std::uint32_t missing, std::uint32_t need);
  void take_tokens(Slot slot, std::uint32_t count, std::uint32_t need, Step& step);
  void take_blocks(LiveRequest& live, std::uint32_t count);
  void enter(LiveRequest& live, std::uint64_t upto);
  void release(LiveRequest& live);
  void preempt(Slot slot, Step& step);
  void leave(Slot slot, Time now);
  std::uint32_t blocks_for(std::uint64_t tokens) const {
    return static_cast<std::uint32_t>((tokens + options_.block - 1) / options_.block);
  }
  std::uint64_t key_of(const LiveRequest& live, std::uint32_t index) const;
  Slot add_slot();

  const Requests& requests_;
  SchedulerOptions options_;
  Role role_;
  std::uint32_t number_;
  bool records_items_;
  std::uint32_t stages_;
  bool pulls_layers_;
  BlockPool pool_;
  std::vector<LiveRequest> live_;
  std::vector<Slot> unused_, running_;
  WaitingQueue waiting_;
  std::unordered_map<std::uint32_t, Slot> pulling_;
  std::unordered_map<std::uint32_t, std::pair<std::uint32_t, std::vector<Block>>> kept_;  // for other instances
  std::vector<std::uint32_t> left_;
  std::vector<Pull> pulls_;
  std::vector<Block> found_;
  std::vector<RequestRecord> finished_;
  InstanceRecord record_;
  TokenGaps gaps_;
};

}  // namespace orrery::serving
