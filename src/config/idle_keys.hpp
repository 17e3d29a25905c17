#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "orrery/config/configuration.hpp"

namespace orrery::config {

/// Returns a warning for each setting without which keys have no effect that `file`, or an option, gives another value
/// than their default. Cost O(keys given * conditions).
std::vector<std::string> warnings_of_idle_keys(const Configuration& configuration, std::string_view file);

}  // namespace orrery::config
