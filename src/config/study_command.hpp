#pragma once

#include "option_table.hpp"
#include "orrery/config/command_line.hpp"

namespace orrery::config {

/// Reads what `orrery explore` is given. Throws Error (usage).
ExploreCommand make_explore(const Arguments& arguments);
/// Reads what `orrery best` is given. Throws Error (usage).
BestCommand make_best(const Arguments& arguments);

}  // namespace orrery::config
