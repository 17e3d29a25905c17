#include "wiring.hpp"

namespace orrery::topology {
namespace {

constexpr std::uint32_t divided_up(std::uint32_t a, std::uint32_t b) { return (a + b - 1) / b; }

/// A dragonfly (Kim, Dally, Scott, Abts: Technology-driven, highly-scalable dragonfly topology, ISCA 2008): groups of a
/// routers, all joined by links, with p places and h links to other groups each. Ports 0 .. a h - 1 of a group lead, in
/// rounds of g - 1, to the groups that are 1 .. g - 1 farther; the ports of a round that is not complete are not used.
/// Ways are minimal: to the router that has a link to the destination's group, over it, to the destination's router. Of
/// several links between two groups the destination's number in its group chooses.
class Dragonfly final : public Wiring {
 public:
  explicit Dragonfly(const Dimension& dimension)
      : routers_(dimension.routers),
        places_(dimension.npus_per_router),
        global_(dimension.global_links),
        groups_(dimension.size / (routers_ * places_)),
        rounds_(groups_ > 1 ? routers_ * global_ / (groups_ - 1) : 0),
        first_global_(first_local + divided_up(routers_ - 1, places_)) {}

  std::uint32_t links_per_place() const override {
    return first_global_ + (groups_ > 1 ? divided_up(global_, places_) : 0);
  }
  Device from(LineLink link) const override {
    return link.number == up ? Device{Device::Kind::place, link.place} : router(link.place / places_);
  }
  Device to(LineLink link) const override {
    const std::uint32_t here = link.place / places_, group = here / routers_, own = here % routers_;
    if (link.number == up) return router(here);
    if (link.number == down) return {Device::Kind::place, link.place};
    const std::uint32_t number = link.place % places_;
    if (link.number < first_global_) {
      const std::uint32_t distance = (link.number - first_local) * places_ + number + 1;
      return router(group * routers_ + (own + distance) % routers_);
    }
    const std::uint32_t port = own * global_ + (link.number - first_global_) * places_ + number;
    const std::uint32_t others = groups_ - 1, farther = port % others + 1;
    const std::uint32_t other_port = port / others * others + others - farther;
    return router((group + farther) % groups_ * routers_ + other_port / global_);
  }
  LineLink towards(Device at, std::uint32_t destination) const override {
    if (at.kind == Device::Kind::place) return {at.number, up};
    const std::uint32_t group = at.number / routers_, own = at.number % routers_;
    const std::uint32_t to = destination / places_, to_group = to / routers_;
    if (to == at.number) return {destination, down};
    if (to_group == group) return local(at.number, to % routers_);
    const std::uint32_t round = destination % (routers_ * places_) % rounds_;
    const std::uint32_t port = round * (groups_ - 1) + (to_group + groups_ - group) % groups_ - 1;
    return port / global_ == own ? share(at.number, port % global_, first_global_) : local(at.number, port / global_);
  }
  std::vector<Tier> tiers() const override { return {{"router", groups_ * routers_}}; }

 private:
  // Numbers of a place's links; then come its shares of its router's links to others of the group, and to other groups.
  static constexpr std::uint32_t up = 0, down = 1, first_local = 2;

  static Device router(std::uint32_t number) { return {Device::Kind::a_switch, number}; }
  /// A router's links are dealt to its places in turn.
  LineLink share(std::uint32_t from, std::uint32_t link, std::uint32_t first) const {
    return {from * places_ + link % places_, first + link / places_};
  }
  LineLink local(std::uint32_t from, std::uint32_t to) const {
    return share(from, (to + routers_ - from % routers_) % routers_ - 1, first_local);
  }

  std::uint32_t routers_;  ///< of a group
  std::uint32_t places_;   ///< of a router
  std::uint32_t global_;   ///< links of a router to other groups
  std::uint32_t groups_;
  std::uint32_t rounds_;  ///< links from each group to each other one
  std::uint32_t first_global_;
};

}  // namespace

std::unique_ptr<const Wiring> make_dragonfly(const Dimension& dimension) {
  return std::make_unique<Dragonfly>(dimension);
}

}  // namespace orrery::topology
