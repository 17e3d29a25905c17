#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "network_parts.hpp"
#include "network_view.hpp"
#include "orrery/base/time.hpp"
#include "orrery/pdes/event.hpp"
#include "orrery/pdes/event_heap.hpp"
#include "port_observer.hpp"
#include "port_states.hpp"

namespace orrery::network {

/// Finds parts of the network whose packets repeat what they have done before. Such a part comes to rest: its events
/// are taken out of the kernel. It wakes up when a packet or a flow comes from outside, or when one of its flows is
/// about to end. Then it leaps over whole periods, and the events of the last one are handled. The proof is in
/// docs/packet-network.md, *Long transfers*. Looking for repetitions adds a few per cent to the cost of events.
class FastForward final : public PortObserver, public FlowObserver {
 public:
  /// `handle` handles an event of a node.
  FastForward(const NetworkView& view, const MovableNetwork& movable, NodeEvents& events,
              std::function<void(const pdes::Event&)> handle)
      : view_(view), events_(events), handle_(std::move(handle)), states_(view, movable), parts_(view) {}

  /// Returns whether hosts and switches with these rules depend only on differences of times and of places in messages,
  /// and routes stay.
  static bool is_possible(const PacketSystem& system, const NodeEvents& events);

  /// Wakes up the part to which the event comes.
  void handles(const pdes::Event& event) override {
    ++effort_.events;
    if (num_resting_ > 0 || !late_.empty()) wake_for(event);
    at_hand_ = event;
  }
  /// Lets parts come to rest.
  void settles() override {
    if (!to_look_.empty() || wants_division_ || !late_.empty()) look_around();
  }
  /// Handles the event with which a part wakes up by itself.
  void resumes(const pdes::Event& event) override;
  /// A packet of a flow of another rank disturbs the part of the port.
  void enqueues(const Port& port, const Packet& packet) override;
  void answers(const Port& port, const Packet& packet) override { enqueues(port, packet); }
  /// Wakes up the parts that the flow meets.
  void began(const Flow& flow) override;
  void sends(const Flow& flow) override;
  void ended(const Flow& flow) override;

 private:
  class CatchUp;
  static constexpr std::uint32_t none = NetworkParts::none;
  static constexpr std::uint64_t least_compared = 16;
  /// The search for a repetition in a part, and its rest. After each packet of one flow, the anchor, the state is
  /// compared with one that was recorded before. Each is compared twice as often as the one before, until another one
  /// is recorded (Brent, BIT 1980).
  struct Watch {
    std::uint32_t anchor = no_slot;  ///< slot of the flow
    bool has_sent = false;           ///< whether the anchor has sent at the present time
    bool has_state = false;
    PartState state;
    std::uint64_t num_compared = 0, most_compared = least_compared;
    std::uint64_t rest = 0;  ///< number of its rest; 0: it does not rest
    Time rests_since;
    std::uint64_t most_periods = 0;   ///< limit of the periods to leap over
    std::vector<pdes::Event> events;  ///< events of its nodes, while it rests
  };

  /// The cost of looking for repetitions, and the work that bounds it.
  struct Effort {
    std::uint64_t visited = 0;  ///< values of states, and work that costs as much as so many values
    std::uint64_t events = 0;   ///< handled events of nodes
    std::uint64_t skipped = 0;  ///< packets times links
  };

  void catch_up(Time stopped_at);
  void wake_for(const pdes::Event& event);
  void look_around();
  bool may_look() const;
  void divide();
  void dissolve(std::uint32_t number);
  void choose_anchor(std::uint32_t number);
  void look(std::uint32_t number);
  void record(std::uint32_t number);
  bool rest(std::uint32_t number);
  void wake(std::uint32_t number, const pdes::Event& until);
  void handle_events(CatchUp& work);
  void handle_late(const pdes::Event& event);
  bool has_many(const Flow& flow) const;
  bool belongs(const pdes::Event& event, std::uint32_t number) const;
  std::vector<pdes::Event> events_of(std::uint32_t number);
  std::uint32_t part_of(const pdes::Event& event) const;
  std::uint64_t num_packets(std::uint32_t number) const;

  NetworkView view_;
  NodeEvents& events_;
  std::function<void(const pdes::Event&)> handle_;
  PortStates states_;
  NetworkParts parts_;
  std::vector<Watch> watches_;          // [numbers of parts]
  std::vector<std::uint32_t> to_look_;  // parts whose anchor has sent at the present time
  bool wants_division_ = false;         // whether a flow with many packets is in no part
  std::uint64_t num_rests_ = 0, num_resting_ = 0;
  pdes::Event at_hand_;      // event that is handled, or that was handled last
  pdes::EventHeap late_;     // events of the present time, of parts that were woken up at it
  bool catches_up_ = false;  // whether a part handles the events before the one that wakes it up
  Effort effort_;
};

}  // namespace orrery::network
