#pragma once

#include "option_table.hpp"
#include "orrery/config/command_line.hpp"

namespace orrery::config {

/// Reads what `orrery flows` is given. Throws Error (usage).
FlowsCommand make_flows(const Arguments& arguments);
/// Reads what `orrery show flows` is given. Throws Error (usage).
ShowFlowsCommand make_show_flows(const Arguments& arguments);

/// Reads what `orrery show collisions` is given. Throws Error (usage).
ShowCollisionsCommand make_show_collisions(const Arguments& arguments);
/// Reads what `orrery show queues` is given. Throws Error (usage).
ShowQueuesCommand make_show_queues(const Arguments& arguments);

}  // namespace orrery::config
