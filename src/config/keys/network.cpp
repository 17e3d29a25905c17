#include "keys.hpp"
#include "orrery/base/text.hpp"

namespace orrery::config {
namespace {

constexpr std::string_view dimensions_expected = "a list of dimensions";

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
}

void write_dimensions(const Configuration& target, Writer& writer) {
  std::vector<std::string> items;
  for (const auto& dimension : target.dimensions)
    items.push_back(flow_text(dimension_keys(), DimensionEntry{{dimension.shape}, {dimension.size}, dimension}));
  writer.put_list("system.network.dimensions", items);
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
