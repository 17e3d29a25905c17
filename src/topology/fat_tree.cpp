#include "wiring.hpp"

namespace orrery::topology {
namespace {

/// A k-ary fat tree (Al-Fares, Loukissas, Vahdat: A scalable, commodity data center network architecture, SIGCOMM
/// 2008): pods of k/2 edge switches with k/2 places each, k/2 aggregation switches in a pod, k/2 core switches for each
/// of these. Oversubscribed by o there are k/2o aggregation switches. The way up is chosen by the destination's number
/// at its edge switch, and by which of its pod that is: all that goes to a place meets in one core switch.
class FatTree final : public Wiring {
 public:
  explicit FatTree(const Dimension& dimension)
      : half_(dimension.ports / 2),
        ups_(static_cast<std::uint32_t>(half_ / dimension.oversubscription)),
        pods_(dimension.size / (half_ * half_)) {}

  std::uint32_t links_per_place() const override { return pods_ > 1 ? 6 : 4; }
  Device from(LineLink link) const override {
    const Place at = place(link.place);
    switch (link.number) {
      case to_edge:
        return {Device::Kind::place, link.place};
      case from_edge:
      case edge_up:
        return edge(at.pod, at.edge);
      case core_down:
        return core(at.number, at.edge);
      default:
        return aggregation(at.pod, at.number);
    }
  }
  Device to(LineLink link) const override {
    const Place at = place(link.place);
    switch (link.number) {
      case from_edge:
        return {Device::Kind::place, link.place};
      case to_edge:
      case edge_down:
        return edge(at.pod, at.edge);
      case core_up:
        return core(at.number, at.edge);
      default:
        return aggregation(at.pod, at.number);
    }
  }
  LineLink towards(Device at, std::uint32_t destination) const override {
    if (at.kind == Device::Kind::place) return {at.number, to_edge};
    const Place to = place(destination);
    const std::uint32_t plane = to.number % ups_;  // of aggregation switches
    if (at.number < first_aggregation()) {
      const std::uint32_t pod = at.number / half_, own = at.number % half_;
      if (pod == to.pod && own == to.edge) return {destination, from_edge};
      return {id({pod, own, plane}), edge_up};
    }
    if (at.number < first_core()) {
      const std::uint32_t pod = (at.number - first_aggregation()) / ups_;
      return {id({pod, to.edge, plane}), pod == to.pod ? edge_down : core_up};
    }
    return {id({to.pod, to.edge, plane}), core_down};
  }
  std::vector<Tier> tiers() const override {
    std::vector<Tier> tiers = {{"edge", pods_ * half_}, {"aggregation", pods_ * ups_}};
    if (pods_ > 1) tiers.push_back({"core", ups_ * half_});
    return tiers;
  }

 private:
  // Numbers of a place's links. A place whose number at its edge switch is i, and whose edge switch is the e-th of its
  // pod, has the i-th link of that switch up, and the e-th one up of the i-th aggregation switch of the pod, if they
  // are there, and those that lead back.
  static constexpr std::uint32_t to_edge = 0, from_edge = 1, edge_up = 2, edge_down = 3, core_up = 4, core_down = 5;

  struct Place {
    std::uint32_t pod = 0, edge = 0, number = 0;
  };

  Place place(std::uint32_t id) const { return {id / (half_ * half_), id / half_ % half_, id % half_}; }
  std::uint32_t id(Place place) const { return (place.pod * half_ + place.edge) * half_ + place.number; }
  std::uint32_t first_aggregation() const { return pods_ * half_; }
  std::uint32_t first_core() const { return first_aggregation() + pods_ * ups_; }
  Device edge(std::uint32_t pod, std::uint32_t number) const { return {Device::Kind::a_switch, pod * half_ + number}; }
  Device aggregation(std::uint32_t pod, std::uint32_t number) const {
    return {Device::Kind::a_switch, first_aggregation() + pod * ups_ + number};
  }
  Device core(std::uint32_t plane, std::uint32_t number) const {
    return {Device::Kind::a_switch, first_core() + plane * half_ + number};
  }

  std::uint32_t half_;  ///< of the ports: places of an edge switch, edge switches of a pod
  std::uint32_t ups_;   ///< links up of an edge switch, aggregation switches of a pod
  std::uint32_t pods_;
};

}  // namespace

std::unique_ptr<const Wiring> make_fat_tree(const Dimension& dimension) { return std::make_unique<FatTree>(dimension); }

}  // namespace orrery::topology
