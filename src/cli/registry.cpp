#include "command.hpp"

namespace orrery::cli {

// Each is in the source of its name; those of presets are in show_presets.cpp.
extern const CommandEntry init_entry, run_entry, check_entry, explore_entry, best_entry, campaign_entry, cluster_entry,
    flows_entry, report_entry, compare_entry, calibrate_entry, generate_entry, convert_entry, synthesize_entry,
    partition_entry, show_results_entry, show_provenance_entry, show_trace_entry, show_topology_entry,
    show_collective_entry, show_tables_entry, show_plan_entry, show_graph_entry, show_network_entry, show_flows_entry,
    show_collisions_entry, show_queues_entry, show_kernel_entry, show_scaling_entry, show_timeline_entry,
    show_keys_entry, show_traffic_entry, show_metrics_entry, show_models_entry, show_systems_entry, show_stacks_entry,
    show_prices_entry, show_completion_entry, show_man_entry;

std::span<const CommandEntry* const> command_entries() {
  static constexpr const CommandEntry* all[] = {&init_entry,
                                                &run_entry,
                                                &check_entry,
                                                &explore_entry,
                                                &best_entry,
                                                &campaign_entry,
                                                &cluster_entry,
                                                &flows_entry,
                                                &report_entry,
                                                &compare_entry,
                                                &calibrate_entry,
                                                &generate_entry,
                                                &convert_entry,
                                                &synthesize_entry,
                                                &partition_entry,
                                                &show_results_entry,
                                                &show_provenance_entry,
                                                &show_trace_entry,
                                                &show_topology_entry,
                                                &show_collective_entry,
                                                &show_tables_entry,
                                                &show_plan_entry,
                                                &show_graph_entry,
                                                &show_network_entry,
                                                &show_traffic_entry,
                                                &show_flows_entry,
                                                &show_collisions_entry,
                                                &show_queues_entry,
                                                &show_kernel_entry,
                                                &show_scaling_entry,
                                                &show_timeline_entry,
                                                &show_keys_entry,
                                                &show_metrics_entry,
                                                &show_models_entry,
                                                &show_systems_entry,
                                                &show_stacks_entry,
                                                &show_prices_entry,
                                                &show_completion_entry,
                                                &show_man_entry};
  return all;
}

std::vector<const Subcommand*> subcommands() {
  std::vector<const Subcommand*> all;
  for (const CommandEntry* const entry : command_entries()) all.push_back(&entry->subcommand());
  return all;
}

}  // namespace orrery::cli
