#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "orrery/base/time.hpp"

namespace orrery::network {

/// No slot of a pool.
inline constexpr std::uint32_t no_slot = ~0U;

/// Names a flow among those of all hosts, by its source and its number there.
inline std::uint64_t flow_key(std::uint32_t source, std::uint32_t number) {
  return std::uint64_t{source} << 32U | number;
}

/// A packet on its way or in a queue, in one line of a cache. Trivially copyable: it travels between ranks as it is.
struct alignas(64) Packet {
  enum class Kind : std::uint8_t { data, acknowledgement, negative_acknowledgement, pause, resume, credit, request };

  std::uint32_t source = 0, destination = 0;  ///< nodes, in the direction of this packet
  std::uint32_t ports = 0;                    ///< source port | destination port << 16
  std::uint32_t flow = 0;                     ///< number of the flow among those of the data's source
  std::uint32_t sender = no_slot;             ///< slot of the flow at the data's source
  std::uint32_t receiver = no_slot;           ///< slot of the flow at the data's destination, if it is known
  std::uint32_t size = 0;                     ///< bytes on the wire
  std::uint32_t next = no_slot;               ///< the packet behind it in a queue
  std::uint64_t sequence = 0;                 ///< data: its first byte; acknowledgements: the next byte expected
  Time stamp;                                 ///< when the data left the source
  std::uint32_t telemetry = no_slot;          ///< what switches have appended
  std::uint16_t port = 0;                     ///< by which it came into the node where it is
  Kind kind = Kind::data;
  bool is_marked : 1 = false;      ///< data: by a switch; acknowledgements: the data were
  bool is_last : 1 = false;        ///< data: of its flow; acknowledgements: of all bytes of the flow
  bool is_detouring : 1 = false;   ///< on its way to the switch that Valiant routing has drawn
  std::uint8_t channel : 4 = 0;    ///< virtual channel of the link by which it comes
  std::uint8_t flags = 0;          ///< UecFlags
  std::uint16_t out_of_order = 0;  ///< UEC, acknowledgements: packets that are there before others
  std::uint32_t number = 0;        ///< of the packet in its flow, where packets may come in any order

  bool is_data() const { return kind == Kind::data; }
};

static_assert(sizeof(Packet) == 64);

/// What the switches on a packet's way tell the control of its flow.
struct Telemetry {
  struct Hop {
    std::uint64_t time_ns = 0, bytes = 0, queue = 0;  ///< in the units of their fields, cut to the fields' width
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
