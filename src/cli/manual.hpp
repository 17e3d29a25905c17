#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace orrery::cli {

/// Returns the names by which `orrery show man` knows the commands: "run", "show-trace", ...
std::vector<std::string> manual_pages();

/// Returns the manual page of a command, or of the whole program if `name` is empty, in the language of man. Throws
/// Error (usage) if there is no such command.
std::string manual(std::string_view name);

}  // namespace orrery::cli
