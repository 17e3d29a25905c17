#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "orrery/pdes/kernel.hpp"

namespace orrery::pdes::test {

std::uint64_t mix(std::uint64_t a, std::uint64_t b);
template <class... More>
std::uint64_t mix(std::uint64_t a, std::uint64_t b, std::uint64_t c, More... more) {
  return mix(mix(a, b), c, more...);
}

/// How well the model knows its own future.
enum class Sight : std::uint8_t { exact, sloppy, blind };

/// A random simulation, a pure function of its seed; where its LPs live depends on the number of ranks as well.
/// LPs: clients, then servers, then groups.
struct System {
  struct Client {
    std::vector<std::uint32_t> peers;
    std::vector<Time> delays;  // [peers]
    int server = -1;
    /// With relays: only its server and the partner of this server hand its requests on, and they answer it alone.
    bool is_at_home = false;
    std::vector<std::uint32_t> groups;
    std::uint32_t budget = 0;  ///< events on which it acts
    std::vector<Time> starts;
    bool hears_near = false, hears_far = false;  ///< clients of its rank, of other ranks, send it events
  };
  struct Server {
    Time delay;
    std::uint32_t next = 0;  ///< server that it hands requests to, of a system with relays
  };
  struct Group {
    std::vector<std::uint32_t> members;
    Time from_first, from_last;  ///< least times from the first and from the last arrival to any completion
  };

  std::uint64_t seed = 0;
  int ranks = 1;
  Sight sight = Sight::exact;
  Time lie;                 ///< added to every bound: a broken promise
  std::int64_t spread = 1;  ///< of random delays
  bool relays = false;      ///< servers hand requests on, and answer any client
  std::uint32_t least_quiet_steps = 0;
  double watchdog_seconds = 30;
  Time quiet_delay;
  std::vector<Client> clients;
  std::vector<Server> servers;
  std::vector<Group> groups;
  std::vector<Rank> host;  // [LPs]

  std::uint32_t num_lps() const { return static_cast<std::uint32_t>(clients.size() + servers.size() + groups.size()); }
  LpId server_lp(std::uint32_t s) const { return LpId(static_cast<std::uint32_t>(clients.size()) + s); }
  LpId group_lp(std::uint32_t g) const { return LpId(static_cast<std::uint32_t>(clients.size() + servers.size()) + g); }
  /// Returns the server with which a server shares the requests of clients that are at home; itself if there is none.
  std::uint32_t partner(std::uint32_t server) const { return (server ^ 1U) < servers.size() ? server ^ 1U : server; }
  bool is_local(const Group& group, std::uint32_t g) const;
  /// Returns [LPs] the cells of a rank whose servers relay. LPs that the rank hosts are in one cell if they are peers,
  /// or client and server. All are in one where posts bring about replies.
  std::vector<std::uint32_t> cells(Rank here) const;
  Options kernel_options(Rank here) const;
};

System make_system(std::uint64_t seed, int ranks);
/// The same with one more group, of all clients, of which client 0 does nothing: who joins that group waits for ever.
System make_stuck_system(std::uint64_t seed, int ranks);

/// What an LP went through: the hash chains the key and payload of every event that it handled, in its order.
struct Log {
  std::uint64_t hash = 0, events = 0;
  friend bool operator==(const Log&, const Log&) = default;
};

/// The LPs of one rank. A client takes some quiet steps, each known in advance, and then acts: it sends events to
/// peers, calls its server without delay, joins groups. Random numbers are keyed by (seed, LP, draw), so that any
/// change of the order changes everything after it.
class RandomModel final : public Model {
 public:
  RandomModel(const System& system, Rank here);

  void start(Kernel& kernel);

