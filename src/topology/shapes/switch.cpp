#include "orrery/topology/wiring.hpp"

namespace orrery::topology {
namespace {

/// Each position has a link up to one switch and a link down from it. An oversubscribed switch has two sides, its input
/// and its output. The core joins them: a link of the first position.
class Switch final : public Wiring {
 public:
  explicit Switch(const Dimension& dimension)
      : Wiring(dimension.size), oversubscription_(dimension.oversubscription), output_(has_core() ? 1 : 0) {}

  std::uint32_t links_per_position() const override { return has_core() ? 3 : 2; }
  bool exists(GroupLink link) const override { return link.number != across || link.position == 0; }
  Device from(GroupLink link) const override {
    if (link.number == up) return {Device::Kind::position, link.position};
    return {Device::Kind::network_switch, link.number == across ? input : output_};
  }
  Device to(GroupLink link) const override {
    if (link.number == down) return {Device::Kind::position, link.position};
    return {Device::Kind::network_switch, link.number == across ? output_ : input};
  }
  GroupLink towards(Device at, std::uint32_t position) const override {
    if (at.kind == Device::Kind::position) return {at.number, up};
    if (at.number == output_) return {position, down};
    return {0, across};
  }
  std::vector<SwitchTier> switch_tiers() const override {
    if (!has_core()) return {{"switch", 1}};
    return {{"switch input", 1}, {"switch output", 1}};
  }
  LinkRole role(GroupLink link) const override {
    if (!has_core() || link.number == up) return LinkRole::plain;
    return link.number == across ? LinkRole::core : LinkRole::behind_core;
  }
  double core_bandwidth() const override { return has_core() ? size() / oversubscription_ : 0; }

  std::uint32_t hops(std::uint32_t, std::uint32_t) const override { return 2; }
  std::uint32_t fewest_hops() const override { return 2; }
  std::uint32_t most_hops() const override { return 2; }
  std::uint64_t num_injection_links() const override { return size(); }
  GroupLink last_link(std::uint32_t, std::uint32_t to) const override { return {to, down}; }

 private:
  // Numbers of a position's links.
  static constexpr std::uint32_t up = 0, down = 1, across = 2;
  static constexpr std::uint32_t input = 0;  // switch

  bool has_core() const { return oversubscription_ > 1; }

  double oversubscription_;
  std::uint32_t output_;  // switch
};

constexpr ShapeShorthand crossbars[] = {{"Crossbar", 1, "one Switch, or one router with `flits`", true}};

}  // namespace

extern const ShapeType switched_shape;
constinit const ShapeType switched_shape{
    .name = "Switch",
    .help = "one switch that all NPUs have a link to; it may be oversubscribed and may reduce and copy data",
    .shorthands = crossbars,
    .symmetry = HopSymmetry::permutations,
    .pattern = TrafficPattern::exchanges,
    .sends_over_one_link = true,
    .may_be_oversubscribed = true,
    .has_switch_operations = true,
    .make = [](const Dimension& dimension) -> std::unique_ptr<const Wiring> {
      return std::make_unique<Switch>(dimension);
    },
};

}  // namespace orrery::topology
