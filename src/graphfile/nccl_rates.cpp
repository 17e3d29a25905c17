#include "nccl_rates.hpp"

#include <charconv>
#include <utility>

namespace orrery::graphfile {
namespace {

/// GB/s of one NVLink in one direction, by the compute capability of the GPU. These are the rates of the wires that
/// NVIDIA's data sheets give. NCCL counts with what its protocols reach of them (src/graph/topo.h): 20 for 70 and 80,
/// 12 for 86, 20.6 for 90 and 40.1 for 100.
constexpr std::pair<int, double> nvlink_rates[] = {{60, 20},      {70, 25}, {72, 25},  {75, 25}, {80, 25},
                                                   {86, 14.0625}, {90, 25}, {100, 50}, {103, 50}};
constexpr int sm_without_switches = 86;  ///< workstation GPU, whose rate says nothing about later GPUs
/// GB/s of one xGMI link in one direction, by the GPU as RCCL names it.
constexpr std::pair<std::string_view, double> xgmi_rates[] = {
    {"906", 46}, {"908", 46},    {"910", 50},    {"gfx90a", 50}, {"940", 64},     {"941", 64},
    {"942", 64}, {"gfx940", 64}, {"gfx941", 64}, {"gfx942", 64}, {"gfx950", 76.8}};
constexpr double least_transfers = 0.1, most_transfers = 1000;  // GT/s that a speed may be

/// Returns the generation of a GPU of AMD: 0x942 of "942" and "gfx942", 0x1250 of "gfx1250"; none for other names.
std::optional<std::uint32_t> generation_of(std::string_view gcn) {
  if (gcn.starts_with("gfx")) gcn.remove_prefix(3);
  std::uint32_t generation = 0;
  const auto [end, error] = std::from_chars(gcn.data(), gcn.data() + gcn.size(), generation, 16);
  if (error != std::errc() || end != gcn.data() + gcn.size()) return std::nullopt;
  return generation;
}

}  // namespace

std::optional<GpuLinkRate> nvlink_rate(int sm) {
  std::optional<GpuLinkRate> rate;
  for (const auto& [known, of_known] : nvlink_rates) {
    if (known == sm) return GpuLinkRate{of_known};
    if (known < sm && known != sm_without_switches) rate = {of_known, true};
  }
  return rate;
}

std::optional<GpuLinkRate> xgmi_rate(std::string_view gcn) {
  std::optional<GpuLinkRate> rate;
  const auto generation = generation_of(gcn);
  for (const auto& [known, of_known] : xgmi_rates) {
    if (known == gcn) return GpuLinkRate{of_known};
    if (generation && generation_of(known) <= *generation) rate = {of_known, true};
  }
  return rate;
}

std::optional<double> pcie_bytes_per_ns(std::string_view speed, std::uint32_t width) {
  double rate = 0;
  std::from_chars(speed.data(), speed.data() + speed.size(), rate);
  if (!(rate >= least_transfers && rate <= most_transfers) || width == 0) return {};
  const double of_data = rate < 8 ? 8.0 / 10 : 128.0 / 130;  // generations 1 and 2, later ones
  return rate * of_data / 8 * width;
}

}  // namespace orrery::graphfile
