#pragma once

#include <cstdint>
#include <span>

#include "orrery/base/hosting.hpp"
#include "orrery/base/ids.hpp"
#include "orrery/base/variations.hpp"
#include "orrery/collective/collective.hpp"
#include "orrery/communicator/report.hpp"
#include "orrery/communicator/spec.hpp"
#include "orrery/network/analytical.hpp"
#include "orrery/pdes/scheduler.hpp"

namespace orrery::pdes {
class LoadRecorder;
}

namespace orrery::communicator {

/// Who carries a collective out once its members have joined.
enum class Execution : std::uint8_t {
  at_host,     ///< the host computes when each member completes (collective::Engine::finish)
  by_members,  ///< members exchange messages over links; the communicator checks that they agree, and keeps records
};

/// What the communicators of a rank are made from. What is referred to outlives them.
struct Setup {
  pdes::Scheduler& kernel;
  collective::Engine& engine;
  network::Analytical& network;
  std::span<const CommunicatorSpec> specs;  ///< [num_groups], alike on all ranks
  Hosting hosting;
  LpId first_lp;  ///< LP of the communicator of group 0
  const PlaceOf& place_of;
  Execution execution = Execution::at_host;
  Time least_recorded = Time::max();       ///< no collective that all its members recorded takes less; at_host only
  const Variations* variations = nullptr;  ///< factors of the times of collectives; null: none. at_host only
  /// Joins and completions have places among simultaneous events, which follow from the messages of collectives.
  /// at_host only.
  bool knows_places = false;
  bool rendezvous = false;             ///< how the messages of collectives go, for these places
  pdes::LoadRecorder* load = nullptr;  ///< takes note of all collectives; null: nothing is recorded
};

}  // namespace orrery::communicator
