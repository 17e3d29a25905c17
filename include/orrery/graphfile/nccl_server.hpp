#pragma once

#include <filesystem>

#include "orrery/base/error.hpp"
#include "orrery/topology/graph_generator.hpp"

namespace orrery::graphfile {

/// Reads the server of a topology that NCCL or RCCL wrote (docs/inputs.md, *Topologies of NCCL and RCCL*): its GPUs,
/// NVSwitches, PCIe switches, CPUs and NICs, with the links between them. Rates come from the file; what it does not
/// say is missing, as are all delays. With `joins_gpus`, something else joins the GPUs, and the file need not list
/// their links. Throws Error (bad_input) with the line, or with the place that names the file if it cannot be read.
topology::ServerPlan read_nccl_server(const std::filesystem::path& file, bool joins_gpus, const Place& named_by);

}  // namespace orrery::graphfile
