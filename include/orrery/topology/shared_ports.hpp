#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "orrery/base/quantity.hpp"
#include "orrery/topology/dimension.hpp"

namespace orrery::topology {

/// Rates of ports by their names.
using PortRates = std::map<std::string, Bandwidth, std::less<>>;

/// A port of every NPU through which the links of one or several dimensions lead, such as a network card.
struct SharedPort {
  std::string name;
  Bandwidth rate;                ///< rate of an NPU, in each direction
  bool is_given = false;         ///< the configuration says the rate; otherwise that of its fastest dimension
  std::uint64_t dimensions = 0;  ///< bit d: dimension d, if it has two NPUs or more
  /// The dimensions together could send more than the rate, so that only one of them sends at a time.
  bool is_contended = false;

  std::uint32_t first_dimension() const;
};

/// Returns the rate at which an NPU can send into a dimension, over all its links there.
Bandwidth injection_rate(const Dimension& dimension);

/// The ports that dimensions share (Dimension::port).
class SharedPorts {
 public:
  SharedPorts() = default;
  /// Ports without a rate among `rates` have that of the fastest of their dimensions. Names that no dimension has are
  /// left out. Throws Error (bad_input) for a rate below 1 byte/s.
  SharedPorts(std::span<const Dimension> dimensions, const PortRates& rates);

  std::span<const SharedPort> all() const { return ports_; }
  /// Returns the port of dimension d; null if the dimension names none.
  const SharedPort* of(std::uint32_t d) const { return d < of_.size() && of_[d] != none ? &ports_[of_[d]] : nullptr; }
  /// Returns `dimensions`, a bit each, with all others that contend for a port with one of them.
  std::uint64_t contending(std::uint64_t dimensions) const;

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  std::vector<SharedPort> ports_;
  std::vector<std::uint32_t> of_;  ///< [dimensions] index into `ports_`
};

}  // namespace orrery::topology
