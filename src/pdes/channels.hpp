#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/parallel/transport.hpp"
#include "orrery/pdes/event.hpp"
#include "orrery/pdes/options.hpp"
#include "orrery/pdes/statistics.hpp"

namespace orrery::pdes {

/// What a rank waits for: the promises of each incoming channel must exceed these before its next event is safe.
struct Need {
  Time sends = Time::from_ps(-1);
  Time replies = Time::from_ps(-1);
  Time requests = Time::from_ps(-1);
};

/// A rank's earliest output times (EOT, docs/kernel.md): nothing of each kind happens here before the time given.
struct EarliestOutput {
  Time sends;                 ///< a client sends an event to a client of another rank
  Time calls;                 ///< a client calls a server of another rank, or posts
  Time service;               ///< a server of this rank is called
  std::vector<Time> replies;  ///< [neighbours] posts bring about an event there
};

/// Returns "123 ps", or "never": for messages.
std::string in_ps(Time time);

/// Throws Error (internal): an event comes too late for `who`, whose clock is given.
[[noreturn]] void fail_causality(const Event& event, std::string_view what, std::string_view who, Time clock);

/// What a blocked rank contributes to the lower bound on the time stamps that are still to come (LBTS), as if no
/// message were to come. The result of the reduction over all ranks has the same form.
struct LbtsContribution {
  Time sends = {};       ///< least time of a send to another rank
  Time calls = {};       ///< least time of a call of a server of another rank, or of a post
  Time reply = {};       ///< least Model::pending_reply
  Time request = {};     ///< least time of a request that waits at a server, or of a relay (LookaheadBounds::relays)
  Time event = {};       ///< least time of any pending event; max() = nothing can ever happen again
  Time latest = {};      ///< the latest time of any event that has been handled
  Time broken_off = {};  ///< the latest time in the middle of which a client is; -1 ps if there is none
  StopMode mode = StopMode::none;  ///< stop request of this rank; in the result the strongest of all
  bool all_stop = false;           ///< result only: every rank requests a stop
};

/// The channels between this rank and its neighbours: batches of events and posts, promises, requests for promises, and
/// the reduction that bounds all time stamps once every rank is blocked.
class Channels {
 public:
  struct Handlers {
    std::function<void(const Event&, std::span<const std::byte> more)> event;
    std::function<void(Rank, std::span<const std::byte>)> post;
  };

  Channels(std::unique_ptr<parallel::Transport> transport, int num_ranks, const std::vector<Neighbour>& neighbours,
           Handlers handlers, Statistics& statistics);

  // The least promises of the incoming channels.
  /// Returns the time before which no event of a client comes.
  Time sends_promised() const { return least_.sends; }
  /// Returns the time before which no answer of a server and no reply to posts comes.
  Time replies_promised() const { return least_.replies; }
  /// Returns the time before which no request and no post comes.
  Time requests_promised() const { return least_.requests; }

  /// Puts an event into the batch for a rank. `by_server` says that it is an answer; `more` are bytes that go with it.
  void send(Rank to, const Event& event, bool by_server, std::span<const std::byte> more);
  void post(Rank to, std::span<const std::byte> message);

  /// Takes in what has arrived: events, posts, promises, requests for promises. Returns the number of messages.
  int poll();
  /// Returns the bytes that this rank has sent and others have not taken yet, if they are more than `most`, else 0.
  std::uint64_t bytes_under_way(std::uint64_t most) { return transport_->bytes_under_way(most); }
  /// Returns whether `flush` would do anything.
  bool has_reason_to_flush() const;
  /// Sends every batch that holds data, and a promise to each neighbour that asked for it, if it now suffices. What
  /// leaves asks for `need` where `ask` would. Returns whether any message asks.
  bool flush(const EarliestOutput& output, Need need);
  /// Asks the neighbours whose promises block `need`, or block what they ask of us, once for each need. Returns
  /// whether it asked any.
  bool ask(Need need, const EarliestOutput& output);

  /// Joins the reduction with this rank's own contribution, unless it has joined already.
  void join_reduction(const LbtsContribution& mine);
  /// Returns the result, if a reduction has ended and no message was on its way, and raises the promises by it.
  std::optional<LbtsContribution> try_reduction(const Options& options);

  /// Adds the number of events that this rank has handled to a sum over all ranks, which goes on beside everything
  /// else. Returns the sum if it is complete.
  std::optional<std::int64_t> beat() { return transport_->beat(static_cast<std::int64_t>(statistics_.events)); }
  /// Completes the last sum. Collective, at the end of a run.
  void end_beats() { transport_->end_beats(); }

  std::size_t num_neighbours() const { return channels_.size(); }
  const Neighbour& neighbour(std::size_t i) const { return channels_[i].neighbour; }

  /// Returns one line per neighbour, for the watchdog.
  std::string describe() const;

 private:
  struct Promises {
    Time sends, replies, requests;

    bool exceed(const Need& need) const {
      return sends > need.sends && replies > need.replies && requests > need.requests;
    }
    void raise(const Promises& to) {
      sends = std::max(sends, to.sends);
      replies = std::max(replies, to.replies);
      requests = std::max(requests, to.requests);
    }
  };
  struct Header {
    Promises promises;
    Need need;
    std::uint32_t num_bytes = 0;  ///< bytes of the records that follow
    std::uint32_t round = 0;      ///< reductions that the sender had joined
    std::uint32_t asks = 0;       ///< 1 = `need` holds a request
    std::uint32_t reserved = 0;
  };
  struct Record {
    std::uint32_t bytes;
    std::uint32_t is_post;
  };
  struct Channel {
    Neighbour neighbour;
    // Of the incoming channel.
    Promises promised;
    Need asked;  ///< need that this rank has asked the neighbour for
    // Of the outgoing channel.
    std::vector<std::byte> batch;
    Promises told;
    std::optional<Need> wanted;  ///< need that the neighbour has asked this rank for
  };

  Channel& channel(Rank rank);
  void append(Channel& channel, bool is_post, std::span<const std::byte> bytes, std::span<const std::byte> more = {});
  void promise(Channel& channel, const EarliestOutput& output);
  Need with_what_others_want(Need need) const;
  bool must_ask(const Channel& channel, const Need& need) const;
  void transmit(Channel& channel, std::optional<Need> request);
  void take(Rank from, std::span<const std::byte> message);
  void update_promised();

  Handlers handlers_;
  Statistics& statistics_;
  std::unique_ptr<parallel::Transport> transport_;
  std::vector<Channel> channels_;
  std::vector<int> index_;  // [ranks] into channels_, -1 for none
  std::vector<std::byte> message_;
  Promises least_;  // of the incoming channels
  // Of the reduction. A message belongs to the round of its sender's last contribution: see join_reduction.
  std::uint32_t round_ = 0;
  bool reducing_ = false;
  std::int64_t sent_ = 0, received_ = 0, received_ahead_ = 0;
};

}  // namespace orrery::pdes