  void handle(const Event& event) override;
  void settle(Time now, Stage stage) override;
  bool admit(Event& event) override;
  void unpack(Event& event, std::span<const std::byte> bytes) override;
  Scope scope(const Event& event) const override;
  Awaited awaits(LpId lp) const override;
  void proceed(LpId lp) override;
  void receive(Rank from, std::span<const std::byte> message) override;
  LookaheadBounds lookahead() override;
  LookaheadBound lookahead_of_cell(std::uint32_t cell) override;
  Time pending_reply(Rank to) const override;
  std::string status() const override { return "random model"; }

  const std::vector<Log>& logs() const { return logs_; }
  /// The groups that a client of this rank has joined and that are not complete, as bits.
  std::uint64_t waits_for(std::uint32_t client) const;

 private:
  enum Kind : std::uint16_t { start_event, message, step, request, answer, completion };
  struct Client {
    std::uint64_t draws = 0, sequence = 0;
    std::uint32_t budget = 0, loud = 0;
    std::set<std::uint32_t> waiting;        // groups that it has joined
    std::uint32_t requests = 0, joins = 0;  // that are not known to have led to an answer, a completion
    Time settled = Time::from_ps(-1);
  };
  struct Server {
    Time free = Time::zero();
    std::uint64_t sequence = 0, draws = 0;
  };
  struct Group {
    std::uint32_t round = 0, arrived = 0, depth = 0;
    Time first = Time::max(), last = Time::zero();
    std::uint64_t payload = 0;
  };
  struct Outward {              // of one kind of thing that other ranks notice
    std::multiset<Time> times;  // when pending events make clients act that may do it
    std::vector<char> may;      // [clients]
    std::uint32_t active = 0;   // clients that may still do it
  };
  struct Post {
    Time time;
    std::uint64_t payload = 0;
    std::uint32_t group = 0, round = 0, position = 0, depth = 0, is_completion = 0, reserved = 0;
  };

  std::uint64_t draw(std::uint32_t lp, std::uint64_t& draws) const { return mix(system_.seed, lp, draws++); }
  Time extra(std::uint64_t random) const;
  Time step_delay(const Event& event) const;
  Time loud_time(const Event& event) const;
  Event event_of(std::uint32_t client, Stage stage, Kind kind, Time time, LpId target);
  void dispatch(const Event& event);
  void note(const Event& event);
  Event next_step(const Event& event);
  bool may_step_at_once(std::uint32_t client) const;
  LookaheadBound bound_of(const Outward& outward);
  void act(std::uint32_t client, Time now);
  void serve(const Event& event);
  void hand_on(const Event& event, const Server& server, Event onward);
  void join(std::uint32_t client, std::uint32_t group, Time now, std::uint64_t payload);
  void contribute(const Post& post);
  void complete(const Post& post);
  Rank host(LpId lp) const { return system_.host[lp.index()]; }
  /// Returns how far what comes of a request of a client to its server reaches.
  Scope scope_of_requests(std::uint32_t client) const;
  std::uint32_t cell(LpId lp) const { return cells_[lp.index()]; }
  /// Returns the ways in which other ranks, and other cells, notice a client of this rank.
  std::array<Outward*, 4> outwards(std::uint32_t client) {
    return {&sends_, &calls_, &relays_, &leaves_[cell(LpId(client))]};
  }

  const System& system_;
  Rank here_;
  Kernel* kernel_ = nullptr;
  std::vector<Client> clients_;
  std::vector<Server> servers_;
  std::vector<Group> groups_;
  std::vector<Log> logs_;
  std::vector<std::uint32_t> cells_;  // [LPs] if servers relay; else zero
  Outward sends_, calls_, relays_;
  std::vector<Outward> leaves_;  // [cells]
  std::vector<std::uint32_t> touched_;
  std::uint32_t serving_ = 0;          // the cell of the last event of a server
  std::vector<Time> served_;           // [cells] the time of the last event of a server
  std::vector<Time> servers_settled_;  // [cells] the last time of servers that was settled
  std::uint64_t bounds_drawn_ = 0;
};

}  // namespace orrery::pdes::test
