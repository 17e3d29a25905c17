#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "devices.hpp"
#include "orrery/base/time.hpp"
#include "orrery/pdes/event.hpp"

namespace orrery::network {

/// A part of a packet network whose packets meet no others.
struct NetworkPart {
  std::vector<std::uint32_t> flows;     ///< slots
  std::vector<std::uint32_t> ports;     ///< indices; all ports of its switches are its own
  std::vector<std::uint32_t> switches;  ///< nodes
  bool is_here = true;                  ///< all of it is on this rank
};

/// The state of a part of the network, as what will happen there depends on it: times are those from `time` on, and
/// places in a message count from the first byte that is not acknowledged. Two moments with equal states have the same
/// future, but for the statistics of ports and for what comes from outside (docs/packet-network.md, *Long transfers*).
struct PartState {
  Time time;
  std::vector<std::uint64_t> values;
  std::vector<std::uint64_t> totals;        ///< what the ports have done
  std::vector<std::uint64_t> acknowledged;  ///< [flows of the part] bytes
};

/// Records, compares and advances the states of parts of the network. Events are those that wait for nodes of the part.
class PortStates {
 public:
  explicit PortStates(PacketDevices& devices) : devices_(devices) {}

  /// Writes down the state, with the events in their order. Returns false if something in the part goes by absolute
  /// times or places, so that its state says nothing. O(ports + flows + packets).
  bool record(const NetworkPart& part, std::span<const pdes::Event> events, PartState& state);
  /// Returns how many values of the state, without its events, are as they were; all of them if it returns npos. O(what
  /// is equal).
  std::size_t num_equal(const NetworkPart& part, const PartState& state);
  static constexpr std::size_t npos = ~std::size_t{0};
  /// Returns whether the whole state, with the events in their order, is as it was.
  bool is_equal(const NetworkPart& part, std::span<const pdes::Event> events, const PartState& state);
  /// Returns how often what has happened since an equal state happens again before a flow comes to its last packet; 0
  /// if no flow has got on.
  std::uint64_t most_repetitions(const NetworkPart& part, const PartState& earlier) const;
  /// Changes the part to what it is after so many repetitions of what happened between an equal state and `now`. Moves
  /// all packets, those of the events too.
  void advance(const NetworkPart& part, std::span<const pdes::Event> events, const PartState& earlier, Time now,
               std::uint64_t num_repetitions);

 private:
  class Recorder;
  class Comparer;
  class Mover;

  // Each calls the visitor for all that counts, always in the same order, until it has failed.
  template <class Visitor>
  void walk(Visitor& visitor, const NetworkPart& part);
  template <class Visitor>
  void walk(Visitor& visitor, std::span<const pdes::Event> events);
  template <class Visitor>
  void walk(Visitor& visitor, Port& port);
  template <class Visitor>
  void walk(Visitor& visitor, Nic& nic);
  template <class Visitor>
  void walk(Visitor& visitor, Flow& flow);
  template <class Visitor>
  void walk(Visitor& visitor, const PacketQueue& queue);
  template <class Visitor>
  void walk(Visitor& visitor, Packet& packet);
  bool is_known(const Packet& packet) const;
  std::size_t num_flows(const NetworkPart& part) const;

  PacketDevices& devices_;
};

}  // namespace orrery::network
