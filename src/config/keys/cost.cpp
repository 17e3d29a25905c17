#include "orrery/cost/cost.hpp"
#include "keys.hpp"

namespace orrery::config {
namespace {

void require_share(double share, const Place& place) {
  if (share <= 0 || share > 1)
    throw Error(ErrorCode::bad_input, place, fmt::format("found {}", share), "more than 0, and 1 or less");
}

/// Returns the row of a price or a power, 0 if it is not given.
template <class Target, class Access>
consteval Row<Target> amount(Text path, Text help, Text example, Access access) {
  return {path,
          help,
          example,
          Default::built_in(),
          number("0 or more"),
          access,
          check([](const Target& target, const Place& place, const Reading&) {
            if (const double found = *Access{}(target); found < 0)
              throw Error(ErrorCode::bad_input, place, fmt::format("found {}", found), "0 or more");
          }),
          written_unless_default()};
}

constexpr Handling<Configuration> network() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading& reading) {
            const auto& items = as_list(value, path, find_key("cost.network")->info().expected({}));
            target.prices.tiers.clear();
            read_items(tier_keys(), items, path, reading,
                       [&](cost::Tier&& tier, const Place&, bool) { target.prices.tiers.push_back(std::move(tier)); });
          },
          [](const Configuration& c, std::string_view path, Writer& writer) {
            std::vector<std::string> items;
            for (const auto& tier : c.prices.tiers) items.push_back(flow_text(tier_keys(), tier));
            if (!items.empty()) writer.put_list(path, items);
          },
          [](const Configuration& a, const Configuration& b) { return a.prices.tiers == b.prices.tiers; }};
}

constexpr Handling<Configuration> chosen_tiers() {
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
          [](const Configuration& c, std::string_view path, Writer& writer) {
            std::vector<std::string> names;
            for (const auto& name : c.prices.chosen) names.push_back(in_quotes(name));
            if (!names.empty()) writer.put(path, fmt::format("[{}]", fmt::join(names, ", ")));
          },
          [](const Configuration& a, const Configuration& b) { return a.prices.chosen == b.prices.chosen; }};
}

constexpr Row<Configuration> cost_rows[] = {
    {"cost.base", "file whose keys apply where `cost` does not set them", "prices/ours.yaml", Default::none(), file(),
     replaced_before()},
    {"cost.source", "where the prices were found", "offer of a vendor", Default::needed_in_mapping(),
     any_text("a text"), [](auto& c) { return &c.prices.source; }, see("cost.md"), written_unless_default()},
    {"cost.date", "when they were found", "2024-08", Default::needed_in_mapping(), any_text("a text"),
     [](auto& c) { return &c.prices.date; }, written_unless_default()},
    amount<Configuration>("cost.npu.price", "price of an NPU, in USD", "25000",
                          [](auto& c) { return &c.prices.npu.price; }),
    amount<Configuration>("cost.npu.memory",
                          "price of local memory, in USD per GB; `local-memory.size` says how much there is", "12",
                          [](auto& c) { return &c.prices.npu.memory; }),
    amount<Configuration>("cost.npu.busy-power",
                          "power of an NPU while it computes, in W; energy is known if this and `idle-power` are",
                          "700", [](auto& c) { return &c.prices.npu.busy_power; }),
    amount<Configuration>("cost.npu.idle-power", "power of an NPU while it does not compute, in W", "120",
                          [](auto& c) { return &c.prices.npu.idle_power; }),
    amount<Configuration>("cost.npu.rent", "rent of an NPU with all that belongs to it, in USD per hour", "2.5",
                          [](auto& c) { return &c.prices.npu.rent; }),
    {"cost.host.npus", "NPUs of a host; 0: hosts are not counted", "8", Default::built_in(), count(0),
     [](auto& c) { return &c.prices.host.npus; }, written_unless_default()},
    amount<Configuration>("cost.host.price",
                          "price of a host, with its NPUs if they have no price of their own, in USD", "310000",
                          [](auto& c) { return &c.prices.host.price; }),
    amount<Configuration>("cost.host.cables", "price of the cables of a host, in USD", "20480",
                          [](auto& c) { return &c.prices.host.cables; }),
    amount<Configuration>("cost.host.facility", "price of the facility for a host, in USD", "50000",
                          [](auto& c) { return &c.prices.host.facility; }),
    amount<Configuration>("cost.host.power", "power of a host without its NPUs, in W", "4600",
                          [](auto& c) { return &c.prices.host.power; }),
    {"cost.network",
     "prices of the tiers of networks, from the innermost one outwards; the keys of an entry are those "
     "of `cost.network`",
     "[{name: node, link: 4, switch: 13}, {name: pod, link: 7.4, switch: 23.7, nic: 47.8}]", Default::none(),
     ValueInfo("list", "a list of tiers", "-", "any"), network(), see("cost.md")},
    {"cost.tiers", "the tier of each dimension, the innermost one first", "[node, pod]",
     Default::described("the outermost dimension has the last tier of the list, and so on"),
     ValueInfo("list", "a list of names", "-", "names of `cost.network`"), chosen_tiers()},
    {"cost.bandwidth-unit", "bandwidth for which the prices of `link`, `switch` and `nic` are", "1 GB/s",
     Default::built_in(), bandwidth(), [](auto& c) { return &c.prices.bandwidth_unit; }, written_unless_default()},
    {"cost.pair-share", "share of `link` that an NPU pays for a link to another NPU: 0.5 if the two share the price",
     "0.5", Default::built_in(), number("more than 0, and 1 or less"), [](auto& c) { return &c.prices.pair_share; },
     check(
         [](const Configuration& c, const Place& place, const Reading&) { require_share(c.prices.pair_share, place); }),
     written_unless_default()},
    {"cost.operation.pue", "power usage effectiveness: power of the facility over that of its computers", "1.3",
     Default::built_in(), number("1 or more"), [](auto& c) { return &c.prices.operation.pue; },
     check([](const Configuration& c, const Place& place, const Reading&) {
       if (c.prices.operation.pue < 1)
         throw Error(ErrorCode::bad_input, place, fmt::format("found {}", c.prices.operation.pue), "1 or more");
     }),
     written_unless_default()},
    amount<Configuration>("cost.operation.electricity", "price of electricity, in USD per kWh", "0.087",
                          [](auto& c) { return &c.prices.operation.electricity; }),
    amount<Configuration>("cost.operation.lifetime", "years in which the system is paid off; 0: not known", "4",
                          [](auto& c) { return &c.prices.operation.lifetime_years; }),
    {"cost.operation.utilisation", "share of its lifetime in which the system works", "0.8", Default::built_in(),
     number("more than 0, and 1 or less"), [](auto& c) { return &c.prices.operation.utilisation; },
     check([](const Configuration& c, const Place& place, const Reading&) {
       require_share(c.prices.operation.utilisation, place);
     }),
     written_unless_default()},
};

