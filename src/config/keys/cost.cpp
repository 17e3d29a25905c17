#include "orrery/cost/cost.hpp"
#include "keys.hpp"

namespace orrery::config {
namespace {

/// Returns the type of prices and powers.
Type<double> amount() { return number("0 or more"); }

void require_amount(double amount, const Place& place) {
  if (amount < 0) throw Error(ErrorCode::bad_input, place, fmt::format("found {}", amount), "0 or more");
}

void require_share(double share, const Place& place) {
  if (share <= 0 || share > 1)
    throw Error(ErrorCode::bad_input, place, fmt::format("found {}", share), "more than 0, and 1 or less");
}

/// Adds a price or a power, 0 if it is not given.
template <class Target, class Access>
void add_amount(Keys<Target>& keys, Text path, Text help, Text example, Access access) {
  keys.add({.path = path, .help = help, .example = example, .otherwise = Default::built_in()}, amount(), access)
      .check(
          [access](const Target& target, const Place& place, const Reading&) { require_amount(access(target), place); })
      .written_unless_default();
}

Handling<Configuration> network() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading& reading) {
            const auto& items = as_list(value, path, find_key("cost.network")->info().expected({}));
            target.prices.tiers.clear();
            read_items(tier_keys(), items, path, reading,
                       [&](cost::Tier&& tier, const Place&, bool) { target.prices.tiers.push_back(std::move(tier)); });
          },
          [](const Configuration& c, Writer& writer) {
            std::vector<std::string> items;
            for (const auto& tier : c.prices.tiers) items.push_back(flow_text(tier_keys(), tier));
            if (!items.empty()) writer.put_list("cost.network", items);
          },
          [](const Configuration& a, const Configuration& b) { return a.prices.tiers == b.prices.tiers; }};
}

Handling<Configuration> chosen_tiers() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading& reading) {
            auto& chosen = target.prices.chosen;
            chosen.clear();
            const auto& items = as_list(value, path, "a list of tiers, one for each dimension");
            for (std::size_t i = 0; i < items.size(); ++i)
              chosen.push_back(as_text(items[i], fmt::format("{}.{}", path, i), "a name of cost.network"));
            if (reading.num_npus() == 0) return;
            try {
              cost::tiers_of(target.prices, target.dimensions.size());
            } catch (const Error& error) {
              throw Error(error.code(), value.place(path), error.text());
            }
          },
          [](const Configuration& c, Writer& writer) {
            std::vector<std::string> names;
            for (const auto& name : c.prices.chosen) names.push_back(in_quotes(name));
            if (!names.empty()) writer.put("cost.tiers", fmt::format("[{}]", fmt::join(names, ", ")));
          },
          [](const Configuration& a, const Configuration& b) { return a.prices.chosen == b.prices.chosen; }};
}

void add_origin(Keys<Configuration>& keys) {
  keys.add({.path = "cost.base",
            .help = "file whose keys hold where `cost` has none of its own",
            .example = "prices/ours.yaml",
            .otherwise = Default::none()},
           file().info, replaced_before());
  keys.add(
          {.path = "cost.source",
           .help = "where the prices were found",
           .example = "offer of a vendor",
           .otherwise = Default::needed_in_mapping(),
           .see = "cost.md"},
          any_text("a text"), [](auto& c) -> auto& { return c.prices.source; })
      .written_unless_default();
  keys.add(
          {.path = "cost.date",
           .help = "when they were found",
           .example = "2024-08",
           .otherwise = Default::needed_in_mapping()},
          any_text("a text"), [](auto& c) -> auto& { return c.prices.date; })
      .written_unless_default();
}

void add_npu(Keys<Configuration>& keys) {
  add_amount(
      keys, "cost.npu.price", "price of an NPU, in USD", "25000", [](auto& c) -> auto& { return c.prices.npu.price; });
  add_amount(
      keys, "cost.npu.memory", "price of local memory, in USD per GB; `local-memory.size` says how much there is", "12",
      [](auto& c) -> auto& { return c.prices.npu.memory; });
  add_amount(
      keys, "cost.npu.busy-power",
      "power of an NPU while it computes, in W; energy is known if this and `idle-power` are", "700",
      [](auto& c) -> auto& { return c.prices.npu.busy_power; });
  add_amount(
      keys, "cost.npu.idle-power", "power of an NPU while it does not compute, in W", "120",
      [](auto& c) -> auto& { return c.prices.npu.idle_power; });
  add_amount(
      keys, "cost.npu.rent", "rent of an NPU with all that belongs to it, in USD per hour", "2.5",
      [](auto& c) -> auto& { return c.prices.npu.rent; });
}

void add_host(Keys<Configuration>& keys) {
  keys.add(
          {.path = "cost.host.npus",
           .help = "NPUs of a host; 0: hosts are not counted",
           .example = "8",
           .otherwise = Default::built_in()},
          count(0), [](auto& c) -> auto& { return c.prices.host.npus; })
      .written_unless_default();
  add_amount(
      keys, "cost.host.price", "price of a host, with its NPUs if they have no price of their own, in USD", "310000",
      [](auto& c) -> auto& { return c.prices.host.price; });
  add_amount(
      keys, "cost.host.cables", "price of the cables of a host, in USD", "20480",
      [](auto& c) -> auto& { return c.prices.host.cables; });
  add_amount(
      keys, "cost.host.facility", "price of the facility for a host, in USD", "50000",
      [](auto& c) -> auto& { return c.prices.host.facility; });
  add_amount(
      keys, "cost.host.power", "power of a host without its NPUs, in W", "4600",
      [](auto& c) -> auto& { return c.prices.host.power; });
}

