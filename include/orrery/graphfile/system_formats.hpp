#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::graphfile {

/// A system as the YAML of a configuration, and what the user should know of it.
struct SystemText {
  std::string yaml;
  std::vector<std::string> warnings;
};

/// A format of files that describe a system, which `orrery convert` turns into the YAML of a configuration.
struct SystemFormat {
  std::string_view name;  ///< as messages give it
  /// Says whether a file that begins with these bytes is of this format.
  bool (*recognises)(std::string_view beginning);
  /// Returns a system of so many nodes, or of as many as are assumed. Throws Error (bad_input) with the line.
  SystemText (*to_yaml)(const std::filesystem::path& path, std::optional<std::uint32_t> num_nodes);
};

/// Returns the format of a file; null if it describes no system.
const SystemFormat* find_system_format(const std::filesystem::path& path);

}  // namespace orrery::graphfile
