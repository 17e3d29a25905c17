#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/parallel/transport.hpp"
#include "orrery/pdes/cells.hpp"
#include "orrery/pdes/event.hpp"
#include "orrery/pdes/kernel_state.hpp"
#include "orrery/pdes/model.hpp"
#include "orrery/pdes/options.hpp"
#include "orrery/pdes/ordered_cells.hpp"
#include "orrery/pdes/scheduler.hpp"
#include "orrery/pdes/statistics.hpp"

namespace orrery::pdes {

class Channels;
class LoadRecorder;
struct EarliestOutput;
struct LbtsContribution;
struct Need;

/// A conservative kernel in the tradition of Chandy, Misra and Bryant. Each rank has one (docs/kernel.md has the
/// proof).
class Kernel final : public Scheduler {
 public:
  /// Collective if `world` has several ranks.
  Kernel(parallel::Communicator& world, Model& model, Options options);
  /// The same with messages of a transport other than `world`'s own; null if there is one rank.
  Kernel(Model& model, Options options, std::unique_ptr<parallel::Transport> transport, Rank here, int num_ranks);
  ~Kernel();

  // See Scheduler.
  void schedule(const Event& event) override;
  void send(Rank to, Event event, std::span<const std::byte> more = {}) override;
  void resume(const Event& event) override;
  bool is_certain(Time time, Awaited awaited) const override;
  bool advance(LpId client, Time time) override;
  void wait_until_certain(LpId client) override;
  void post(Rank to, std::span<const std::byte> message) override;
  void visit_server_events(const std::function<void(const Event&)>& visit) const override;
  std::vector<Event> withdraw(const std::function<bool(const Event&)>& is_wanted,
                              std::function<void(Time)> give_back) override;
  Time now() const override { return at_hand_.now; }
  std::uint32_t depth(LpId lp) const override { return lps_[lp.index()].depth; }
  void raise_depth(LpId lp, std::uint32_t depth) override;

  /// Runs until nothing can happen any more on any rank. Collective. Throws Error (internal) when causality is broken
  /// and when the watchdog finds no progress.
  ///
  /// When a rank asks to stop, the ranks agree on a time, handle what is not later, and return with `stopped_at` set.
  /// Another call goes on from there.
  void run();
  std::optional<Time> stopped_at() const { return stop_.stopped_at; }
  /// Returns whether this kernel has handled no event that is later than `stopped_at`; the state that it went on from
  /// may have LPs that are ahead.
  bool has_caught_up() const { return stop_.has_caught_up; }
  /// Stops the run at a time, the same on all ranks: no later event is handled, and no other stop is honoured.
  void stop_at(Time limit) { stop_.limit = limit; }

  /// Lets a recorder, which outlives the kernel, take note of all events. Nothing may have been scheduled yet.
  void record_load(LoadRecorder* recorder) { load_ = recorder; }

  /// Returns what the kernel holds when `run` has stopped on request: then nothing is under way between ranks, every
  /// event that is not later than `stopped_at` has been handled on all ranks, and no client is in the middle of a time.
  /// LPs may be ahead: what they have handled could come before anything that is still pending. O(LPs + events).
  KernelState state() const;
  /// Takes over such a state, or that part of the states of other ranks which concerns LPs of this rank. Nothing may
  /// have been handled yet.
  void restore(const KernelState& state);

  const Statistics& statistics() const { return statistics_; }

 private:
  /// The loop of a rank among others; see rank_loop.hpp.
  class RankLoop;
  struct Lp {
    Time clock = Time::from_ps(-1);  ///< time of the last event that it handled
    std::uint32_t depth = 0;
    std::uint32_t num_pending = 0;  ///< events that wait for it here
  };
  /// Clients that may be ahead of others.
  struct Ahead {
    Ahead(std::vector<std::uint32_t> cell_of, std::size_t num_lps) : cells(std::move(cell_of), num_lps) {}

