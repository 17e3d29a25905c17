#include <cmath>

#include <fmt/format.h>

#include "orrery/topology/wiring.hpp"

namespace orrery::topology {
namespace {

constexpr std::uint32_t most_ports = 4096;

/// A k-ary fat tree (Al-Fares, Loukissas, Vahdat: A scalable, commodity data center network architecture, SIGCOMM
/// 2008): a pod has k/2 edge switches with k/2 positions each, and k/2 aggregation switches; each aggregation switch of
/// a pod has k/2 core switches above it. With an oversubscription of o a pod has k/2o aggregation switches. The
/// destination chooses the way up: by its number at its edge switch, and by the number of that switch in its pod. So
/// all that goes to a position meets in one core switch.
class FatTree final : public Wiring {
 public:
  explicit FatTree(const Dimension& dimension)
      : Wiring(dimension.size),
        half_(dimension.parameter("ports") / 2),
        ups_(static_cast<std::uint32_t>(half_ / dimension.oversubscription)),
        pods_(dimension.size / (half_ * half_)) {}

  std::uint32_t links_per_position() const override { return pods_ > 1 ? 6 : 4; }
  bool exists(GroupLink link) const override {
    return link.number <= from_edge || address(link.position).number < ups_;
  }
  Device from(GroupLink link) const override {
    const Address at = address(link.position);
    switch (link.number) {
      case to_edge:
        return {Device::Kind::position, link.position};
      case from_edge:
      case edge_up:
        return edge(at.pod, at.edge);
      case core_down:
        return core(at.number, at.edge);
      default:
        return aggregation(at.pod, at.number);
    }
  }
  Device to(GroupLink link) const override {
    const Address at = address(link.position);
    switch (link.number) {
      case from_edge:
        return {Device::Kind::position, link.position};
      case to_edge:
      case edge_down:
        return edge(at.pod, at.edge);
      case core_up:
        return core(at.number, at.edge);
      default:
        return aggregation(at.pod, at.number);
    }
  }
  GroupLink towards(Device at, std::uint32_t destination) const override {
    if (at.kind == Device::Kind::position) return {at.number, to_edge};
    const Address to = address(destination);
    const std::uint32_t plane = to.number % ups_;  // of aggregation switches
    if (at.number < first_aggregation()) {
      const std::uint32_t pod = at.number / half_, own = at.number % half_;
      if (pod == to.pod && own == to.edge) return {destination, from_edge};
      return {position({pod, own, plane}), edge_up};
    }
    if (at.number < first_core()) {
      const std::uint32_t pod = (at.number - first_aggregation()) / ups_;
      return {position({pod, to.edge, plane}), pod == to.pod ? edge_down : core_up};
    }
    return {position({to.pod, to.edge, plane}), core_down};
  }
  std::vector<SwitchTier> switch_tiers() const override {
    std::vector<SwitchTier> tiers = {{"edge", pods_ * half_}, {"aggregation", pods_ * ups_}};
    if (pods_ > 1) tiers.push_back({"core", ups_ * half_});
    return tiers;
  }

  std::uint32_t fewest_hops() const override { return 2; }
  std::uint32_t most_hops() const override { return pods_ > 1 ? 6 : 4; }
  std::uint64_t num_injection_links() const override { return size(); }
  GroupLink last_link(std::uint32_t, std::uint32_t to) const override { return {to, from_edge}; }

 private:
  // Numbers of a position's links. Let a position have number i at its edge switch, and let that be number e of its
  // pod. To the position belong link i of the edge switch up, and link e of aggregation switch i of the pod up, where
  // these are there, and the links that lead back.
  static constexpr std::uint32_t to_edge = 0, from_edge = 1, edge_up = 2, edge_down = 3, core_up = 4, core_down = 5;

  struct Address {
    std::uint32_t pod = 0, edge = 0, number = 0;
  };

  Address address(std::uint32_t position) const {
    return {position / (half_ * half_), position / half_ % half_, position % half_};
  }
  std::uint32_t position(Address at) const { return (at.pod * half_ + at.edge) * half_ + at.number; }
  std::uint32_t first_aggregation() const { return pods_ * half_; }
  std::uint32_t first_core() const { return first_aggregation() + pods_ * ups_; }
  Device edge(std::uint32_t pod, std::uint32_t number) const {
    return {Device::Kind::network_switch, pod * half_ + number};
  }
  Device aggregation(std::uint32_t pod, std::uint32_t number) const {
    return {Device::Kind::network_switch, first_aggregation() + pod * ups_ + number};
  }
  Device core(std::uint32_t plane, std::uint32_t number) const {
    return {Device::Kind::network_switch, first_core() + plane * half_ + number};
  }

  std::uint32_t half_;  ///< half of the ports: positions of an edge switch, edge switches of a pod
  std::uint32_t ups_;   ///< links up of an edge switch, aggregation switches of a pod
  std::uint32_t pods_;
};

constexpr ShapeParameter fat_tree_parameters[] = {
    {"ports", "ports k of a switch; the size is a multiple of k^2/4 up to k^3/4", "16"}};

std::optional<ValidationError> fat_tree_error(const Dimension& dimension) {
  const std::uint32_t k = dimension.parameter("ports");
  if (k < 2 || k % 2 != 0 || k > most_ports)
    return ValidationError{fmt::format("its switches have {} ports", k),
                           fmt::format("an even number, 2 to {}", most_ports)};
  const double ups = k / 2 / dimension.oversubscription;
  if (ups != std::floor(ups) || ups < 1)
    return ValidationError{fmt::format("its oversubscription is {}", dimension.oversubscription),
                           fmt::format("a divisor of half of the {} ports of a switch", k)};
  const std::uint64_t pod = std::uint64_t{k} / 2 * (k / 2);
  if (dimension.size % pod == 0 && dimension.size / pod <= k) return {};
  return ValidationError{
      fmt::format("its size is {}", dimension.size),
      fmt::format("a multiple of {} up to {}: 1 to {} pods of {} NPUs on {}-port switches", pod, pod * k, k, pod, k)};
}

}  // namespace

extern const ShapeType fat_tree_shape;
constinit const ShapeType fat_tree_shape{
    .name = "FatTree",
    .help = "three tiers of switches with as many ports each; it may be oversubscribed at the edge",
    .parameters = fat_tree_parameters,
    .symmetry = HopSymmetry::permutations,
    .pattern = TrafficPattern::exchanges,
    .is_of_links_only = true,
    .sends_over_one_link = true,
    .may_be_oversubscribed = true,
    .validation_error = fat_tree_error,
    .make = [](const Dimension& dimension) -> std::unique_ptr<const Wiring> {
      return std::make_unique<FatTree>(dimension);
    },
};

}  // namespace orrery::topology
