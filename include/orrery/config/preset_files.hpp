#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::config {

/// Returns the files of the presets of a kind, such as "models", by name. None if the folder of the presets is not
/// there. Cost O(files).
std::vector<std::filesystem::path> preset_files(std::string_view subfolder);

/// Returns the preset of a kind that has a name or begins with it and a dash, as find_preset takes it; none if there is
/// no such preset, or if the name is short for several. Cost O(files).
std::optional<std::filesystem::path> preset_named(std::string_view subfolder, const std::string& name);

/// Returns the JSON schema of CONFIG.yaml that belongs to this program: in the folder of the presets, where it is
/// installed, or in the build of which the program is part. None if it is in neither.
std::optional<std::filesystem::path> schema_file();

}  // namespace orrery::config
