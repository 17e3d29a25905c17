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
#include "orrery/pdes/kernel.hpp"

namespace orrery::pdes {

/// The promises that an incoming channel must exceed before the next event of a rank is safe.
struct Need {
  Time sends = Time::from_ps(-1);
  Time replies = Time::from_ps(-1);
  Time requests = Time::from_ps(-1);
};

/// What a rank knows of its own future (docs/kernel.md): nothing of each kind happens here before the time given.
struct Outlook {
  Time sends;                 ///< an NPU sends an event to an NPU of another rank
  Time calls;                 ///< an NPU calls a server of another rank, or posts
  Time service;               ///< a server of this rank is called
  std::vector<Time> replies;  ///< [neighbours] posts bring about an event there
};

/// "123 ps", or "never": for messages.
std::string in_ps(Time time);

/// Throws Error (internal): an event that comes too late for `who`, whose clock is known.
[[noreturn]] void fail_causality(const Event& event, std::string_view what, std::string_view who, Time clock);

/// What a reduction over all blocked ranks shows.
struct Stand {
  Time sends;          ///< least time of a send to another rank, as if no message were to come
  Time calls;          ///< the same of a call or post
  Time reply;          ///< least Model::pending_reply
  Time request;        ///< least time of a request that waits at a server, or of a Horizon::relays
  Time event;          ///< least time of any pending event: max() = nothing can ever happen again
  Time stop;           ///< latest clock if some rank wants to stop, else max(); a rank gives its own clock
  bool stops = false;  ///< this rank wants to stop
};

/// The channels between this rank and its neighbours: batches, promises, requests for promises, and the reduction that
/// finds out where the whole system stands once every rank is blocked.
class Channels {
 public:
  struct Handlers {
    std::function<void(const Event&, std::span<const std::byte> more)> event;
    std::function<void(Rank, std::span<const std::byte>)> post;
  };

  Channels(std::unique_ptr<parallel::Transport> transport, int num_ranks, const std::vector<Neighbour>& neighbours,
           Handlers handlers, Statistics& statistics);

  /// The least promises of the incoming channels: no event of an NPU / no answer of a server and no reply to posts / no
  /// request or post comes earlier.
  Time sends_promised() const { return least_.sends; }
  Time replies_promised() const { return least_.replies; }
  Time requests_promised() const { return least_.requests; }

  /// `by_server`: an answer. `more`: bytes that go with it.
  void send(Rank to, const Event& event, bool by_server, std::span<const std::byte> more);
  void post(Rank to, std::span<const std::byte> message);

  /// Takes in what has arrived: events, posts, promises, requests. Returns the number of messages.
  int poll();
  /// Would `flush` do anything?
  bool has_reason_to_flush() const;
  /// Sends every batch that holds data, and a promise to whom asked for it, if it now suffices (or `tell_all`). What
  /// leaves asks for `need` where `ask` would. Returns whether anything did.
  bool flush(const Outlook& outlook, bool tell_all, Need need);
  /// Asks the neighbours whose promises hold up `need`, or what they ask of us, once for each need. Returns whether it
  /// did.
  bool ask(Need need, const Outlook& outlook);

  /// Joins the reduction (unless one is under way) with this rank's own figures.
  void join_reduction(const Stand& mine);
  /// The common result, if a reduction has ended and no message was on its way. Raises the promises by it.
  std::optional<Stand> try_reduction(const Options& options);

  std::size_t num_neighbours() const { return channels_.size(); }
  const Neighbour& neighbour(std::size_t i) const { return channels_[i].neighbour; }

  /// One line per neighbour, for the watchdog.
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
    std::uint32_t num_bytes = 0;  ///< of records that follow
    std::uint32_t round = 0;      ///< reductions that the sender had joined
    std::uint32_t asks = 0;
    std::uint32_t reserved = 0;
  };
  struct Record {
    std::uint32_t bytes;
    std::uint32_t is_post;
  };
  struct Channel {
    Neighbour neighbour;
    // incoming
    Promises promised;
    Need asked;  ///< of the neighbour
    // outgoing
    std::vector<std::byte> batch;
    Promises told;
    std::optional<Need> wanted;  ///< by the neighbour
  };

  Channel& channel(Rank rank);
  void append(Channel& channel, bool is_post, std::span<const std::byte> bytes, std::span<const std::byte> more = {});
  void promise(Channel& channel, const Outlook& outlook);
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
  // The reduction. A message belongs to the round of its sender's last contribution: see join_reduction.
  std::uint32_t round_ = 0;
  bool reducing_ = false;
  std::int64_t sent_ = 0, received_ = 0, received_ahead_ = 0;
};

}  // namespace orrery::pdes
