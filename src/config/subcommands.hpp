#pragma once

#include <span>
#include <string>

#include "option_table.hpp"

namespace orrery::config {

// What the subcommands take. Options that stand for a key come from the descriptor of the key.

/// Returns the options of inputs that most subcommands take.
OptionGroup own_inputs();

const Subcommand& run_subcommand();
const Subcommand& check_subcommand();
const Subcommand& generate_subcommand();
const Subcommand& convert_subcommand();
const Subcommand& synthesize_subcommand();
const Subcommand& partition_subcommand();
const Subcommand& report_subcommand();
const Subcommand& compare_subcommand();
const Subcommand& calibrate_subcommand();
const Subcommand& show_results_subcommand();
const Subcommand& show_provenance_subcommand();
const Subcommand& show_trace_subcommand();
const Subcommand& show_topology_subcommand();
const Subcommand& show_collective_subcommand();
const Subcommand& explore_subcommand();
const Subcommand& best_subcommand();
const Subcommand& campaign_subcommand();
const Subcommand& cluster_subcommand();
const Subcommand& flows_subcommand();
const Subcommand& show_tables_subcommand();
const Subcommand& show_plan_subcommand();
const Subcommand& show_graph_subcommand();
const Subcommand& show_flows_subcommand();
const Subcommand& show_collisions_subcommand();
const Subcommand& show_queues_subcommand();
const Subcommand& show_network_subcommand();
const Subcommand& show_kernel_subcommand();
const Subcommand& show_scaling_subcommand();
const Subcommand& show_timeline_subcommand();
const Subcommand& show_keys_subcommand();
const Subcommand& show_models_subcommand();
const Subcommand& show_systems_subcommand();
const Subcommand& show_stacks_subcommand();
const Subcommand& show_prices_subcommand();
const Subcommand& init_subcommand();
const Subcommand& show_completion_subcommand();
const Subcommand& show_man_subcommand();

/// Returns the subcommands, "show ..." included, in the order of the help.
std::span<const Subcommand* const> subcommands();

/// What `orrery show` does, in one line.
inline constexpr std::string_view show_summary =
    "Print results, a trace, a topology, a collective, tables, a plan, how a run went, what more ranks gain, keys, a "
    "manual; write a timeline.";

/// Returns the help of `orrery`, and of `orrery show`.
std::string overview();
std::string show_overview();

}  // namespace orrery::config
