#pragma once

#include "orrery/collective/collective.hpp"
#include "orrery/config/configuration.hpp"
#include "orrery/memory/remote_memory.hpp"
#include "orrery/network/delay_model.hpp"
#include "orrery/topology/topology.hpp"

namespace orrery::run {

/// The simulated system without its workload: how long messages, collectives and accesses to memory take.
struct System {
  /// Throws Error (bad_input) as Configuration::delays does.
  explicit System(const config::Configuration& configuration)
      : delays(configuration.delays()),
        memory(configuration.remote_memory, delays.topology().num_npus()),
        engine(delays, configuration.collective_options()) {}

  const topology::Topology& topology() const { return delays.topology(); }

  network::DelayModel delays;
  memory::RemoteMemory memory;
  collective::Engine engine;
};

}  // namespace orrery::run