void add_network(Keys<Configuration>& keys) {
  keys.add({.path = "cost.network",
            .help = "prices of the tiers of networks, from the innermost one outwards; the keys of an entry are those "
                    "of `cost.network`",
            .example = "[{name: node, link: 4, switch: 13}, {name: pod, link: 7.4, switch: 23.7, nic: 47.8}]",
            .otherwise = Default::none(),
            .see = "cost.md"},
           {"list", "a list of tiers", "-", "any"}, network());
  keys.add({.path = "cost.tiers",
            .help = "the tier of each dimension, the innermost one first",
            .example = "[node, pod]",
            .otherwise = Default::described("the outermost dimension has the last tier of the list, and so on")},
           {"list", "a list of names", "-", "names of `cost.network`"}, chosen_tiers());
  keys.add(
          {.path = "cost.bandwidth-unit",
           .help = "bandwidth for which the prices of `link`, `switch` and `nic` are",
           .example = "1 GB/s",
           .otherwise = Default::built_in()},
          bandwidth(), [](auto& c) -> auto& { return c.prices.bandwidth_unit; })
      .written_unless_default();
  keys.add(
          {.path = "cost.pair-share",
           .help = "share of `link` that an NPU pays for a link to another NPU: 0.5 if the two share the price",
           .example = "0.5",
           .otherwise = Default::built_in()},
          number("more than 0, and 1 or less"), [](auto& c) -> auto& { return c.prices.pair_share; })
      .check(
          [](const Configuration& c, const Place& place, const Reading&) { require_share(c.prices.pair_share, place); })
      .written_unless_default();
}

void add_operation(Keys<Configuration>& keys) {
  keys.add(
          {.path = "cost.operation.pue",
           .help = "power usage effectiveness: power of the facility over that of its computers",
           .example = "1.3",
           .otherwise = Default::built_in()},
          number("1 or more"), [](auto& c) -> auto& { return c.prices.operation.pue; })
      .check([](const Configuration& c, const Place& place, const Reading&) {
        if (c.prices.operation.pue < 1)
          throw Error(ErrorCode::bad_input, place, fmt::format("found {}", c.prices.operation.pue), "1 or more");
      })
      .written_unless_default();
  add_amount(
      keys, "cost.operation.electricity", "price of electricity, in USD per kWh", "0.087",
      [](auto& c) -> auto& { return c.prices.operation.electricity; });
  add_amount(
      keys, "cost.operation.lifetime", "years in which the system is paid off; 0: not known", "4",
      [](auto& c) -> auto& { return c.prices.operation.lifetime_years; });
  keys.add(
          {.path = "cost.operation.utilisation",
           .help = "share of its lifetime in which the system works",
           .example = "0.8",
           .otherwise = Default::built_in()},
          number("more than 0, and 1 or less"), [](auto& c) -> auto& { return c.prices.operation.utilisation; })
      .check([](const Configuration& c, const Place& place, const Reading&) {
        require_share(c.prices.operation.utilisation, place);
      })
      .written_unless_default();
}

}  // namespace

const Keys<Configuration>& cost_keys() {
  static const Keys<Configuration> all = [] {
    Keys<Configuration> keys("cost");
    add_origin(keys);
    add_npu(keys);
    add_host(keys);
    add_network(keys);
    add_operation(keys);
    return keys;
  }();
  return all;
}

const Keys<cost::Tier>& tier_keys() {
  static const Keys<cost::Tier> all = [] {
    Keys<cost::Tier> keys("cost.network", "cost.network");
    keys.add(
        {.path = "cost.network.name", .help = "name of the tier", .example = "pod", .otherwise = Default::needed()},
        any_text("a name"), [](auto& tier) -> auto& { return tier.name; });
    add_amount(
        keys, "cost.network.link", "price of an NPU's links, in USD per `bandwidth-unit`", "7.4",
        [](auto& tier) -> auto& { return tier.link; });
    add_amount(
        keys, "cost.network.switch", "price of its ports of switches, in USD per `bandwidth-unit`", "23.7",
        [](auto& tier) -> auto& { return tier.switch_port; });
    add_amount(
        keys, "cost.network.nic", "price of its NIC, in USD per `bandwidth-unit`; for shapes with switches", "47.8",
        [](auto& tier) -> auto& { return tier.nic; });
    add_amount(
        keys, "cost.network.switch-price", "price of a switch, in USD", "36000",
        [](auto& tier) -> auto& { return tier.switch_price; });
    keys.add(
            {.path = "cost.network.switch-ports",
             .help = "ports of a switch that lead to NPUs, one for each; 0: the tier has no switches that are counted",
             .example = "32",
             .otherwise = Default::built_in()},
            count(0), [](auto& tier) -> auto& { return tier.switch_ports; })
        .written_unless_default();
    add_amount(
        keys, "cost.network.switch-power", "power of a switch, in W", "1500",
        [](auto& tier) -> auto& { return tier.switch_power; });
    add_amount(
        keys, "cost.network.nic-power", "power of an NPU's NIC, in W", "25",
        [](auto& tier) -> auto& { return tier.nic_power; });
    return keys;
  }();
  return all;
}

}  // namespace orrery::config
