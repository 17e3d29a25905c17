#pragma once

#include "option_table.hpp"
#include "orrery/config/command_line.hpp"

namespace orrery::config {

/// Reads what `orrery show plan` is given. Throws Error (usage).
ShowPlanCommand make_show_plan(const Arguments& arguments);

}  // namespace orrery::config
