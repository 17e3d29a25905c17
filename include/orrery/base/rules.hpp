#pragma once

#include "orrery/base/quantity.hpp"

namespace orrery {

/// The two sets of arithmetic rules (docs/model.md, 1) as one small value. No formula is written twice: it asks here.
struct Rules {
  Rounding rounding = Rounding::up_to_ps;
  /// Halving-doubling pays the reduction of every received message; else it skips the first step's
  /// (docs/model.md, 6.3).
  bool reduce_every_message = true;
  /// Point to point over several dimensions pays for every differing one; else for the first that differs only.
  bool charge_every_dimension = true;
  /// Inside a communicator smaller than the world the endpoint delay is 10 ns whatever is configured.
  bool fixed_subgroup_endpoint_delay = false;
  /// A communicator smaller than the world is one ring over its members in the order listed.
  bool subgroup_is_ring = false;
  /// Chunks in service together share the bandwidth of their dimension; else each has all of it.
  bool share_bandwidth = true;
  /// Custom collectives cost what ASTRA-sim charges: no endpoint delays, a computation its recorded duration or 1 ns,
  /// and a send is over when its message is there; else docs/collectives.md, Custom collectives.
  bool bare_procedures = false;
  /// An NPU's own remote memory serves its accesses one after the other; else each has all of its bandwidth.
  bool own_memory_takes_turns = true;

  static constexpr Rules physical() { return {}; }
  static constexpr Rules astra_sim() { return {Rounding::down_to_ns, false, false, true, true, false, true, false}; }
};

}  // namespace orrery
