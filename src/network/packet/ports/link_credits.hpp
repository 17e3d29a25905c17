#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "orrery/base/archive.hpp"
#include "orrery/base/time.hpp"
#include "orrery/network/credit_waits.hpp"
#include "orrery/network/packet_graph.hpp"
#include "orrery/network/packet_rules.hpp"

namespace orrery::network {

/// The credits of links, by port and virtual channel. Ports are numbered over all nodes. The start of a link knows how
/// many bytes it may still send. Its end knows how many of these wait there.
class LinkCredits {
 public:
  LinkCredits(const PacketGraph& graph, const PacketRules& rules);

  std::uint32_t num_channels() const { return num_channels_; }
  /// Returns whether channels come in pairs, of which packets change from the first to the second.
  bool has_turns() const { return has_turns_; }
  std::int64_t whole(std::size_t port) const { return whole_[port]; }
  std::int64_t& left(std::size_t port, std::uint32_t channel) { return left_[port * num_channels_ + channel]; }
  std::int64_t left(std::size_t port, std::uint32_t channel) const { return left_[port * num_channels_ + channel]; }
  std::int64_t& held(std::size_t port, std::uint32_t channel) { return held_[port * num_channels_ + channel]; }
  std::int64_t held(std::size_t port, std::uint32_t channel) const { return held_[port * num_channels_ + channel]; }

  bool waits(std::size_t port) const { return waits_since_[port] != never; }
  /// Notes that a port has packets to send, but no credit for them.
  void begin_wait(std::size_t port, Time now) {
    if (!waits(port)) waits_since_[port] = now;
  }
  /// Notes that a port sends. Returns for how long it has waited.
  Time end_wait(std::size_t port, Time now);
  void serialize(std::size_t port, Archive& archive);

 private:
  static constexpr Time never = Time::max();

  std::uint32_t num_channels_;
  bool has_turns_ = false;
  std::vector<std::int64_t> whole_;        // [ports] credit of each channel of the link that begins there
  std::vector<std::int64_t> left_, held_;  // [ports * channels]
  std::vector<Time> waits_since_;          // [ports]
};

}  // namespace orrery::network
