#pragma once

#include <string>
#include <string_view>

namespace orrery::config {

/// Returns the script that lets a shell complete the command line: "bash", "zsh" or "fish". Throws Error (usage) for
/// any other shell.
std::string completion(std::string_view shell);

}  // namespace orrery::config
