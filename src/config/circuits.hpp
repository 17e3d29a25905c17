#pragma once

#include <memory>
#include <string>
#include <vector>

#include "contradiction.hpp"
#include "orrery/config/configuration.hpp"
#include "orrery/topology/circuits.hpp"
#include "value.hpp"

namespace orrery::config {

/// Reads `system.network.circuits` for the dimensions of `target`. Throws Error (bad_input), or notes faults.
std::shared_ptr<const topology::Circuits> read_circuits(const Value& value, const std::string& path,
                                                        const Configuration& target, Faults& faults);
/// Returns the circuits as a value of CONFIG.yaml.
std::string circuits_text(const topology::Circuits& circuits);
/// Returns the settings that circuits exclude, because they join the ports of dimensions anew.
std::vector<Contradiction> contradictions_of_circuits(const Configuration& configuration);

}  // namespace orrery::config
