#include <algorithm>
#include <charconv>
#include <iterator>
#include <string_view>
#include <utility>

#include "orrery/topology/nccl_server.hpp"

namespace orrery::topology {
namespace {

/// GB/s of one NVLink in one direction, by the compute capability of the GPU. These are the rates of the wires that
/// NVIDIA's data sheets give. NCCL counts with what its protocols reach of them (src/graph/topo.h): 20 for 70 and 80,
/// 12 for 86, 20.6 for 90 and 40.1 for 100.
constexpr std::pair<int, double> nvlink_rates[] = {{60, 20},      {70, 25}, {72, 25},  {75, 25}, {80, 25},
                                                   {86, 14.0625}, {90, 25}, {100, 50}, {103, 50}};
/// GB/s of one xGMI link in one direction, by the GPU as RCCL names it.
constexpr std::pair<std::string_view, double> xgmi_rates[] = {
    {"906", 46}, {"908", 46},    {"910", 50},    {"gfx90a", 50}, {"940", 64},     {"941", 64},
    {"942", 64}, {"gfx940", 64}, {"gfx941", 64}, {"gfx942", 64}, {"gfx950", 76.8}};
constexpr double least_transfers = 0.1, most_transfers = 1000;  // GT/s that a speed may be

}  // namespace

std::optional<double> nvlink_bytes_per_ns(int sm) {
  const auto found = std::ranges::find(nvlink_rates, sm, &std::pair<int, double>::first);
  return found == std::end(nvlink_rates) ? std::nullopt : std::optional(found->second);
}

std::optional<double> xgmi_bytes_per_ns(std::string_view gcn) {
  const auto found = std::ranges::find(xgmi_rates, gcn, &std::pair<std::string_view, double>::first);
  return found == std::end(xgmi_rates) ? std::nullopt : std::optional(found->second);
}

std::optional<double> pcie_bytes_per_ns(std::string_view speed, std::uint32_t width) {
  double rate = 0;
  std::from_chars(speed.data(), speed.data() + speed.size(), rate);
  if (!(rate >= least_transfers && rate <= most_transfers) || width == 0) return {};
  const double of_data = rate < 8 ? 8.0 / 10 : 128.0 / 130;  // generations 1 and 2, later ones
  return rate * of_data / 8 * width;
}

}  // namespace orrery::topology
