#pragma once

#include <vector>

#include "orrery/network/flit_records.hpp"
#include "orrery/network/flow_records.hpp"
#include "orrery/network/record.hpp"

namespace orrery::network {

/// All that one rank knows of a network that simulates links.
struct NetworkRecords {
  std::vector<LinkRecord> links;  ///< links that carried data, ascending
  PacketRecords packets;          ///< records of a network that sends packets, as PacketRecording asks for them
  std::vector<FlitRecord> flits;  ///< links of dimensions that are simulated flit by flit
};

}  // namespace orrery::network
