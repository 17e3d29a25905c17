#pragma once

#include <string>
#include <string_view>

namespace orrery::cli {

inline constexpr std::string_view shells[] = {"bash", "zsh", "fish"};

/// Returns the script that lets a shell complete the command line: "bash", "zsh" or "fish". Throws Error (usage) for
/// any other shell.
std::string completion(std::string_view shell);

}  // namespace orrery::cli
