#include <fmt/format.h>

#include "orrery/topology/wiring.hpp"

namespace orrery::topology {
namespace {

/// A row: each position has a link to the next one, `up`, and one to the position before it, `down`; the ends have one
/// of the two. In a row of two the only link of either position is number 0.
class Mesh final : public Wiring {
 public:
  explicit Mesh(const Dimension& dimension) : Wiring(dimension.size) {}

  std::uint32_t links_per_position() const override { return size() == 2 ? 1 : 2; }
  bool exists(GroupLink link) const override {
    return size() == 2 || link.position != (link.number == up ? size() - 1 : 0);
  }
  Device from(GroupLink link) const override { return {Device::Kind::position, link.position}; }
  Device to(GroupLink link) const override {
    const bool goes_up = size() == 2 ? link.position == 0 : link.number == up;
    return {Device::Kind::position, goes_up ? link.position + 1 : link.position - 1};
  }
  GroupLink towards(Device at, std::uint32_t position) const override {
    return {at.number, direction(at.number, position)};
  }

  std::optional<ValidationError> validation_error(const FailedLinks&, const GroupNpus& npus) const override {
    return ValidationError{fmt::format("a failed link cuts the Mesh of NPU {} in two", npus[0].value())};
  }

  std::uint32_t hops(std::uint32_t from, std::uint32_t to) const override { return from > to ? from - to : to - from; }
  std::uint32_t fewest_hops() const override { return 1; }
  std::uint32_t most_hops() const override { return size() - 1; }
  std::uint64_t num_injection_links() const override { return 2 * (std::uint64_t{size()} - 1); }
  GroupLink last_link(std::uint32_t from, std::uint32_t to) const override {
    return {from < to ? to - 1 : to + 1, direction(from, to)};
  }

 private:
  // Numbers of a position's links.
  static constexpr std::uint32_t up = 0, down = 1;

  std::uint32_t direction(std::uint32_t from, std::uint32_t to) const { return size() == 2 || from < to ? up : down; }
};

constexpr ShapeShorthand meshes[] = {{"Mesh2D", 2, "two Meshes"}};

}  // namespace

extern const ShapeType mesh_shape;
constinit const ShapeType mesh_shape{
    .name = "Mesh",
    .help = "a row: a link from each NPU to the next one and back",
    .shorthands = meshes,
    .symmetry = HopSymmetry::translations,
    .pattern = TrafficPattern::neighbours,
    .make = [](const Dimension& dimension) -> std::unique_ptr<const Wiring> {
      return std::make_unique<Mesh>(dimension);
    },
};

}  // namespace orrery::topology