constexpr Row<cost::Tier> tier_rows[] = {
    {"cost.network.name", "name of the tier", "pod", Default::needed(), any_text("a name"),
     [](auto& tier) { return &tier.name; }},
    amount<cost::Tier>("cost.network.link", "price of an NPU's links, in USD per `bandwidth-unit`", "7.4",
                       [](auto& tier) { return &tier.link; }),
    amount<cost::Tier>("cost.network.switch", "price of its ports of switches, in USD per `bandwidth-unit`", "23.7",
                       [](auto& tier) { return &tier.switch_port; }),
    amount<cost::Tier>("cost.network.nic", "price of its NIC, in USD per `bandwidth-unit`; for shapes with switches",
                       "47.8", [](auto& tier) { return &tier.nic; }),
    amount<cost::Tier>("cost.network.switch-price", "price of a switch, in USD", "36000",
                       [](auto& tier) { return &tier.switch_price; }),
    {"cost.network.switch-ports",
     "ports of a switch that lead to NPUs, one for each; 0: the tier has no switches that are counted", "32",
     Default::built_in(), count(0), [](auto& tier) { return &tier.switch_ports; }, written_unless_default()},
    {"cost.network.switch-radix",
     "in place of `switch-ports`: all ports of a switch. Those that do not lead up lead to NPUs: more with an "
     "oversubscribed dimension outside",
     "64", Default::built_in(), count(0), [](auto& tier) { return &tier.switch_radix; },
     excludes("cost.network.switch-ports"), written_unless_default()},
    amount<cost::Tier>("cost.network.optics",
                       "price of a link into its switches, the cable and both transceivers, in USD", "1000",
                       [](auto& tier) { return &tier.optics; }),
    amount<cost::Tier>("cost.network.switch-power", "power of a switch, in W", "1500",
                       [](auto& tier) { return &tier.switch_power; }),
    amount<cost::Tier>("cost.network.nic-power", "power of an NPU's NIC, in W", "25",
                       [](auto& tier) { return &tier.nic_power; }),
};

}  // namespace

const Keys<Configuration>& cost_keys() {
  static const Keys<Configuration> all("cost", cost_rows);
  return all;
}

const Keys<cost::Tier>& tier_keys() {
  static const Keys<cost::Tier> all("cost.network", tier_rows, "cost.network");
  return all;
}

}  // namespace orrery::config
