#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "orrery/base/error.hpp"
#include "orrery/cost/cost.hpp"
#include "orrery/topology/wiring.hpp"

namespace orrery::cost {
namespace {

constexpr double cents = 100;
constexpr double bytes_of_gb = 1e9;

std::string names_of(const std::vector<Tier>& tiers) {
  std::vector<std::string_view> names;
  for (const Tier& tier : tiers) names.emplace_back(tier.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

/// Collects what a system costs and draws.
class HardwareBuilder {
 public:
  HardwareBuilder(const Prices& prices, std::span<const topology::Dimension> dimensions)
      : prices_(prices), dimensions_(dimensions) {
    hardware_.num_npus = 1;
    for (const auto& dimension : dimensions) hardware_.num_npus *= dimension.size;
    hardware_.npu = prices.npu;
    hardware_.operation = prices.operation;
  }

  Hardware build(Bytes local_memory) {
    add("NPUs", hardware_.num_npus, prices_.npu.price);
    add("local memory", hardware_.num_npus,
        prices_.npu.memory * (static_cast<double>(local_memory.count()) / bytes_of_gb));
    if (prices_.host.npus > 0) {
      const double hosts = std::ceil(static_cast<double>(hardware_.num_npus) / prices_.host.npus);
      add("hosts", hosts, prices_.host.price);
      add("cables", hosts, prices_.host.cables);
      add("facility", hosts, prices_.host.facility);
      hardware_.constant_power += hosts * prices_.host.power;
    }
    const auto tiers = tiers_of(prices_, dimensions_.size());
    for (std::size_t d = 0; d < tiers.size(); ++d) add_dimension(*tiers[d], d);
    return std::move(hardware_);
  }

 private:
  void add(const std::string& name, double count, double price) {
    if (price > 0) hardware_.items.emplace_back(name, std::round(count * price * cents) / cents);
  }
  double oversubscription(std::size_t d) const { return std::max(dimensions_[d].oversubscription, 1.0); }
  /// Says whether the switches of a dimension stand above those of the dimension inside it, whose NPUs reach them
  /// through one port.
  bool is_above(std::size_t d) const {
    if (d == 0) return false;
    const topology::Dimension &inner = dimensions_[d - 1], &outer = dimensions_[d];
    return inner.shape == outer.shape && inner.bandwidth == outer.bandwidth && inner.port == outer.port;
  }
  /// Returns by what the links of NPUs are divided where they lead into the switches of a dimension.
  double links_into(std::size_t d) const { return is_above(d) ? oversubscription(d) : 1; }
  /// Returns how many ports of a switch lead towards NPUs. Of a radix, those are left that no links up need.
  double ports_down(const Tier& tier, std::size_t d) const {
    if (tier.switch_radix == 0) return tier.switch_ports;
    if (d + 1 == dimensions_.size() || !is_above(d + 1)) return tier.switch_radix;
    const double outside = oversubscription(d + 1);
    return std::floor(tier.switch_radix * outside / (1 + outside));
  }
  /// Returns the number of switches of a dimension. A fat tree has those of its levels.
  double switches_of(const Tier& tier, std::size_t d, const std::vector<topology::SwitchTier>& levels) const {
    const double ports = ports_down(tier, d);
    if (!dimensions_[d].shape->sends_over_one_link || ports == 0) return 0;
    if (tier.switch_radix == 0 || levels.size() == 1) return std::ceil(hardware_.num_npus / links_into(d) / ports);
    double all = 0;
    for (const topology::SwitchTier& level : levels) all += level.count;
    return all * hardware_.num_npus / dimensions_[d].size;
  }
  /// Returns how many links the way up through the switches of a dimension has for an NPU: one for each level, of which
  /// those above the first one are fewer if the dimension is oversubscribed.
  double links_up(std::size_t d, const std::vector<topology::SwitchTier>& levels) const {
    return 1 + static_cast<double>(levels.size() - 1) / oversubscription(d);
  }

  void add_dimension(const Tier& tier, std::size_t d) {
    const topology::Dimension& dimension = dimensions_[d];
    if (dimension.size == 1) return;
    const double groups = static_cast<double>(hardware_.num_npus) / dimension.size;
    const auto wiring = topology::make_wiring(dimension);
    auto levels = wiring->switch_tiers();
    if (wiring->core_bandwidth() > 0) levels.resize(1);  // the core of an oversubscribed switch is no further switch
    const bool joins_pairs = levels.empty();
    const double bandwidth = groups * static_cast<double>(topology::directed_links(dimension)) *
                             (dimension.bandwidth.bytes_per_ns() / prices_.bandwidth_unit.bytes_per_ns());
    const double leading_in = joins_pairs ? bandwidth * prices_.pair_share : bandwidth / links_into(d);
    add(fmt::format("{} links", tier.name), leading_in, tier.link);
    if (!joins_pairs) add(fmt::format("{} switch ports", tier.name), bandwidth / links_into(d), tier.switch_port);
    add(fmt::format("{} NICs", tier.name), bandwidth, joins_pairs ? 0 : tier.nic);
    hardware_.constant_power += hardware_.num_npus * tier.nic_power;
    if (!joins_pairs)
      add(fmt::format("{} optics", tier.name), std::ceil(hardware_.num_npus / links_into(d)) * links_up(d, levels),
          tier.optics);
    const double switches = switches_of(tier, d, levels);
    add(fmt::format("{} switches", tier.name), switches, tier.switch_price);
    hardware_.constant_power += switches * tier.switch_power;
  }

  const Prices& prices_;
  std::span<const topology::Dimension> dimensions_;
  Hardware hardware_;
};

}  // namespace

std::vector<const Tier*> tiers_of(const Prices& prices, std::size_t num_dimensions) {
  std::vector<const Tier*> found;
  if (prices.tiers.empty()) return found;
  if (prices.chosen.empty()) {
    if (prices.tiers.size() < num_dimensions)
      throw Error(ErrorCode::bad_input, {.key = "cost.network"},
                  fmt::format("found {} tiers ({})", prices.tiers.size(), names_of(prices.tiers)),
                  fmt::format("one for each of the {} dimensions, or cost.tiers", num_dimensions));
    for (std::size_t d = 0; d < num_dimensions; ++d)
      found.push_back(&prices.tiers[prices.tiers.size() - num_dimensions + d]);
    return found;
  }
  if (prices.chosen.size() != num_dimensions)
    throw Error(ErrorCode::bad_input, {.key = "cost.tiers"}, fmt::format("found {} tiers", prices.chosen.size()),
                fmt::format("one for each of the {} dimensions", num_dimensions));
  for (const std::string& name : prices.chosen) {
    const auto tier = std::ranges::find(prices.tiers, name, &Tier::name);
    if (tier == prices.tiers.end())
      throw Error(ErrorCode::bad_input, {.key = "cost.tiers"}, fmt::format("found '{}'", name),
                  fmt::format("a tier of cost.network: {}", names_of(prices.tiers)));
    found.push_back(&*tier);
  }
  return found;
}

std::optional<double> Hardware::capex() const {
  if (items.empty()) return {};
  double sum = 0;
  for (const auto& [name, price] : items) sum += price;
  return std::round(sum * cents) / cents;
}

Hardware hardware_of(const Prices& prices, std::span<const topology::Dimension> dimensions, Bytes local_memory) {
  return HardwareBuilder(prices, dimensions).build(local_memory);
}

StepCost cost_of_step(const Hardware& hardware, double seconds, double busy) {
  constexpr double seconds_of_hour = 3600, hours_of_year = 8760, joules_of_kwh = 3.6e6;
  StepCost cost;
  cost.capex = hardware.capex();
  const NpuPrices& npu = hardware.npu;
  const OperationPrices& operation = hardware.operation;
  if (npu.busy_power > 0 && npu.idle_power > 0) {
    const double of_npu = busy * npu.busy_power + (1 - busy) * npu.idle_power;
    cost.power = operation.pue * (hardware.num_npus * of_npu + hardware.constant_power);
    cost.energy = *cost.power * seconds;
  }
  if (npu.rent > 0) {
    cost.price = npu.rent * hardware.num_npus * seconds / seconds_of_hour;
  } else if (cost.capex && operation.lifetime_years > 0) {
    const double lifetime = operation.lifetime_years * hours_of_year * seconds_of_hour;
    cost.price = *cost.capex / (lifetime * operation.utilisation) * seconds;
    if (cost.energy) *cost.price += *cost.energy / joules_of_kwh * operation.electricity;
  }
  return cost;
}

}  // namespace orrery::cost
