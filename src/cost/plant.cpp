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
class PlantBuilder {
 public:
  PlantBuilder(const Prices& prices, std::span<const topology::Dimension> dimensions)
      : prices_(prices), dimensions_(dimensions) {
    plant_.num_npus = 1;
    for (const auto& dimension : dimensions) plant_.num_npus *= dimension.size;
    plant_.npu = prices.npu;
    plant_.operation = prices.operation;
  }

  Plant build(Bytes local_memory) {
    add("NPUs", plant_.num_npus, prices_.npu.price);
    add("local memory", plant_.num_npus,
        prices_.npu.memory * (static_cast<double>(local_memory.count()) / bytes_of_gb));
    if (prices_.host.npus > 0) {
      const double hosts = std::ceil(static_cast<double>(plant_.num_npus) / prices_.host.npus);
      add("hosts", hosts, prices_.host.price);
      add("cables", hosts, prices_.host.cables);
      add("facility", hosts, prices_.host.facility);
      plant_.constant_power += hosts * prices_.host.power;
    }
    const auto tiers = tiers_of(prices_, dimensions_.size());
    for (std::size_t d = 0; d < tiers.size(); ++d) add_dimension(*tiers[d], dimensions_[d]);
    return std::move(plant_);
  }

 private:
  void add(const std::string& name, double count, double price) {
    if (price > 0) plant_.items.emplace_back(name, std::round(count * price * cents) / cents);
  }
  void add_dimension(const Tier& tier, const topology::Dimension& dimension) {
    if (dimension.size == 1) return;
    const double groups = static_cast<double>(plant_.num_npus) / dimension.size;
    const auto switch_tiers = topology::make_wiring(dimension)->switch_tiers();
    const bool joins_pairs = switch_tiers.empty();
    const double bandwidth = groups * static_cast<double>(topology::directed_links(dimension)) *
                             (dimension.bandwidth.bytes_per_ns() / prices_.bandwidth_unit.bytes_per_ns());
    add(fmt::format("{} links", tier.name), bandwidth * (joins_pairs ? prices_.pair_share : 1), tier.link);
    if (!joins_pairs) add(fmt::format("{} switch ports", tier.name), bandwidth, tier.switch_port);
    add(fmt::format("{} NICs", tier.name), bandwidth, joins_pairs ? 0 : tier.nic);
    plant_.constant_power += plant_.num_npus * tier.nic_power;
    double switches = 0;
    if (dimension.shape->sends_over_one_link && tier.switch_ports > 0)
      switches = std::ceil(static_cast<double>(plant_.num_npus) / tier.switch_ports);
    add(fmt::format("{} switches", tier.name), switches, tier.switch_price);
    plant_.constant_power += switches * tier.switch_power;
  }

  const Prices& prices_;
  std::span<const topology::Dimension> dimensions_;
  Plant plant_;
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

std::optional<double> Plant::capex() const {
  if (items.empty()) return {};
  double sum = 0;
  for (const auto& [name, price] : items) sum += price;
  return std::round(sum * cents) / cents;
}

Plant plant_of(const Prices& prices, std::span<const topology::Dimension> dimensions, Bytes local_memory) {
  return PlantBuilder(prices, dimensions).build(local_memory);
}

StepCost cost_of_step(const Plant& plant, double seconds, double busy) {
  constexpr double seconds_of_hour = 3600, hours_of_year = 8760, joules_of_kwh = 3.6e6;
  StepCost cost;
  cost.capex = plant.capex();
  const NpuPrices& npu = plant.npu;
  const OperationPrices& operation = plant.operation;
  if (npu.busy_power > 0 && npu.idle_power > 0) {
    const double of_npu = busy * npu.busy_power + (1 - busy) * npu.idle_power;
    cost.power = operation.pue * (plant.num_npus * of_npu + plant.constant_power);
    cost.energy = *cost.power * seconds;
  }
  if (npu.rent > 0) {
    cost.price = npu.rent * plant.num_npus * seconds / seconds_of_hour;
  } else if (cost.capex && operation.lifetime_years > 0) {
    const double lifetime = operation.lifetime_years * hours_of_year * seconds_of_hour;
    cost.price = *cost.capex / (lifetime * operation.utilisation) * seconds;
    if (cost.energy) *cost.price += *cost.energy / joules_of_kwh * operation.electricity;
  }
  return cost;
}

}  // namespace orrery::cost
