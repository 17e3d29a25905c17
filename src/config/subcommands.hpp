#pragma once

#include "option_table.hpp"

namespace orrery::config {

// What the subcommands take: tables only.

const Subcommand& run_subcommand();
const Subcommand& check_subcommand();
const Subcommand& generate_subcommand();
const Subcommand& partition_subcommand();
const Subcommand& show_trace_subcommand();
const Subcommand& show_topology_subcommand();
const Subcommand& show_collective_subcommand();
const Subcommand& show_kernel_subcommand();

/// `orrery --help`, and `orrery show --help`.
std::string overview();
std::string show_overview();

}  // namespace orrery::config
