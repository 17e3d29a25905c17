#include "orrery/topology/shared_ports.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "orrery/base/error.hpp"
#include "orrery/topology/wiring.hpp"

namespace orrery::topology {
namespace {

constexpr double least_rate = 1e-9;  // bytes per ns: one byte per second

}  // namespace

std::uint32_t SharedPort::first_dimension() const { return static_cast<std::uint32_t>(std::countr_zero(dimensions)); }

Bandwidth injection_rate(const Dimension& dimension) {
  const double of_links = dimension.bandwidth_of_links().bytes_per_ns();
  if (dimension.size == 1 || dimension.shape->sends_over_one_link) return Bandwidth::from_bytes_per_ns(of_links);
  const auto wiring = make_wiring(dimension);
  const double links_of_npu = static_cast<double>(wiring->num_injection_links()) / dimension.size;
  return Bandwidth::from_bytes_per_ns(of_links * std::max(links_of_npu, 1.0));
}

SharedPorts::SharedPorts(std::span<const Dimension> dimensions, const PortRates& rates) : of_(dimensions.size(), none) {
  std::vector<double> sums;  // [ports] of the rates of dimensions
  for (std::size_t d = 0; d < dimensions.size(); ++d) {
    const Dimension& dimension = dimensions[d];
    if (dimension.port.empty() || dimension.size == 1) continue;
    const auto found = std::ranges::find(ports_, dimension.port, &SharedPort::name);
    of_[d] = static_cast<std::uint32_t>(found - ports_.begin());
    if (found == ports_.end()) {
      ports_.push_back({.name = dimension.port, .rate = Bandwidth::from_bytes_per_ns(0)});
      sums.push_back(0);
    }
    SharedPort& port = ports_[of_[d]];
    const Bandwidth rate = injection_rate(dimension);
    port.dimensions |= std::uint64_t{1} << d;
    port.rate = std::max(port.rate, rate);
    sums[of_[d]] += rate.bytes_per_ns();
  }
  for (std::size_t p = 0; p < ports_.size(); ++p) {
    SharedPort& port = ports_[p];
    if (const auto given = rates.find(port.name); given != rates.end()) {
      port.rate = given->second;
      port.is_given = true;
    }
    if (!(port.rate.bytes_per_ns() >= least_rate))
      throw Error(ErrorCode::bad_input, {.key = fmt::format("system.network.ports.{}", port.name)},
                  fmt::format("the rate of the port is {} bytes/ns", port.rate.bytes_per_ns()), "1 byte/s or more");
    port.is_contended = std::popcount(port.dimensions) > 1 && sums[p] > port.rate.bytes_per_ns();
  }
}

std::uint64_t SharedPorts::contending(std::uint64_t dimensions) const {
  std::uint64_t all = dimensions;
  for (const SharedPort& port : ports_)
    if (port.is_contended && (port.dimensions & dimensions) != 0) all |= port.dimensions;
  return all;
}

}  // namespace orrery::topology
