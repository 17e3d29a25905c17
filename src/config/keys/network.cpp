#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph_reader.hpp"
#include "keys.hpp"
#include "orrery/base/text.hpp"
#include "orrery/network/graph_delays.hpp"

namespace orrery::config {
namespace {

constexpr std::string_view dimensions_expected = "a list of dimensions";
constexpr std::uint32_t hops_of_switch = 2;

}  // namespace

void take_delays_of_graph(Configuration& target, const Place& place) {
  const auto& given = *target.execution.network.graph;
  const std::uint32_t num_npus = count_npus(target.dimensions);
  if (num_npus == 0 || num_npus > given.graph.num_hosts())
    throw Error(ErrorCode::bad_input, place,
                fmt::format("found dimensions of {} NPUs on a graph of {} hosts", num_npus, given.graph.num_hosts()),
                "a host for each NPU");
  if (given.num_placed > 0 && given.num_placed != num_npus)
    throw Error(ErrorCode::bad_input, place,
                fmt::format("found dimensions of {} NPUs and a placement of {}", num_npus, given.num_placed),
                "a placement with the host of each NPU");
  using Partners = network::GraphDimension::Partners;
  std::vector<network::GraphDimension> lying;
  for (const auto& dimension : target.dimensions) {
    const auto partners = network::partners_on_graph(dimension.shape.name());
    if (!partners || dimension.links > 1 || dimension.oversubscription > 1 || dimension.in_switch_operations > 0)
      throw Error(
          ErrorCode::bad_input, place,
          fmt::format("found a {} on a graph, whose links and routes are those of the graph", dimension.shape.name()),
          "a Switch, a Ring or FullyConnected, with its size and no other keys");
    lying.push_back({dimension.size, *partners});
  }
  const auto delays = network::delays_of_dimensions(given, lying);
  for (std::size_t d = 0; d < lying.size(); ++d) {
    if (lying[d].size == 1) continue;
    const std::uint32_t hops = lying[d].partners == Partners::next ? hops_of_switch : 1;
    target.dimensions[d].latency_ns = static_cast<double>(delays[d].latency.ps()) / 1000 / hops;
    target.dimensions[d].bandwidth = Bandwidth::from_bytes_per_ns(static_cast<double>(delays[d].rate) / 8e9);
  }
}

namespace {

void read_dimensions(const Value& value, const std::string& path, Configuration& target, Reading& reading) {
  const auto& items = as_list(value, path, find_key("system.network.dimensions")->info().expected(std::string_view()));
  target.dimensions.clear();
  reading.dimensions_of_entry.clear();
  read_items(dimension_keys(), items, path, reading,
             [&](const DimensionEntry& entry, const Place& place, bool is_faultless) {
               for (const std::uint32_t size : entry.sizes) {
                 topology::Dimension dimension = entry.dimension;
                 dimension.shape = entry.shape.shape;
                 dimension.size = size;
                 if (is_faultless)
                   reading.faults.attempt([&] {
                     topology::validate(dimension, target.dimensions.size(), text_of(shapes(), entry.shape), place);
                   });
                 target.dimensions.push_back(dimension);
               }
               reading.dimensions_of_entry.push_back(entry.shape.rings);
             });
  if (target.execution.network.graph && reading.faults.count() == 0) take_delays_of_graph(target, value.place(path));
}

void write_dimensions(const Configuration& target, Writer& writer) {
  std::vector<std::string> items;
  for (const auto& dimension : target.dimensions)
    items.push_back(
        flow_text(dimension_keys(), DimensionEntry{.shape = {dimension.shape},
                                                   .sizes = {dimension.size},
                                                   .dimension = dimension,
                                                   .lies_on_graph = target.execution.network.graph != nullptr}));
  writer.put_list("system.network.dimensions", items);
}

void read_given_graph(const Value& value, const std::string& path, Configuration& target, Reading& reading) {
  WholeGraph whole = read_graph(value, path, GraphHosts::of_npus, reading.faults);
  target.execution.network.graph = std::make_shared<const network::GivenGraph>(std::move(whole.given));
  std::ranges::move(whole.notes, std::back_inserter(target.warnings));
}

}  // namespace

Handling<Configuration> replaced_before() {
  return {[](const Value&, const std::string&, Configuration&, Reading&) {}, [](const Configuration&, Writer&) {},
          [](const Configuration&, const Configuration&) { return true; }};
}

const Keys<Configuration>& system_keys() {
  static const Keys<Configuration> all = [] {
    Keys<Configuration> keys("system");
    keys.add({.path = "system.base",
              .help = "file whose keys hold where `system` has none of its own",
              .example = "systems/dgx-h100-superpod.yaml",
              .otherwise = Default::none()},
             file().info, replaced_before());
    keys.add({.path = "system.rules",
              .help = "rules of arithmetic",
              .example = "astra-sim",
              .otherwise = Default::value("physical"),
              .see = "model.md, 1"},
             word(rule_sets()).info,
             {[](const Value& value, const std::string& path, Configuration& target, Reading&) {
                target.follow(as_word(value, path, rule_sets()));
              },
              [](const Configuration& target, Writer& writer) {
                writer.put("system.rules", std::string(name(target.rule_set)));
              },
              [](const Configuration& a, const Configuration& b) { return a.rule_set == b.rule_set; }});
    return keys;
  }();
  return all;
}

const Keys<Configuration>& network_keys() {
  static const Keys<Configuration> all = [] {
    Keys<Configuration> keys("system.network");
    keys.add(
        {.path = "system.network.model",
         .help = "how messages share links",
         .example = "congestion-aware",
         .otherwise = Default::built_in(),
         .see = "network.md",
         .flag = Flag{.name = "network",
                      .heading = Heading::model,
                      .argument = "MODEL",
                      .commands = {Taker::run, Taker::check, Taker::show_topology, Taker::show_collective}}},
        word(network_models()), [](auto& c) -> auto& { return c.execution.network.model; });
    keys.add(
        {.path = "system.network.switching",
         .help = "when a device passes a message on, in the congestion-aware network",
         .example = "cut-through",
         .otherwise = Default::built_in()},
        word(network_switchings()), [](auto& c) -> auto& { return c.execution.network.switching; });
    keys.add(
        {.path = "system.network.packet-size",
         .help = "size of the pieces in which links serve messages, with cut-through; `0 B`: whole messages",
         .example = "4 KiB",
         .otherwise = Default::built_in()},
        size(0, "4096 B"), [](auto& c) -> auto& { return c.execution.network.packet; });
    keys.add(
        {.path = "system.network.graph",
         .help =
             "hosts, switches and links on which the dimensions lie, what generates them, or a file; NPU i is host i",
         .example = "{hosts: 2, switches: 1, links: [[0, 2, 400 Gb/s, 1 us], [1, 2, 400 Gb/s, 1 us]]}",
         .otherwise = Default::described("the links of the shapes"),
         .see = "packet-network.md"},
        {"mapping or file", "a mapping of hosts, switches and links, or the name of a file with one", "-", "any"},
        {read_given_graph,
         [](const Configuration& target, Writer& writer) {
           if (const auto& given = target.execution.network.graph)
             writer.put("system.network.graph", graph_text(*given));
         },
         [](const Configuration& a, const Configuration& b) {
           const auto &left = a.execution.network.graph, &right = b.execution.network.graph;
           return left && right ? graph_text(*left) == graph_text(*right) : left == right;
         }});
    keys.add({.path = "system.network.dimensions",
              .help = "dimensions, innermost first; the number of NPUs is the product of their sizes",
              .example = "[{shape: Ring, size: 8, bandwidth: 400 GB/s, latency: 500 ns}]",
              .otherwise = Default::needed()},
             {"list", std::string(dimensions_expected), "-", "1 to 64 entries"},
             {read_dimensions, write_dimensions,
              [](const Configuration& a, const Configuration& b) { return a.dimensions == b.dimensions; }});
    return keys;
  }();
  return all;
}

}  // namespace orrery::config
