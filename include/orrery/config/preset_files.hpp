#pragma once

#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

namespace orrery::config {

/// Returns the files of the presets of a kind, such as "models", by name. None if the folder of the presets is not
/// there. Cost O(files).
std::vector<std::filesystem::path> preset_files(std::string_view subfolder);

/// Returns a file in the folder of the presets, such as the schema of CONFIG.yaml; none if it is not there.
std::optional<std::filesystem::path> preset_file(std::string_view name);

}  // namespace orrery::config
