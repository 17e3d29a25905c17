#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/parallel/transport.hpp"
#include "orrery/pdes/event.hpp"
#include "orrery/pdes/model.hpp"
#include "orrery/pdes/parking.hpp"
#include "orrery/pdes/pending_set.hpp"
#include "orrery/pdes/scheduler.hpp"

namespace orrery::pdes {

class Channels;
struct Need;
struct Outlook;
struct Stand;

/// What may pass between this rank and another one, as least delays; max() = never.
struct Neighbour {
  Rank rank;
  bool outgoing = false;             ///< this rank may send to it
  bool incoming = false;             ///< it may send to this rank
  Time event_delay = Time::max();    ///< from an action of an NPU here to its event there
  Time service_delay = Time::max();  ///< from a request to a server here to the answer there
  Time reply_delay = Time::max();    ///< from the first of the posts that belong together here to their reply there
  Time relay_delay = Time::max();    ///< from a request to a server here to its own request to a server there
  bool requests = false;             ///< NPUs here may call servers there, without delay
};

struct Options {
  std::vector<Neighbour> neighbours;       ///< ascending in rank, without this one
  std::uint32_t num_lps = 0;               ///< on all ranks; ids are below
  Time service_delay = Time::max();        ///< of the servers of this rank: from a request to any answer
  Time reply_delay = Time::max();          ///< from the first of the posts that belong together to their reply here
  Time final_delay = Time::from_ps(1);     ///< from the last of the posts that belong together to any reply
  Time least_event_delay = Time::max();    ///< over all channels of all ranks
  Time least_service_delay = Time::max();  ///< over all servers of all ranks, to an answer or a request of their own
  Time least_reply_delay = Time::max();    ///< over all ranks
  bool lps_run_ahead = false;              ///< NPUs may be ahead of others: Model::awaits is asked
  double watchdog_seconds = 300;           ///< no clock of any rank advances for so long: report and give up; 0 = never
  std::function<void(std::uint64_t events, Time now)> progress;  ///< called now and then between events
  std::function<bool()> stop_requested;  ///< asked now and then: shall the run end before its end? Any rank may say so
};

struct Statistics {
  std::uint64_t events = 0;
  std::uint64_t data_messages = 0;  ///< sent, with events or posts in them
  std::uint64_t null_messages = 0;  ///< sent, with nothing but promises (requests for promises among them)
  std::uint64_t null_messages_received = 0;
  std::uint64_t promise_requests = 0;  ///< sent
  std::uint64_t message_bytes = 0;     ///< sent
  std::uint64_t reductions = 0;        ///< joined
  std::uint64_t peak_pending_events = 0;
  std::uint64_t critical_path = 0;  ///< events on the longest chain of causes
  double busy_seconds = 0, blocked_seconds = 0;
};

/// A conservative kernel in the tradition of Chandy, Misra and Bryant: one per rank (docs/kernel.md has the proof).
class Kernel final : public Scheduler {
 public:
  Kernel(parallel::Communicator& world, Model& model, Options options);
  /// With messages of a transport other than `world`'s own.
  Kernel(Model& model, Options options, std::unique_ptr<parallel::Transport> transport, Rank here, int num_ranks);
  ~Kernel();

  // See Scheduler.
  void schedule(const Event& event) override;
  void send(Rank to, Event event, std::span<const std::byte> more = {}) override;
  void resume(const Event& event) override;
  bool is_certain(Time time, Awaited awaited) const override;
  void linger(LpId client) override;
  void post(Rank to, std::span<const std::byte> message) override;
  Time now() const override { return now_; }
  std::uint32_t depth(LpId lp) const override { return lps_[lp.index()].depth; }
  void raise_depth(LpId lp, std::uint32_t depth) override;

  /// Runs until nothing can happen any more on any rank. Collective. Throws Error (internal) when causality is broken
  /// and when the watchdog finds no progress.
  ///
  /// When a stop is requested the ranks agree on a time, handle what is not later, and return with `stopped_at` set.
  void run();
  std::optional<Time> stopped_at() const { return stopped_at_; }

  const Statistics& statistics() const { return statistics_; }

 private:
  /// Handles what is safe, about a burst of events at most; returns how many.
  std::uint64_t process();
  std::uint64_t process_npus();
  void heed_stop_request();
  bool may_handle(Time time) const { return time <= limit_ && !stopping_; }
  void process_server();
  void handle(const Event& event);
  void accept(Event event);
  void insert(const Event& event, const char* what);
  void has_news(LpId npu_lp);
  void unpark_known();
  Time next_npu_event() const;
  Time next_event() const;
  bool server_is_safe() const;
  bool unpark_promised();
  Awaited awaited(LpId npu_lp) const;
  Time own_output(const Reach& reach) const;
  /// No post brings about an event for NPUs of `to` before this, if none is earlier than `posts`.
  Time earliest_reply(Rank to, Time reply_delay, Time posts) const;
  /// No event that a server or a post brings about reaches NPUs here before this, as far as other ranks cause it.
  Time incoming_replies() const;
  Time incoming() const;
  const Outlook& outlook();
  bool is_at_end() const;
  Stand stand() const;
  void run_with_others();
  /// What the next event here waits for.
  Need need() const;
  [[noreturn]] void watch();

  Rank here_;
  Model& model_;
  Options options_;
  struct Lp {
    Time clock = Time::from_ps(-1);  // of the last event that it handled
    std::uint32_t depth = 0;
  };

  PendingSet pending_[2];             // by stage
  Parking parking_;                   // events of NPUs that await something, taken from pending_
  std::vector<LpId> hopeful_;         // parked NPUs that have been given an event
  Time replies_;                      // incoming_replies() when process_npus began
  Time tried_sends_, tried_replies_;  // the promises that parked NPUs have been held against
  Stage handling_ = Stage::npu;
  Time latest_[2] = {Time::from_ps(-1), Time::from_ps(-1)};  // that has been handled, by stage
  Time now_ = Time::zero();
  Time limit_ = Time::max();  // no later event is handled
  bool stopping_ = false;     // a stop is requested here: nothing is handled until the ranks agree on the limit
  std::optional<Time> stopped_at_;
  std::vector<Lp> lps_;                 // [num_lps]
  std::unique_ptr<Channels> channels_;  // none if this rank is alone
  std::unique_ptr<Outlook> outlook_;    // what outlook() last said
  Statistics statistics_;
};

}  // namespace orrery::pdes
