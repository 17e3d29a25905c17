#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "orrery/network/flow_run.hpp"

namespace orrery::config {

/// What a FLOWS.yaml says.
struct FlowFile {
  network::FlowScenario scenario;
  std::vector<std::string> warnings;  ///< warnings about contents without an effect
};

/// Reads a FLOWS.yaml (docs/flows.md): a graph of hosts and switches, the rules of
/// packets, and flows. `overrides` are the texts of --set. Throws all faults as one Error (Faults::raise): bad_input
/// with file, line and key.
FlowFile read_flows(const std::filesystem::path& file, const std::vector<std::string>& overrides);

}  // namespace orrery::config
