#pragma once

#include <cstdint>

#include "orrery/network/link_server.hpp"

namespace orrery::network {

/// What packets met at the port from which a link leads, in a network that sends packets.
struct PacketCounts {
  std::uint64_t marks = 0;          ///< packets that were marked
  std::uint64_t drops = 0;          ///< packets that came in by the port and were dropped
  std::uint64_t pauses = 0;         ///< pause frames that came
  std::uint64_t deepest_queue = 0;  ///< most bytes that waited
  std::uint64_t trims = 0;          ///< packets of which only the header went on
  Time credit_wait;                 ///< time that the link was free and lacked credit for what waited
};

/// What a link that carried data has done, for the results.
struct LinkRecord {
  std::uint32_t link = 0;  ///< topology::LinkId
  std::uint32_t dimension = 0;
  std::int64_t from = 0, to = 0;  ///< as topology::Fabric::Ends
  LinkStatistics statistics;
  PacketCounts packets = {};
};

}  // namespace orrery::network
