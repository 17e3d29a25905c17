#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "orrery/base/time.hpp"

namespace orrery::network {

/// No slot of a pool.
inline constexpr std::uint32_t no_slot = ~0U;
/// Packets and credits pass a link in its delay, and at least in this.
inline constexpr Time least_link_delay = Time::from_ps(1);

/// Names a flow. The number is unique among the flows of its source.
struct FlowId {
  std::uint32_t source = 0, destination = 0;  ///< nodes
  std::uint32_t number = 0;
};

/// Returns a number for a flow that is unique among the flows of all hosts.
inline std::uint64_t flow_key(std::uint32_t source, std::uint32_t number) {
  return std::uint64_t{source} << 32U | number;
}

/// A packet on its way or in a queue, in one line of a cache. Trivially copyable: it travels between ranks as it is.
struct alignas(64) Packet {
  enum class Kind : std::uint8_t {
    data,
    acknowledgement,
    negative_acknowledgement,
    pause,
    resume,
    credit,
    request,
    contribution,  ///< part of a reduction, on its way to the root of the tree
    result,        ///< part of a reduction, on its way to the hosts
  };
  static constexpr std::uint8_t has_words = 128;  ///< flag: the transport has attached words (PacketStore::attach)

  std::uint32_t source = 0, destination = 0;  ///< nodes, in the direction of this packet
  std::uint32_t ports = 0;                    ///< source port | destination port << 16
  std::uint32_t flow = 0;                     ///< number of the flow among the flows of the data's source
  std::uint32_t sender = no_slot;             ///< slot of the flow at the data's source
  std::uint32_t receiver = no_slot;           ///< slot of the flow at the data's destination; no_slot: not known
  std::uint32_t size = 0;                     ///< bytes on the wire
  std::uint32_t next = no_slot;               ///< slot of the packet behind it in a queue
  std::uint64_t sequence = 0;                 ///< data: its first byte; acknowledgements: the next byte expected
  Time stamp;                                 ///< time at which the data left the source
  std::uint32_t telemetry = no_slot;          ///< slot of the telemetry, or of the words (`has_words`)
  std::uint16_t port = 0;                     ///< number of the port by which it came into the node
  Kind kind = Kind::data;
  bool is_marked : 1 = false;      ///< ECN mark of the data, or in acknowledgements of the data that came
  bool is_last : 1 = false;        ///< data: last packet of its flow; acknowledgements: all bytes have come
  bool is_detouring : 1 = false;   ///< whether it is on its way to the switch that Valiant routing has drawn
  std::uint8_t channel : 4 = 0;    ///< virtual channel of the link by which it comes
  std::uint8_t flags = 0;          ///< uec_flags, or tcp_flags, and has_words
  std::uint16_t out_of_order = 0;  ///< UEC, acknowledgements: packets that have overtaken others
  std::uint32_t number = 0;        ///< place in its flow, where packets may come in any order; TCP: connection

  bool is_data() const { return kind == Kind::data; }
  bool is_of_reduction() const { return kind >= Kind::contribution; }
  bool is_pfc_frame() const { return kind == Kind::pause || kind == Kind::resume; }
};

static_assert(sizeof(Packet) == 64);

/// Figures that the switches on the path of a packet report to the control of its flow.
struct Telemetry {
  struct Hop {
    std::uint64_t time_ns = 0, bytes = 0, queue = 0;  ///< units and widths of the fields in packets (telemetry.hpp)
    std::uint64_t rate = 0;                           ///< bits per second
  };
  static constexpr std::uint32_t most_hops = 8;

  std::array<Hop, most_hops> hops;
  std::uint32_t num_hops = 0;
};

/// A first-in first-out queue of packets of a pool, linked through Packet::next.
struct PacketQueue {
  std::uint32_t first = no_slot, last = no_slot;
  std::uint64_t bytes = 0;
  std::uint32_t size = 0;

  bool empty() const { return first == no_slot; }
  template <class Pool>
  void push(Pool& pool, std::uint32_t slot) {
    pool[slot].next = no_slot;
    if (empty())
      first = slot;
    else
      pool[last].next = slot;
    last = slot;
    bytes += pool[slot].size;
    ++size;
  }
  /// Puts the packet behind another one to the front.
  template <class Pool>
  void advance(Pool& pool, std::uint32_t before) {
    const std::uint32_t slot = pool[before].next;
    pool[before].next = pool[slot].next;
    if (last == slot) last = before;
    pool[slot].next = std::exchange(first, slot);
  }
  template <class Pool>
  std::uint32_t pop(Pool& pool) {
    const std::uint32_t slot = first;
    first = pool[slot].next;
    bytes -= pool[slot].size;
    --size;
    return slot;
  }
};

}  // namespace orrery::network
