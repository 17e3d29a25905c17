#include "orrery/topology/dimension.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <source_location>
#include <string>

#include "orrery/base/error.hpp"

namespace orrery::topology {
namespace {

constexpr double min_bandwidth = 1e-9;  // bytes per ns: one byte per second
constexpr double max_bandwidth = 9e9;   // bytes per ns: bytes per second fit a signed 64-bit number
constexpr std::uint32_t max_links = 4096;
constexpr double max_oversubscription = 1e6;
constexpr std::uint32_t max_ports = 4096;  // and routers, NPUs and links of a router

/// Of one dimension.
class Validation {
 public:
  Validation(const Dimension& dimension, std::string_view subject, const Place& place)
      : dimension_(dimension), subject_(subject), place_(place) {}

  void run() const {
    if (dimension_.size == 0) refuse("its size is 0", "1 NPU or more");
    validate_links();
    if (dimension_.in_switch_operations > 0 && dimension_.shape != Shape::switched)
      refuse(fmt::format("it offers {} in-switch operations", dimension_.in_switch_operations),
             "0: only the switch of a Switch dimension carries out operations");
    validate_oversubscription();
    if (dimension_.shape == Shape::fat_tree) validate_fat_tree();
    if (dimension_.shape == Shape::dragonfly) validate_dragonfly();
  }

 private:
  [[noreturn]] void refuse(std::string_view found, std::string_view expected) const {
    throw Error(ErrorCode::bad_input, place_, fmt::format("{}: {}", subject_, found), expected);
  }

  void validate_links() const {
    const double bandwidth = dimension_.bandwidth.bytes_per_ns();
    if (!(bandwidth > 0)) refuse(fmt::format("its bandwidth is {} bytes/ns", bandwidth), "a positive number");
    if (!(bandwidth >= min_bandwidth && bandwidth <= max_bandwidth))
      refuse(fmt::format("its bandwidth is {} bytes/ns", bandwidth), "1 byte/s to 9e18 bytes/s");
    if (!(dimension_.latency_ns >= 0 && std::isfinite(dimension_.latency_ns)))
      refuse(fmt::format("its latency is {} ns", dimension_.latency_ns), "0 or more");
    if (dimension_.links == 0 || dimension_.links > max_links)
      refuse(fmt::format("it has {} links side by side", dimension_.links), fmt::format("1 to {}", max_links));
    const double together = dimension_.bandwidth_of_links().bytes_per_ns();
    if (!(together <= max_bandwidth))
      refuse(fmt::format("its {} links side by side have {} bytes/ns", dimension_.links, together),
             "9e18 bytes/s at the most");
  }

  void validate_oversubscription() const {
    const double factor = dimension_.oversubscription;
    if (!(factor >= 1 && factor <= max_oversubscription))
      refuse(fmt::format("its oversubscription is {}", factor), "1 (none) to 1e6");
    if (factor == 1) return;
    if (dimension_.in_switch_operations > 0)
      refuse(fmt::format("it offers {} in-switch operations and is oversubscribed by {}",
                         dimension_.in_switch_operations, factor),
             "one of the two: what operations take of a switch that passes less than its links is not modelled");
    if (dimension_.shape != Shape::switched && dimension_.shape != Shape::fat_tree)
      refuse(fmt::format("its oversubscription is {}", factor), "1: only a Switch or a FatTree may be oversubscribed");
    const double left = dimension_.bandwidth_of_links().bytes_per_ns() / factor;
    if (!(left >= min_bandwidth))
      refuse(fmt::format("an oversubscription of {} leaves an NPU {} bytes/ns", factor, left), "1 byte/s or more");
  }

  void validate_fat_tree() const {
    const std::uint32_t k = dimension_.ports;
    if (k < 2 || k % 2 != 0 || k > max_ports)
      refuse(fmt::format("its switches have {} ports", k), fmt::format("an even number, 2 to {}", max_ports));
    const double ups = k / 2 / dimension_.oversubscription;
    if (ups != std::floor(ups) || ups < 1)
      refuse(fmt::format("its oversubscription is {}", dimension_.oversubscription),
             fmt::format("a divisor of half of the {} ports of a switch", k));
    const std::uint64_t pod = std::uint64_t{k} / 2 * (k / 2);
    validate_multiple(pod, k, fmt::format("1 to {} pods of {} NPUs on {}-port switches", k, pod, k));
  }

  void validate_dragonfly() const {
    const std::uint32_t a = dimension_.routers, p = dimension_.npus_per_router, h = dimension_.global_links;
    if (std::min({a, p, h}) == 0 || std::max({a, p, h}) > max_ports)
      refuse(fmt::format("its groups have {} routers, its routers {} NPUs and {} global links", a, p, h),
             fmt::format("1 to {} of each", max_ports));
    const std::uint64_t most = std::uint64_t{a} * h + 1;
    validate_multiple(std::uint64_t{a} * p, most,
                      fmt::format("1 to {} groups of {} routers with {} NPUs each", most, a, p));
  }

  void validate_multiple(std::uint64_t unit, std::uint64_t most, std::string_view why) const {
    if (dimension_.size % unit == 0 && dimension_.size / unit <= most) return;
    refuse(fmt::format("its size is {}", dimension_.size),
           fmt::format("a multiple of {} up to {}: {}", unit, unit * most, why));
  }

  const Dimension& dimension_;
  std::string_view subject_;
  const Place& place_;
};

}  // namespace

std::string_view name(Shape shape) {
  switch (shape) {
    case Shape::ring:
      return "Ring";
    case Shape::mesh:
      return "Mesh";
    case Shape::fully_connected:
      return "FullyConnected";
    case Shape::switched:
      return "Switch";
    case Shape::fat_tree:
      return "FatTree";
    case Shape::dragonfly:
      return "Dragonfly";
  }
  ensure_failed("a shape that does not exist", std::source_location::current());
}

void validate(const Dimension& dimension, std::size_t number, std::string_view name, const Place& place) {
  Validation(dimension, fmt::format("topology, dimension {} ({})", number, name), place).run();
}

std::uint64_t directed_links(const Dimension& dimension) {
  const std::uint64_t n = dimension.size;
  if (n == 1) return 0;
  switch (dimension.shape) {
    case Shape::fully_connected:
      return n * (n - 1) * dimension.links;
    case Shape::ring:
      return (n == 2 ? 2 : 2 * n) * dimension.links;
    case Shape::mesh:
      return 2 * (n - 1) * dimension.links;
    case Shape::switched:
    case Shape::fat_tree:
    case Shape::dragonfly:
      return n * dimension.links;
  }
  return 0;
}

std::uint32_t hops(const Dimension& dimension, std::uint32_t difference) {
  if (difference == 0) return 0;
  switch (dimension.shape) {
    case Shape::ring:
      return std::min(difference, dimension.size - difference);
    case Shape::mesh:
      return difference;
    case Shape::fully_connected:
      return 1;
    case Shape::switched:
      return 2;
    case Shape::fat_tree:
      return dimension.size > dimension.ports / 2 * (dimension.ports / 2) ? 6 : 4;
    case Shape::dragonfly:
      return dimension.size > dimension.routers * dimension.npus_per_router ? 5 : 3;
  }
  ensure_failed("a shape that does not exist", std::source_location::current());
}

std::uint32_t fewest_hops(Shape shape) { return shape == Shape::switched || is_of_links_only(shape) ? 2 : 1; }

}  // namespace orrery::topology
