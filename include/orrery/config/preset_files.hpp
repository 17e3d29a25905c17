#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace orrery::config {

/// Returns the files of the presets of a kind, such as "models", by name. None if the folder of the presets is not
/// there. Cost O(files).
std::vector<std::filesystem::path> preset_files(std::string_view subfolder);

}  // namespace orrery::config
