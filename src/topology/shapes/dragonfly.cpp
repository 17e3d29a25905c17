#include <algorithm>

#include <fmt/format.h>

#include "orrery/topology/wiring.hpp"

namespace orrery::topology {
namespace {

constexpr std::uint32_t most_of_each = 4096;

/// A dragonfly (Kim, Dally, Scott, Abts: Technology-driven, highly-scalable dragonfly topology, ISCA 2008): groups of a
/// routers, each of which has p positions, h links to other groups, and a link to each other router of its group. Ports
/// 0 .. a h - 1 of a group lead, in rounds of g - 1, to the groups that are 1 .. g - 1 farther. The ports of a round
/// that is not complete are not used. Minimal routes lead to the router that has a link to the destination's group,
/// over that link, and to the destination's router. Where several links join two groups, the destination's number in
/// its group chooses one. A router may send a message to another router of its group, or to another group, instead. The
/// links of a router belong to its first position, so that one rank knows how long messages wait for each of them.
class Dragonfly final : public Wiring {
 public:
  explicit Dragonfly(const Dimension& dimension)
      : Wiring(dimension.size),
        routers_(dimension.parameter("routers")),
        positions_(dimension.parameter("npus-per-router")),
        global_(dimension.parameter("global-links")),
        groups_(dimension.size / (routers_ * positions_)),
        rounds_(groups_ > 1 ? routers_ * global_ / (groups_ - 1) : 0),
        first_global_(first_local + routers_ - 1) {}

  std::uint32_t links_per_position() const override { return first_global_ + (groups_ > 1 ? global_ : 0); }
  bool exists(GroupLink link) const override {
    if (link.number < first_local) return true;
    if (link.position % positions_ != 0) return false;
    return link.number < first_global_ || port_of(link) < rounds_ * (groups_ - 1);
  }
  Device from(GroupLink link) const override {
    return link.number == up ? Device{Device::Kind::position, link.position} : router(link.position / positions_);
  }
  Device to(GroupLink link) const override {
    const std::uint32_t here = link.position / positions_, group = here / routers_, own = here % routers_;
    if (link.number == up) return router(here);
    if (link.number == down) return {Device::Kind::position, link.position};
    if (link.number < first_global_) return router(group * routers_ + (own + link.number - first_local + 1) % routers_);
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
    return port / global_ == own ? global(at.number, port % global_) : local(at.number, port / global_);
  }
  // A message that may leave the group takes any link of the router. One that goes to another router of its group stays
  // in it, and one that is at the router with the link to its group takes a link to another group, because the other
  // routers would send it back.
  std::vector<GroupLink> alternatives(GroupLink regular, std::uint32_t position) const override {
    if (regular.number < first_local) return {};
    const std::uint32_t at = regular.position / positions_;
    const bool is_near = position / positions_ / routers_ == at / routers_;
    const std::uint32_t first = regular.number < first_global_ ? first_local : first_global_;
    const std::uint32_t end = is_near ? first_global_ : links_per_position();
    std::vector<GroupLink> others;
    for (std::uint32_t number = first; number < end; ++number)
      if (const GroupLink link{regular.position, number}; link != regular && exists(link)) others.push_back(link);
    return others;
  }
  bool turns_channel(GroupLink link) const override { return link.number >= first_global_; }
  std::vector<SwitchTier> switch_tiers() const override { return {{"router", groups_ * routers_}}; }

  std::uint32_t fewest_hops() const override { return 2; }
  std::uint32_t most_hops() const override { return groups_ > 1 ? 5 : 3; }
  std::uint64_t num_injection_links() const override { return size(); }
  GroupLink last_link(std::uint32_t, std::uint32_t to) const override { return {to, down}; }

 private:
  // Numbers of a position's links. After these two come, at the first position of a router, the links of the router to
  // other routers of the group, and those to other groups.
  static constexpr std::uint32_t up = 0, down = 1, first_local = 2;

  static Device router(std::uint32_t number) { return {Device::Kind::network_switch, number}; }
  /// Returns a link of a router to another group.
  GroupLink global(std::uint32_t from, std::uint32_t link) const { return {from * positions_, first_global_ + link}; }
  /// Returns the port of its group that a link to another group leaves from.
  std::uint32_t port_of(GroupLink link) const {
    return link.position / positions_ % routers_ * global_ + (link.number - first_global_);
  }
  GroupLink local(std::uint32_t from, std::uint32_t to) const {
    return {from * positions_, first_local + (to + routers_ - from % routers_) % routers_ - 1};
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
    .has_alternatives = true,
    .validation_error = dragonfly_error,
    .make = [](const Dimension& dimension) -> std::unique_ptr<const Wiring> {
      return std::make_unique<Dragonfly>(dimension);
    },
};

}  // namespace orrery::topology
