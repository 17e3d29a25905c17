#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace orrery::graphfile {

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

}  // namespace orrery::graphfile
