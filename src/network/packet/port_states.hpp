#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "network_parts.hpp"
#include "network_view.hpp"
#include "orrery/base/time.hpp"
#include "orrery/pdes/event.hpp"

namespace orrery::network {

/// The state of a part of the network, as far as its future depends on it. Times count from `time` on, and places in a
/// message from the first byte that is not acknowledged. Two times with equal states have equal futures, except for the
/// statistics of ports and for packets from outside (docs/packet-network.md, *Long transfers*).
struct PartState {
  Time time;
  std::vector<std::uint64_t> values;
  std::vector<std::uint64_t> totals;        ///< statistics of the ports
  std::vector<std::uint64_t> acknowledged;  ///< [flows of the part] bytes
};

/// Records, compares and advances the states of parts of the network. Events are those that wait for nodes of the part.
class PortStates {
 public:
  PortStates(const NetworkView& view, const MovableNetwork& movable) : view_(view), movable_(movable) {}

  /// Writes down the state, with the events in their order. Returns false if something in the part goes by absolute
  /// times or places, so that its state says nothing. O(ports + flows + packets).
  bool record(const NetworkPart& part, std::span<const pdes::Event> events, PartState& state) const;
  /// Returns how many values of the state, without its events, are unchanged; npos if all of them are. O(equal values).
  std::size_t num_equal(const NetworkPart& part, const PartState& state) const;
  static constexpr std::size_t npos = ~std::size_t{0};
  /// Returns whether the whole state, with the events in their order, is unchanged.
  bool is_equal(const NetworkPart& part, std::span<const pdes::Event> events, const PartState& state) const;
  /// Returns how often the events since an equal state will repeat themselves before a flow comes to its last packet; 0
  /// if no flow has sent anything since.
  std::uint64_t most_repetitions(const NetworkPart& part, const PartState& earlier) const;
  /// Moves the part to the time after so many repetitions of the events between an equal state and `now`, with all its
  /// packets, also the packets of the events.
  void advance(const NetworkPart& part, std::span<const pdes::Event> events, const PartState& earlier, Time now,
               std::uint64_t num_repetitions);

 private:
  class Recorder;
  class Comparer;
  class Mover;

  template <class Visitor, class Network>
  class Walk;

  std::size_t num_flows(const NetworkPart& part) const;

  NetworkView view_;
  MovableNetwork movable_;
};

}  // namespace orrery::network
