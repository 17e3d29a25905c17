#pragma once

#include <cstdint>

#include "orrery/network/link_server.hpp"

namespace orrery::network {

/// What a link that carried data has done, for the results.
struct LinkRecord {
  std::uint32_t link = 0;  ///< topology::LinkId
  std::uint32_t dimension = 0;
  std::int64_t from = 0, to = 0;  ///< as topology::Fabric::Ends
  LinkStatistics statistics;
};

}  // namespace orrery::network
