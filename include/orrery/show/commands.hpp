#pragma once

#include "orrery/show/options.hpp"

/// The `show` commands, each in a file of its own. All throw Error (bad_input, usage, output) for what they cannot do.
namespace orrery::show {

/// `orrery show trace`, `topology`, `collective`, `tables`, `plan`, `graph`, `flows`, `collisions`, `queues`,
/// `network`, `traffic` and `kernel`: print figures as text or JSON.
void show_trace(const ShowTraceCommand& command);
void show_topology(const ShowTopologyCommand& command);
void show_collective(const ShowCollectiveCommand& command);
void show_graph(const ShowGraphCommand& command);
void show_tables(const ShowTablesCommand& command);
void show_plan(const ShowPlanCommand& command);
void show_flows(const ShowFlowsCommand& command);
void show_collisions(const ShowCollisionsCommand& command);
void show_queues(const ShowQueuesCommand& command);
void show_network(const ShowNetworkCommand& command);
void show_traffic(const ShowTrafficCommand& command);
void show_kernel(const ShowKernelCommand& command);
/// `orrery show scaling`: prints what more ranks would gain.
void show_scaling(const ShowScalingCommand& command);

/// `orrery show keys`: prints the keys of configurations.
void show_keys(const ShowKeysCommand& command);

/// `orrery show models`, `systems`, `stacks` and `prices`: print which presets there are, with their key facts.
void show_presets(const ShowPresetsCommand& command);

/// `orrery show timeline`: writes a timeline for a viewer.
void show_timeline(const ShowTimelineCommand& command);

}  // namespace orrery::show
