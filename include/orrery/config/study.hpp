#pragma once

#include <filesystem>

#include "orrery/explore/study.hpp"

namespace orrery::config {

/// Reads a STUDY.yaml (docs/exploration.md) and checks its names. Throws all faults as one Error (Faults::raise):
/// bad_input with file, line and key. Does not read the CONFIG.yaml that it names.
explore::Study read_study(const std::filesystem::path& file);

}  // namespace orrery::config
