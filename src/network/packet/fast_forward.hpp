#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "devices.hpp"
#include "network_parts.hpp"
#include "orrery/base/time.hpp"
#include "orrery/pdes/event.hpp"
#include "orrery/pdes/event_heap.hpp"
#include "port_states.hpp"

namespace orrery::network {

/// Finds parts of the network whose packets do again what they have done before. Such a part comes to rest: its events
/// are taken out of the kernel. It wakes up when something comes from outside, or when one of its flows is about to
/// end. Then it leaps over whole periods, and the events of the last one are handled. The proof is in
/// docs/packet-network.md, *Long transfers*. Looking for repetitions adds a few per cent to the cost of events.
class FastForward {
 public:
  explicit FastForward(PacketDevices& devices) : devices_(devices), states_(devices), parts_(devices) {}

  /// Returns whether all that hosts and switches do with these rules goes by differences of times and of places in
  /// messages, routes stay, and nobody records single packets.
  static bool is_possible(const PacketDevices::System& system, const PacketDevices::Part& part);

  /// Takes note of an event of a node that is about to be handled. Wakes up the part to which it comes.
  void prepare(const pdes::Event& event) {
    ++num_events_;
    if (num_resting_ > 0 || !late_.empty()) wake_for(event);
    at_hand_ = event;
  }
  /// Takes note that a flow of a host of this rank begins. Wakes up the parts that it meets.
  void begin(const Flow& flow);
  /// Takes note that a flow has sent a packet.
  void note_sent(const Flow& flow);
  /// Takes note that a packet is about to wait for a port. One of a flow of another rank disturbs the port's part.
  void note_packet(std::size_t port, const Packet& packet);
  /// Takes note that a flow has ended.
  void end(const Flow& flow);
  /// Handles the event with which a part wakes up by itself.
  void go_on(const pdes::Event& event);
  /// Ends a time of all nodes of this rank. Parts may come to rest.
  void settle() {
    if (!to_look_.empty() || wants_division_ || !late_.empty()) look_around();
  }
  /// Keeps an event for the part that catches up, if it is not later than what the part is woken up for. Returns
  /// whether it does.
  bool keeps(const pdes::Event& event);

 private:
  static constexpr std::uint32_t none = NetworkParts::none;
  static constexpr std::uint64_t least_compared = 16;
  /// The search for a repetition in a part, and its rest. After each packet of one flow, the anchor, the state is
  /// compared with one that was recorded before. Each is compared twice as often as the one before, until another one
  /// is recorded (Brent, BIT 1980).
  struct Watch {
    std::uint32_t anchor = no_slot;  ///< slot of the flow
    bool has_sent = false;           ///< the anchor, at the present time
    bool has_state = false;
    PartState state;
    std::uint64_t num_compared = 0, most_compared = least_compared;
    std::uint64_t rest = 0;  ///< number of its rest; 0: it does not rest
    Time rests_since;
    std::uint64_t most_periods = 0;   ///< that it may leap over
    std::vector<pdes::Event> events;  ///< of its nodes, while it rests
  };
  /// The events of a part that catches up, and the event for which it does.
  struct CatchUp {
    pdes::EventHeap events;
    pdes::Event until;
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
  void handle_events(CatchUp& work, Time& now);
  void handle_late(const pdes::Event& event);
  bool has_many(const Flow& flow) const;
  bool belongs(const pdes::Event& event, std::uint32_t number) const;
  std::vector<pdes::Event> events_of(std::uint32_t number);
  std::uint32_t part_of(const pdes::Event& event) const;
  std::uint64_t num_packets(std::uint32_t number) const;

  PacketDevices& devices_;
  PortStates states_;
  NetworkParts parts_;
  std::vector<Watch> watches_;          // [numbers of parts]
  std::vector<std::uint32_t> to_look_;  // parts whose anchor has sent at the present time
  bool wants_division_ = false;         // a flow with many packets is in no part
  std::uint64_t num_rests_ = 0, num_resting_ = 0;
  pdes::Event at_hand_;             // the event that is handled, or the last one that was
  pdes::EventHeap late_;            // events of the present time, of parts that were woken up at it
  CatchUp* catching_up_ = nullptr;  // null: no part catches up
  std::uint64_t num_events_ = 0;    // of nodes, handled
  std::uint64_t num_visited_ = 0;   // values of states and the like, which cost as much
  std::uint64_t num_skipped_ = 0;   // packets times links
};

}  // namespace orrery::network
