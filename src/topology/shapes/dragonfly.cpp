#include <algorithm>

#include <fmt/format.h>

#include "orrery/topology/wiring.hpp"

namespace orrery::topology {
namespace {

constexpr std::uint32_t most_of_each = 4096;

constexpr std::uint32_t divided_up(std::uint32_t a, std::uint32_t b) { return (a + b - 1) / b; }

/// A dragonfly (Kim, Dally, Scott, Abts: Technology-driven, highly-scalable dragonfly topology, ISCA 2008): groups of a
/// routers, each of which has p positions, h links to other groups, and a link to each other router of its group. Ports
/// 0 .. a h - 1 of a group lead, in rounds of g - 1, to the groups that are 1 .. g - 1 farther. The ports of a round
/// that is not complete are not used. Routes are minimal: to the router that has a link to the destination's group,
/// over that link, and to the destination's router. Where several links join two groups, the destination's number in
/// its group chooses one.
class Dragonfly final : public Wiring {
 public:
  explicit Dragonfly(const Dimension& dimension)
      : Wiring(dimension.size),
        routers_(dimension.parameter("routers")),
        positions_(dimension.parameter("npus-per-router")),
        global_(dimension.parameter("global-links")),
        groups_(dimension.size / (routers_ * positions_)),
        rounds_(groups_ > 1 ? routers_ * global_ / (groups_ - 1) : 0),
        first_global_(first_local + divided_up(routers_ - 1, positions_)) {}

  std::uint32_t links_per_position() const override {
    return first_global_ + (groups_ > 1 ? divided_up(global_, positions_) : 0);
  }
  bool exists(GroupLink link) const override {
    if (link.number < first_local) return true;
    if (link.number < first_global_) return number_at_router(link, first_local) < routers_ - 1;
    return number_at_router(link, first_global_) < global_ && port_of(link) < rounds_ * (groups_ - 1);
  }
  Device from(GroupLink link) const override {
    return link.number == up ? Device{Device::Kind::position, link.position} : router(link.position / positions_);
  }
  Device to(GroupLink link) const override {
    const std::uint32_t here = link.position / positions_, group = here / routers_, own = here % routers_;
    if (link.number == up) return router(here);
    if (link.number == down) return {Device::Kind::position, link.position};
    if (link.number < first_global_)
      return router(group * routers_ + (own + number_at_router(link, first_local) + 1) % routers_);
    const std::uint32_t port = port_of(link);
    const std::uint32_t others = groups_ - 1, farther = port % others + 1;
    const std::uint32_t other_port = port / others * others + others - farther;
    return router((group + farther) % groups_ * routers_ + other_port / global_);
  }
  GroupLink towards(Device at, std::uint32_t destination) const override {
    if (at.kind == Device::Kind::position) return {at.number, up};
    const std::uint32_t group = at.number / routers_, own = at.number % routers_;
    const std::uint32_t to = destination / positions_, to_group = to / routers_;
    if (to == at.number) return {destination, down};
    if (to_group == group) return local(at.number, to % routers_);
    const std::uint32_t round = destination % (routers_ * positions_) % rounds_;
    const std::uint32_t port = round * (groups_ - 1) + (to_group + groups_ - group) % groups_ - 1;
    return port / global_ == own ? share(at.number, port % global_, first_global_) : local(at.number, port / global_);
  }
  bool turns_channel(GroupLink link) const override { return link.number >= first_global_; }
  std::vector<SwitchTier> switch_tiers() const override { return {{"router", groups_ * routers_}}; }

  std::uint32_t fewest_hops() const override { return 2; }
  std::uint32_t most_hops() const override { return groups_ > 1 ? 5 : 3; }
  std::uint64_t num_injection_links() const override { return size(); }
  GroupLink last_link(std::uint32_t, std::uint32_t to) const override { return {to, down}; }

 private:
  // Numbers of a position's links. After these two come its shares of the links of its router to other routers of the
  // group, and of those to other groups.
  static constexpr std::uint32_t up = 0, down = 1, first_local = 2;

  static Device router(std::uint32_t number) { return {Device::Kind::network_switch, number}; }
  /// Returns a link of a router: they are dealt to the positions of the router in turn.
  GroupLink share(std::uint32_t from, std::uint32_t link, std::uint32_t first) const {
    return {from * positions_ + link % positions_, first + link / positions_};
  }
  /// Returns the number that `share` makes the link from.
  std::uint32_t number_at_router(GroupLink link, std::uint32_t first) const {
    return (link.number - first) * positions_ + link.position % positions_;
  }
  /// Returns the port of its group that a link to another group leaves from.
  std::uint32_t port_of(GroupLink link) const {
    return link.position / positions_ % routers_ * global_ + number_at_router(link, first_global_);
  }
  GroupLink local(std::uint32_t from, std::uint32_t to) const {
    return share(from, (to + routers_ - from % routers_) % routers_ - 1, first_local);
  }

  std::uint32_t routers_;    ///< routers of a group
  std::uint32_t positions_;  ///< positions of a router
  std::uint32_t global_;     ///< links of a router to other groups
  std::uint32_t groups_;
  std::uint32_t rounds_;  ///< links from each group to each other one
  std::uint32_t first_global_;
};

/// The defaults balance the links, as Kim et al. advise: a group has twice as many routers as a router has NPUs, and a
/// router has as many links to other groups as it has NPUs.
constexpr ShapeParameter dragonfly_parameters[] = {
    {"npus-per-router", "NPUs p of a router; the size is a multiple of a p up to a p (a h + 1)", "4"},
    {"routers", "routers a of a group", "8", "2p",
     [](const Dimension& dimension) { return 2 * dimension.parameter("npus-per-router"); }},
    {"global-links", "links h of a router to other groups", "4", "p",
     [](const Dimension& dimension) { return dimension.parameter("npus-per-router"); }},
};

std::optional<ValidationError> dragonfly_error(const Dimension& dimension) {
  const std::uint32_t a = dimension.parameter("routers"), p = dimension.parameter("npus-per-router");
  const std::uint32_t h = dimension.parameter("global-links");
  if (std::min({a, p, h}) == 0 || std::max({a, p, h}) > most_of_each)
    return ValidationError{fmt::format("its groups have {} routers, its routers {} NPUs and {} global links", a, p, h),
                           fmt::format("1 to {} of each", most_of_each)};
  const std::uint64_t group = std::uint64_t{a} * p, most = std::uint64_t{a} * h + 1;
  if (dimension.size % group == 0 && dimension.size / group <= most) return {};
  return ValidationError{fmt::format("its size is {}", dimension.size),
                         fmt::format("a multiple of {} up to {}: 1 to {} groups of {} routers with {} NPUs each", group,
                                     group * most, most, a, p)};
}

}  // namespace

extern const ShapeType dragonfly_shape;
constinit const ShapeType dragonfly_shape{
    .name = "Dragonfly",
    .help = "groups of routers that are joined with each other, and links between the groups",
    .parameters = dragonfly_parameters,
    .symmetry = HopSymmetry::permutations,
    .pattern = TrafficPattern::exchanges,
    .is_of_links_only = true,
    .sends_over_one_link = true,
    .validation_error = dragonfly_error,
    .make = [](const Dimension& dimension) -> std::unique_ptr<const Wiring> {
      return std::make_unique<Dragonfly>(dimension);
    },
};

}  // namespace orrery::topology