    Cells cells;                      ///< their events
    std::vector<LpId> wake_list;      ///< clients with deferred events that were given another one
    Time tried_sends, tried_replies;  ///< the promises against which the deferred events have been held
  };
  /// The event that is handled, or the last one that was.
  struct AtHand {
    Stage stage = Stage::client;
    Time now = Time::zero();
  };
  /// How far a requested stop has got.
  struct Stop {
    Time limit = Time::max();                  ///< no later event is handled
    StopMode mode = StopMode::none;            ///< with a request nothing is handled until the ranks agree on the limit
    bool has_caught_up = true;                 ///< no event later than the limit had been handled before
    std::optional<Time> stopped_at;            ///< set when the run ended at the limit
    std::function<void(Time)> give_back = {};  ///< called then; may be empty
  };

  static constexpr std::uint64_t burst = 256;  ///< events that are handled between two looks at messages

  /// Handles what is safe, about a burst of events at most. Returns how many.
  std::uint64_t process();
  std::uint64_t process_clients();
  std::uint64_t process_in_order();
  std::uint64_t process_cell();
  std::uint64_t handle_time_of_cell();
  bool activate_earliest();
  std::uint64_t process_servers();
  bool begin_turn();
  void handle(const Event& event);
  void count(Lp& lp);
  void accept(Event event);
  void insert(const Event& event, const char* what);
  void run_alone();
  void honour_stop_request();
  /// Sets the limit of a stop. `all` has what all ranks have contributed.
  void stop(const LbtsContribution& all);
  bool may_handle(Time time) const { return time <= stop_.limit && stop_.mode == StopMode::none; }

  void push(const Event& event);
  void put_on_wake_list(LpId client);
  void release_informed();
  bool release_promised();
  Time next_client_event() const;
  Time next_event() const;
  bool server_is_safe() const;
  /// Return the times before which events of servers, or of clients, may be handled as far as other ranks and a stop
  /// are concerned. `request`: the earliest one that waits for a server which may answer the client.
  Time server_limit() const;
  Time client_limit(Time request) const;
  /// Returns when an action of the model can happen at the earliest if no message arrives any more.
  Time own_output(const LookaheadBound& bound) const;
  /// Returns the least time of an event for clients of `to` that posts bring about, if no post is earlier than `posts`.
  Time earliest_reply(Rank to, Time reply_delay, Time posts) const;
  /// Returns the least time of an event for clients here that servers and posts bring about. `request`: the earliest
  /// one that waits for a server here which may answer them.
  Time earliest_reply_input(Time request) const;
  /// Returns the earliest input time (EIT): no message of another rank brings about an earlier event for clients here.
  Time earliest_input() const;
  /// Returns this rank's earliest output times (EOT).
  const EarliestOutput& earliest_output();
  /// Returns whether nothing is pending that this rank would handle if it could.
  bool is_at_end() const;
  LbtsContribution lbts_contribution();
  /// Returns the promises that the next event here waits for.
  Need need() const;
  [[noreturn]] void report_no_progress() const;

  Rank here_;
  Model& model_;
  Options options_;
  std::unique_ptr<Ahead> ahead_;  // null if clients, too, are handled in the order of time
  OrderedCells ordered_;          // events that are: those of servers, and those of clients that are
  Time reply_input_;              // earliest_reply_input() when process_cell began
  AtHand at_hand_;
  Time latest_[2] = {Time::from_ps(-1), Time::from_ps(-1)};  // by stage: the latest time that has been handled
  Stop stop_;
  std::vector<Lp> lps_;                              // [num_lps]
  std::unique_ptr<Channels> channels_;               // null if this rank is alone
  std::unique_ptr<EarliestOutput> earliest_output_;  // the last result of earliest_output()
  Statistics statistics_;
  LoadRecorder* load_ = nullptr;  // null: nothing is recorded
};

}  // namespace orrery::pdes
