#pragma once

#include "orrery/config/command_line.hpp"

/// The `show` commands, each in a file of its own. All throw Error (bad_input, usage, output) for what they cannot do.
namespace orrery::show {

/// `orrery show trace`, `topology`, `collective`, `tables`, `plan`, `graph`, `flows`, `collisions`, `queues`,
/// `network` and `kernel`: print figures as text or JSON.
void show_trace(const config::ShowTraceCommand& command);
void show_topology(const config::ShowTopologyCommand& command);
void show_collective(const config::ShowCollectiveCommand& command);
void show_graph(const config::ShowGraphCommand& command);
void show_tables(const config::ShowTablesCommand& command);
void show_plan(const config::ShowPlanCommand& command);
void show_flows(const config::ShowFlowsCommand& command);
void show_collisions(const config::ShowCollisionsCommand& command);
void show_queues(const config::ShowQueuesCommand& command);
void show_network(const config::ShowNetworkCommand& command);
void show_kernel(const config::ShowKernelCommand& command);
/// `orrery show scaling`: prints what more ranks would gain.
void show_scaling(const config::ShowScalingCommand& command);

/// `orrery show keys`: prints the keys of configurations.
void show_keys(const config::ShowKeysCommand& command);

/// `orrery show models`, `systems`, `stacks` and `prices`: print which presets there are, with their key facts.
void show_presets(const config::ShowPresetsCommand& command);

/// `orrery show timeline`: writes a timeline for a viewer.
void show_timeline(const config::ShowTimelineCommand& command);

}  // namespace orrery::show
