#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "value.hpp"

namespace orrery::config {

/// Returns the file that `name` names where a preset may stand: from the folder of the file in which it stands, else
/// from the folder configs that is installed with this program or lies in its repository, else from `subfolder` of that
/// folder, such as "models". The ending .yaml may be left out, and so may the end of a preset's name from a dash on, if
/// the rest is short for one preset only. Throws Error (bad_input) with the places that were searched. Cost O(files of
/// `subfolder`).
std::filesystem::path find_preset(const Value& name, const std::string& key, std::string_view subfolder);

}  // namespace orrery::config
