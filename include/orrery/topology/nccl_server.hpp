#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

#include "orrery/base/error.hpp"
#include "orrery/topology/graph_generator.hpp"

namespace orrery::topology {

/// The rate of one link between GPUs in one direction.
struct GpuLinkRate {
  double bytes_per_ns = 0;  ///< GB/s
  bool is_assumed = false;  ///< whether the rate is that of an older GPU, because this GPU is not known
};
/// Returns the rate of an NVLink by the compute capability of the GPU (`sm`). A GPU that is not known has the rate of
/// the newest one before it. None for a GPU that is older than all known ones.
std::optional<GpuLinkRate> nvlink_rate(int sm);
/// Returns the rate of an xGMI link by the GPU as RCCL names it (`gcn`), in the same way.
std::optional<GpuLinkRate> xgmi_rate(std::string_view gcn);
/// Returns GB/s of a PCIe link in one direction, without the bits of the encoding; none if the text has no speed.
/// `speed`: such as "16.0 GT/s PCIe".
std::optional<double> pcie_bytes_per_ns(std::string_view speed, std::uint32_t width);

/// The class of PCI devices that are NVSwitches.
inline constexpr std::string_view nvswitch_class = "0x068000";
/// NICs below this share of the fastest one carry no collectives.
inline constexpr double slow_nic_share = 0.1;
/// Above so many Mbit/s a driver gave kbit/s, and below the least a file says no speed.
inline constexpr double most_nic_mbps = 3.2e6, least_nic_mbps = 1;

/// Reads the server of a topology that NCCL or RCCL wrote (docs/inputs.md, *Topologies of NCCL and RCCL*): its GPUs,
/// NVSwitches, PCIe switches, CPUs and NICs, with the links between them. Rates come from the file; what it does not
/// say is missing, as are all delays. With `joins_gpus`, something else joins the GPUs, and the file need not list
/// their links. Throws Error (bad_input) with the line, or with the place that names the file if it cannot be read.
ServerPlan read_nccl_server(const std::filesystem::path& file, bool joins_gpus, const Place& named_by);

}  // namespace orrery::topology
