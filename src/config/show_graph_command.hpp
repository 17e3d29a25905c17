#pragma once

#include "option_table.hpp"
#include "orrery/config/command_line.hpp"

namespace orrery::config {

/// Reads the arguments of `orrery show graph`. Throws Error (usage).
ShowGraphCommand make_show_graph(const Arguments& arguments);

}  // namespace orrery::config
