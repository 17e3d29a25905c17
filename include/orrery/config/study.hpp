#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "orrery/config/read.hpp"
#include "orrery/explore/study.hpp"

namespace orrery::config {

/// Reads a STUDY.yaml (docs/exploration.md) and checks its names. Throws all faults as one Error (Faults::raise):
/// bad_input with file, line and key. Does not read the CONFIG.yaml that it names.
explore::Study read_study(const std::filesystem::path& file);

/// Returns the values of keys in the resolved configuration, as texts; a key that is not there, or that holds more than
/// one value, is left out. A number in a key is a position in a list. Throws as `read`.
std::map<std::string, std::string> read_values(const Inputs& inputs, const std::vector<std::string>& keys);

}  // namespace orrery::config
