#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "option_table.hpp"

namespace orrery::config {

// What the subcommands take: tables only.

const Subcommand& run_subcommand();
const Subcommand& check_subcommand();
const Subcommand& generate_subcommand();
/// Flags of `generate` and the keys of the `workload` section that they stand for.
const std::vector<std::pair<std::string_view, std::string_view>>& generate_keys();
const Subcommand& partition_subcommand();
const Subcommand& show_trace_subcommand();
const Subcommand& show_topology_subcommand();
const Subcommand& show_collective_subcommand();
const Subcommand& show_kernel_subcommand();
const Subcommand& show_timeline_subcommand();

/// `orrery --help`, and `orrery show --help`.
std::string overview();
std::string show_overview();

}  // namespace orrery::config
