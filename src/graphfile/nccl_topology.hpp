#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

#include "orrery/graphfile/system_formats.hpp"

namespace orrery::graphfile {

/// Says whether a file that begins with these bytes is XML with one of the roots that nccl_topology_to_yaml tells
/// apart: `system` (a topology), `graphs` (what NCCL searched in one) and `topology` (hwloc).
bool is_nccl_topology(std::string_view beginning);

/// Returns the system of a topology that NCCL or RCCL wrote (NCCL_TOPO_DUMP_FILE, NCCL_TOPO_FILE) as the YAML of a
/// configuration. Its comments give the facts of the file and each number that was assumed; `num_nodes` nodes, if it is
/// given, are not. A rate of links that is assumed because the GPU is newer than the known ones is a warning too.
/// Throws Error (bad_input) with the line, and for the XML of hwloc and NCCL's graphs, with what to give instead.
SystemText nccl_topology_to_yaml(const std::filesystem::path& path, std::optional<std::uint32_t> num_nodes);

}  // namespace orrery::graphfile
