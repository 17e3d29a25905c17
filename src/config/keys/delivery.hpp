#pragma once

#include "keys.hpp"
#include "orrery/network/packet_rules.hpp"

namespace orrery::config {

// The keys of system.network.packets that say how packets get to their destination.

const Words<network::PacketRouting>& routings();
const Words<network::PacketLoss>& losses();
const Words<network::PacketTransport>& transports();
const Words<network::Spraying>& sprayings();
/// A time-out is a word, or a time.
TypeInfo timeout_info();
Handling<Configuration> timeout_handling();
/// Reads a configuration of ns-3.
Handling<Configuration> file_handling();

}  // namespace orrery::config
