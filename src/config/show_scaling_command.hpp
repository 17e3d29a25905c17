#pragma once

#include "option_table.hpp"
#include "orrery/config/command_line.hpp"

namespace orrery::config {

/// Reads what `orrery show scaling` is given. Throws Error (usage).
ShowScalingCommand make_show_scaling(const Arguments& arguments);

}  // namespace orrery::config
