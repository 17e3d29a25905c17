#pragma once

#include <string>

namespace orrery::config {

/// Returns an argument that names a preset, a file or the folder of a config.json as another file may name it, wherever
/// that lies: a text of YAML, with the whole path of what is there.
std::string yaml_name(const std::string& argument);

}  // namespace orrery::config
