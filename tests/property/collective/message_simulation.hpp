#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

namespace orrery::collective::test {

using Ps = std::int64_t;

/// One exchange of a phase: position i sends to i + d (or i xor d) for every distance d, and waits for those who send
/// to it.
struct Exchange {
  std::vector<std::uint32_t> distances;
  bool by_xor = false;
  std::uint64_t bytes = 0;
  Ps cost = 0;  ///< after the last message has arrived, before the next exchange
};

/// One phase of every chunk: the dimension groups, and what their positions exchange.
struct PhaseOfChunk {
  std::uint32_t queue = 0;                         ///< phases of one queue compete
  std::vector<std::vector<std::uint32_t>> groups;  ///< members by position
  std::vector<Exchange> exchanges;
};

/// A message of an exchange. A clear to send goes the other way than the data that it is for.
struct Passage {
  std::uint32_t from = 0, to = 0;
  std::uint32_t sender = 0, receiver = 0;  ///< of the data
  std::uint32_t phase = 0, exchange = 0;
};

/// Everything that a simulated collective is made of.
struct Scenario {
  std::uint32_t num_members = 0;
  std::uint32_t num_chunks = 1;
  std::uint32_t in_service = 1;
  Ps endpoint_delay = 0;
  bool rendezvous = false;
  std::uint64_t control_bytes = 8192;
  std::vector<PhaseOfChunk> phases;
  std::function<Ps(const Passage& message, std::uint64_t bytes)> link;
};

/// The (chunk, phase) that held the slot before, for every chunk and phase; nothing where the slot was free.
using Predecessors = std::vector<std::vector<std::optional<std::pair<std::uint32_t, std::uint32_t>>>>;

/// Simulates a collective message by message: every send, arrival, clear to send and end of a phase is an event. It
/// shares nothing with the engine but the rules. Without `fixed` every member serves its queues first come first
/// served, and the order of member 0 is recorded; with `fixed` every member keeps that order.
class MessageSimulation {
 public:
  MessageSimulation(const Scenario& scenario, const Predecessors* fixed);

  /// Returns the completions of the members.
  std::vector<Ps> run(const std::vector<Ps>& arrivals);
  const Predecessors& recorded() const { return recorded_; }

 private:
  enum class What : std::uint8_t { arrive, begin, data, clear_to_send, finish };
  struct Event {
    Ps at = 0;
    std::uint64_t order = 0;
    What what = What::arrive;
    std::uint32_t member = 0, chunk = 0, phase = 0, exchange = 0, peer = 0;
    bool operator>(const Event& other) const { return std::pair(at, order) > std::pair(other.at, other.order); }
  };
  struct Progress {
    std::vector<bool> begun;
    std::vector<std::uint32_t> received;
    std::vector<std::vector<std::uint32_t>> clears;  ///< receivers whose clear to send came before the exchange began
    bool started = false, finished = false;
  };
  struct Queue {
    std::deque<std::pair<std::uint32_t, std::uint32_t>> waiting;
    std::deque<std::optional<std::pair<std::uint32_t, std::uint32_t>>> slots;
  };

  Progress& progress(const Event& event) {
    return progress_[(event.member * chunks_ + event.chunk) * phases_ + event.phase];
  }
  bool finished(std::uint32_t member, std::uint32_t chunk, std::uint32_t phase) const {
    return progress_[(member * chunks_ + chunk) * phases_ + phase].finished;
  }
  void push(Event event) { events_.push(event); }
  void handle(const Event& event);
  void ready(std::uint32_t member, std::uint32_t chunk, std::uint32_t phase, Ps now);
  void serve(std::uint32_t member, std::uint32_t queue, Ps now);
  void try_start(std::uint32_t member, std::uint32_t chunk, std::uint32_t phase, Ps now);
  void start(std::uint32_t member, std::uint32_t chunk, std::uint32_t phase, Ps now);
  void begin(const Event& event);
  void send(const Event& event, std::uint32_t receiver);
  void complete_if_all_there(const Event& event);
  void finish(const Event& event);
  std::vector<std::uint32_t> peers(const Event& event, bool receivers) const;

  const Scenario& scenario_;
  const Predecessors* fixed_;
  std::uint32_t chunks_, phases_;
  Predecessors recorded_;
  std::vector<Progress> progress_;                                           ///< [members][chunks][phases]
  std::vector<std::vector<Queue>> queues_;                                   ///< [members][queues]
  std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> cells_;  ///< [phases][members]: group and position
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::vector<Ps> completions_;
  std::vector<bool> arrived_;
  std::uint64_t sequence_ = 0;
};

}  // namespace orrery::collective::test
