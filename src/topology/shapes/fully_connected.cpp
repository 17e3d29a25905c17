#include <source_location>

#include <fmt/format.h>

#include "orrery/base/error.hpp"
#include "orrery/topology/wiring.hpp"

namespace orrery::topology {
namespace {

/// Each position has a link to each other one, in the order of the distance upwards.
class FullyConnected final : public Wiring {
 public:
  explicit FullyConnected(const Dimension& dimension) : Wiring(dimension.size) {}

  std::uint32_t links_per_position() const override { return size() - 1; }
  Device from(GroupLink link) const override { return {Device::Kind::position, link.position}; }
  Device to(GroupLink link) const override {
    return {Device::Kind::position, (link.position + 1 + link.number) % size()};
  }
  GroupLink towards(Device at, std::uint32_t position) const override {
    return {at.number, (position + size() - at.number) % size() - 1};
  }

  /// Without their own link two positions need a third one that both have a link to.
  std::optional<ValidationError> validation_error(const FailedLinks& failed, const GroupNpus& npus) const override {
    for (const auto& [a, b] : failed)
      if (between(failed, a, b) == size())
        return ValidationError{fmt::format("NPU {} and NPU {} have no link and no third NPU that both have a link to",
                                           npus[a].value(), npus[b].value()),
                               "a way by one other NPU"};
    return {};
  }
  std::uint32_t next_around(const FailedLinks& failed, std::uint32_t from, std::uint32_t to) const override {
    if (!has_failed(failed, from, to)) return to;
    const std::uint32_t third = between(failed, from, to);
    ensure(third < size(), "two NPUs that nothing joins");
    return third;
  }

  std::uint32_t hops(std::uint32_t, std::uint32_t) const override { return 1; }
  std::uint32_t fewest_hops() const override { return 1; }
  std::uint32_t most_hops() const override { return 1; }
  std::uint64_t num_injection_links() const override { return std::uint64_t{size()} * (size() - 1); }
  GroupLink last_link(std::uint32_t from, std::uint32_t to) const override { return first_link(from, to); }

 private:
  /// Returns the lowest position that has a link to both; the size if there is none.
  std::uint32_t between(const FailedLinks& failed, std::uint32_t a, std::uint32_t b) const {
    std::uint32_t third = 0;
    while (third < size() && (third == a || third == b || has_failed(failed, a, third) || has_failed(failed, third, b)))
      ++third;
    return third;
  }
};

}  // namespace

extern const ShapeType fully_connected_shape;
constinit const ShapeType fully_connected_shape{
    .name = "FullyConnected",
    .help = "a link from each NPU to each other one",
    .symmetry = HopSymmetry::permutations,
    .pattern = TrafficPattern::all_pairs,
    .has_detours = true,
    .make = [](const Dimension& dimension) -> std::unique_ptr<const Wiring> {
      return std::make_unique<FullyConnected>(dimension);
    },
};

}  // namespace orrery::topology
