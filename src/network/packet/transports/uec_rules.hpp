#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

#include "nscc.hpp"
#include "orrery/base/time.hpp"
#include "orrery/network/packet_graph.hpp"
#include "orrery/network/packet_router.hpp"
#include "orrery/network/packet_rules.hpp"

namespace orrery::network {

/// Packet::flags.
namespace uec_flags {
inline constexpr std::uint8_t asks = 1;       ///< data: for an acknowledgement
inline constexpr std::uint8_t again = 2;      ///< data: sent before; acknowledgements: the data were
inline constexpr std::uint8_t trimmed = 4;    ///< data: only the header is left
inline constexpr std::uint8_t last_hop = 8;   ///< trimmed at the last switch
inline constexpr std::uint8_t probe = 16;     ///< no data: asks what has come
inline constexpr std::uint8_t from_it = 32;   ///< acknowledgements: the bitmap begins with the packet of Packet::number
inline constexpr std::uint8_t has_last = 64;  ///< acknowledgements: the last packet of the flow is there
}  // namespace uec_flags

/// Figures that UEC derives from the path with the most links between hosts, at the rate of the hosts.
struct UecFigures {
  /// Throws Error (bad_input) if a link has too little room for acknowledgements on its way back.
  UecFigures(const PacketGraph& graph, const PacketRouter& router, const PacketRules& rules);

  std::uint64_t rate = 0;   ///< rate of the first host, b/s
  Time round_trip;          ///< round trip of a full packet and its acknowledgement
  std::uint64_t queue = 0;  ///< limit of the bytes of data that wait for a port of this rate
  MarkThresholds marks;
  Time time_out;

 private:
  static void require_room_for_answers(const PacketGraph& graph, const PacketRules& rules);
  void measure(const PacketGraph& graph, const PacketRouter& router, const PacketRules& rules);
};

/// The rules and figures that all flows share.
struct UecRun {
  UecRun(const PacketGraph& graph, const PacketRouter& router, const PacketRules& its_rules);

  const PacketRules& rules;
  UecFigures figures;
  bool by_credit;  ///< whether receivers give credit

  /// Returns the constants of flows that leave over a port of this rate, which is that of a port of some host.
  const NsccParameters& nscc_at(std::uint64_t rate) const { return nscc_.at(rate); }

  std::uint32_t mtu() const { return static_cast<std::uint32_t>(rules.full_packet()); }
  /// Returns how many bytes of data may wait for a port: in proportion to its rate, and at least a packet.
  std::uint64_t queue_at(std::uint64_t rate) const {
    if (rate == figures.rate) return figures.queue;
    const auto scaled = static_cast<unsigned __int128>(figures.queue) * rate / figures.rate;
    return std::max(static_cast<std::uint64_t>(scaled), rules.full_packet());
  }
  /// Credit is given in units of 256 bytes.
  static constexpr std::int64_t credit_unit = 256;
  std::int32_t credit_per_pull() const {
    return static_cast<std::int32_t>(std::int64_t{rules.payload} * 4 / credit_unit);
  }
  /// Returns the most credit of a flow over a port with these constants.
  std::int64_t most_credit(const NsccParameters& port) const { return port.product(figures.round_trip) * 3 / 2; }

 private:
  std::map<std::uint64_t, NsccParameters> nscc_;  ///< constants by the rates of the hosts' ports
};

}  // namespace orrery::network
