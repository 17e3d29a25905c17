#include <algorithm>

#include <fmt/format.h>

#include "orrery/topology/wiring.hpp"

namespace orrery::topology {
namespace {

/// Each position has a link to the next one, `up`, and one to the position before it, `down`. In a ring of two they are
/// one. Messages go the shorter way round, upwards on a tie.
class Ring final : public Wiring {
 public:
  explicit Ring(const Dimension& dimension) : Wiring(dimension.size) {}

  std::uint32_t links_per_position() const override { return size() == 2 ? 1 : 2; }
  Device from(GroupLink link) const override { return {Device::Kind::position, link.position}; }
  Device to(GroupLink link) const override {
    return {Device::Kind::position, link.number == up ? next(link.position) : previous(link.position)};
  }
  GroupLink towards(Device at, std::uint32_t position) const override {
    return {at.number, distance(at.number, position) * 2 <= size() ? up : down};
  }
  bool turns_channel(GroupLink link) const override {
    return size() > 3 &&
           link.position == (link.number == up ? size() - 1 : 0);  // up to three no packet passes a position
  }

  /// A ring without one of its links is a row. It cannot lose a second one.
  std::optional<ValidationError> validation_error(const FailedLinks& failed, const GroupNpus& npus) const override {
    if (size() == 2)
      return ValidationError{"a Ring of 2 has one link, and nothing leads around it", "a Ring of 3 or more"};
    if (failed.size() < 2) return {};
    return ValidationError{
        fmt::format("two failed links cut the Ring of NPU {} in two", npus[failed.back().first].value()),
        "one failed link of a Ring at the most"};
  }
  std::uint32_t next_around(const FailedLinks& failed, std::uint32_t from, std::uint32_t to) const override {
    return position_in_row(failed, from) < position_in_row(failed, to) ? next(from) : previous(from);
  }
  std::uint32_t hops_around(const FailedLinks& failed, std::uint32_t from, std::uint32_t to) const override {
    const auto [low, high] = std::minmax({position_in_row(failed, from), position_in_row(failed, to)});
    return high - low;
  }

  std::uint32_t hops(std::uint32_t from, std::uint32_t to) const override {
    const std::uint32_t upwards = distance(from, to);
    return std::min(upwards, size() - upwards);
  }
  std::uint32_t fewest_hops() const override { return 1; }
  std::uint32_t most_hops() const override { return size() / 2; }
  std::uint64_t num_injection_links() const override { return std::uint64_t{size()} * links_per_position(); }
  GroupLink last_link(std::uint32_t from, std::uint32_t to) const override {
    const std::uint32_t number = first_link(from, to).number;
    return {number == up ? previous(to) : next(to), number};
  }

 private:
  // Numbers of a position's links.
  static constexpr std::uint32_t up = 0, down = 1;

  std::uint32_t next(std::uint32_t position) const { return position + 1 == size() ? 0 : position + 1; }
  std::uint32_t previous(std::uint32_t position) const { return (position == 0 ? size() : position) - 1; }
  /// Returns how far it is upwards.
  std::uint32_t distance(std::uint32_t from, std::uint32_t to) const {
    return to >= from ? to - from : to + size() - from;
  }
  /// Returns the number of a position in the row that the failed link leaves, which begins behind that link.
  std::uint32_t position_in_row(const FailedLinks& failed, std::uint32_t position) const {
    const auto [low, high] = failed.front();
    return distance(high - low == 1 ? high : 0, position);
  }
};

constexpr ShapeShorthand tori[] = {{"Torus2D", 2, "two Rings"}, {"Torus3D", 3, "three Rings"}};

}  // namespace

extern const ShapeType ring_shape;
constinit const ShapeType ring_shape{
    .name = "Ring",
    .help = "a link from each NPU to the next one and back, and one that closes the ring",
    .shorthands = tori,
    .symmetry = HopSymmetry::rotations,
    .pattern = TrafficPattern::neighbours,
    .has_detours = true,
    .make = [](const Dimension& dimension) -> std::unique_ptr<const Wiring> {
      return std::make_unique<Ring>(dimension);
    },
};

}  // namespace orrery::topology
