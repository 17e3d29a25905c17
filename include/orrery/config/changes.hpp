#pragma once

#include <filesystem>
#include <string>

#include "orrery/config/read.hpp"

namespace orrery::config {

/// Returns a CONFIG.yaml that stands on the file of the inputs, which it names `base`, and holds what their settings
/// (--set) change. A setting of an item of a list gives the whole list. Files that settings name get their whole path.
/// Throws Error (bad_input) for what cannot be read.
std::string changes_text(const Inputs& inputs, const std::filesystem::path& base);

}  // namespace orrery::config
