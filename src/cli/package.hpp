#pragma once

#include <string>

#include "option_table.hpp"
#include "options.hpp"

namespace orrery::cli {

// What the commands share that the Python package carries out.

/// The option --format, and its value as an argument of the package. Throws Error (usage) for another format.
Option format_option();
std::string format_argument(const Arguments& arguments);
/// Returns the command with the files after its options. No file is taken for an option.
PackageCommand with_files(PackageCommand command, const Arguments& arguments);

/// Becomes Python, whose exit code is that of the program. Returns `not_installed` if there is no Python or no package
/// to run.
int run_package(const PackageCommand& command);

/// The exit code if a program or a package is missing that Orrery itself does not hold: EX_UNAVAILABLE of sysexits.h.
inline constexpr int not_installed = 69;

}  // namespace orrery::cli
