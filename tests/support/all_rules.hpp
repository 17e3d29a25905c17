#pragma once

#include <utility>
#include <vector>

#include "orrery/collective/collective.hpp"
#include "orrery/network/delay_model.hpp"

namespace orrery::test_support {

/// The rules of the network and those of collectives, as one value.
struct AllRules : collective::Rules {
  Rounding rounding = Rounding::up_to_ps;
  bool charge_every_dimension = true;

  static AllRules physical() { return {}; }
  /// Without the rules on the order of messages, which the tests of these rules set.
  static AllRules astra_sim() {
    return {{.reduce_every_message = false,
             .fixed_subgroup_endpoint_delay = true,
             .subgroup_is_ring = true,
             .share_bandwidth = false,
             .bare_custom_collectives = true},
            Rounding::down_to_ns,
            false};
  }
  network::Rules network() const { return {rounding, charge_every_dimension}; }
  collective::Options with(collective::Options options) const {
    options.rules = *this;
    return options;
  }
};

inline network::DelayModel delays(std::vector<topology::Dimension> dimensions, const AllRules& rules = {},
                                  topology::Links links = {}) {
  return network::DelayModel(topology::Topology(std::move(dimensions), std::move(links)), rules.network());
}

}  // namespace orrery::test_support
