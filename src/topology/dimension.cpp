#include "orrery/topology/dimension.hpp"

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <string>

#include "orrery/topology/wiring.hpp"

namespace orrery::topology {
namespace {

constexpr double min_bandwidth = 1e-9;  // bytes per ns: one byte per second
constexpr double max_bandwidth = 9e9;   // bytes per ns: bytes per second fit a signed 64-bit number
constexpr std::uint32_t max_links = 4096;
constexpr double max_oversubscription = 1e6;

/// Checks one dimension.
class Validation {
 public:
  Validation(const Dimension& dimension, std::string_view subject, const Place& place)
      : dimension_(dimension), subject_(subject), place_(place) {}

  void run() const {
    if (dimension_.size == 0) refuse("its size is 0", "1 NPU or more");
    validate_links();
    if (dimension_.in_switch_operations > 0 && !dimension_.shape->has_switch_operations)
      refuse(fmt::format("it offers {} in-switch operations", dimension_.in_switch_operations),
             fmt::format("0: only the switch of a {} dimension carries out operations",
                         names_where<ShapeType>([](const ShapeType& s) { return s.has_switch_operations; })));
    validate_oversubscription();
    if (dimension_.shape->validation_error == nullptr) return;
    if (const auto validation_error = dimension_.shape->validation_error(dimension_))
      refuse(validation_error->found, validation_error->expected);
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
    if (!dimension_.shape->may_be_oversubscribed)
      refuse(fmt::format("its oversubscription is {}", factor),
             fmt::format("1: only a {} may be oversubscribed",
                         names_where<ShapeType>([](const ShapeType& s) { return s.may_be_oversubscribed; })));
    const double left = dimension_.bandwidth_of_links().bytes_per_ns() / factor;
    if (!(left >= min_bandwidth))
      refuse(fmt::format("an oversubscription of {} leaves an NPU {} bytes/ns", factor, left), "1 byte/s or more");
  }

  const Dimension& dimension_;
  std::string_view subject_;
  const Place& place_;
};

}  // namespace

void validate(const Dimension& dimension, std::size_t number, std::string_view name, const Place& place) {
  Validation(dimension, fmt::format("topology, dimension {} ({})", number, name), place).run();
}

std::uint64_t directed_links(const Dimension& dimension) {
  return dimension.size == 1 ? 0 : make_wiring(dimension)->num_injection_links() * dimension.links;
}

}  // namespace orrery::topology
