#include <algorithm>

#include "astra_sim.hpp"

namespace orrery::config {
namespace {

using topology::Shape;

constexpr double astra_sim_gigabyte = 1073741824.0;

const Words<Shape>& astra_sim_shapes() {
  static const Words<Shape> words = {{"Ring", Shape("Ring"), "each NPU has a link to either neighbour"},
                                     {"FullyConnected", Shape("FullyConnected"), "each NPU has a link to every other"},
                                     {"Switch", Shape("Switch"), "each NPU has one link to a switch"}};
  return words;
}

/// Refuses the shapes that only CONFIG.yaml has with a message of its own.
constinit const ValueKind<Shape> shape_kind =
    kind_of<Shape>([](const Limits&) { return word<astra_sim_shapes>().info(); },
                   [](const Limits&, const Value& value, const std::string& key, const Reading&) {
                     const auto is_word = [&](const auto& words) {
                       return std::ranges::any_of(words, [&](const auto& word) { return word.text == value.text; });
                     };
                     if (!is_word(astra_sim_shapes()) && is_word(shapes()))
                       throw Error(ErrorCode::bad_input, value.place(key), fmt::format("found {}", value.description()),
                                   "Ring, FullyConnected or Switch",
                                   fmt::format("ASTRA-sim's files have no {}, but CONFIG.yaml has.", value.text));
                     return as_word(value, key, astra_sim_shapes());
                   },
                   [](const Limits&, Shape shape) { return std::string(text_of(astra_sim_shapes(), shape)); });

constexpr std::string_view shapes_expected = "a list of Ring, FullyConnected or Switch";
constexpr std::string_view sizes_expected = "a list of whole numbers";
constexpr std::string_view bandwidths_expected = "a list of numbers, GB/s of 2^30 bytes";
constexpr std::string_view latencies_expected = "a list of numbers, ns";
constexpr Type shape_entry(shape_kind);
constexpr auto size_entry = count();
constexpr auto bandwidth_entry = positive_number("GiB/s");
constexpr auto latency_entry = plain_nanoseconds();

/// Returns how a list is read that has one entry for each dimension. A faulty entry becomes `fallback()`.
template <auto member, const auto& entry, const std::string_view& expected, auto fallback>
constexpr Handling<NetworkLists> list_of() {
  return {[](const Value& value, const std::string& path, NetworkLists& lists, Reading& reading) {
    const auto& items = as_list(value, path, expected);
    auto& values = lists.*member;
    values.assign(items.size(), fallback());
    for (std::size_t d = 0; d < items.size(); ++d)
      reading.faults.attempt([&] { entry.read_to(items[d], fmt::format("{}[{}]", path, d), reading, values[d]); });
    const std::size_t count = lists.shapes.size();
    if (count > 0 && items.size() != count)
      throw Error(ErrorCode::bad_input, value.place(path), fmt::format("found a list of {}", items.size()),
                  fmt::format("a list of {}, one entry for each dimension of 'topology'", count));
  }};
}

constexpr AstraSimRow<NetworkLists> network_yml_rows[] = {
    {"topology", "system.network.dimensions.shape", "shape of each dimension", Default::needed(),
     ValueInfo("list", shapes_expected, "-", "one word for each dimension", words_info<astra_sim_shapes>, true),
     list_of<&NetworkLists::shapes, shape_entry, shapes_expected, [] { return Shape("Ring"); }>()},
    {"npus_count", "system.network.dimensions.size", "size of each dimension", Default::needed(),
     ValueInfo("list", sizes_expected, "-", "1 or more each", nullptr, true),
     list_of<&NetworkLists::sizes, size_entry, sizes_expected, [] { return 0U; }>()},
    {"bandwidth", "system.network.dimensions.bandwidth", "bandwidth of a link, in GB of 2^30 bytes", Default::needed(),
     ValueInfo("list", bandwidths_expected, "GiB/s", "more than 0 each", nullptr, true),
     list_of<&NetworkLists::bandwidths, bandwidth_entry, bandwidths_expected, [] { return 1.0; }>()},
    {"latency", "system.network.dimensions.latency", "latency of a hop", Default::needed(),
     ValueInfo("list", latencies_expected, "ns", "0 to 1e12 each", nullptr, true),
     list_of<&NetworkLists::latencies, latency_entry, latencies_expected, [] { return 0.0; }>()},
};

}  // namespace

const Keys<NetworkLists>& network_yml_keys() {
  static const Keys<NetworkLists> all("network.yml", network_yml_rows);
  return all;
}

void read_network_yml(const AstraSimInputs& files, Reading& reading) {
  if (!files.logical.empty())
    reading.faults.add(Error(ErrorCode::usage, {.key = "--logical-topology-configuration"},
                             "it belongs to ASTRA-sim's ns-3 network",
                             "the config.txt of ns-3 in --network-configuration, or no logical dimensions",
                             "In a network.yml these are 'npus_count', with a topology, bandwidth and latency each."));
  with_file(files.network, "network.yml", reading, parse_astra_sim_network, [&](const Value& root) {
    Sections sections(Section(&root, "", root, reading.faults));
    NetworkLists lists;
    read_keys(network_yml_keys(), sections, lists, reading);
    if (const Value* const links = sections.at("").find("faulty_links"))
      reading.configuration.warnings.emplace_back(
          Error(ErrorCode::bad_input, links->place("faulty_links"), "ignored: ASTRA-sim 2 does not know failed links",
                "", "CONFIG.yaml does: perturbation.links: [{dimension: 0, npus: \"0,1\", failed: true}].")
              .what());
    warn_without_effect(sections.at(""), files.network, reading);
    const std::size_t count = lists.shapes.size();
    // The dimensions stay unknown if their number or a size is.
    if (count == 0 || lists.sizes.size() != count || std::ranges::find(lists.sizes, 0U) != lists.sizes.end()) return;
    lists.bandwidths.resize(count, 1.0);
    lists.latencies.resize(count, 0.0);
    for (std::size_t d = 0; d < count; ++d)
      reading.configuration.dimensions.push_back(
          {.shape = lists.shapes[d],
           .size = lists.sizes[d],
           .bandwidth = Bandwidth::from_bytes_per_ns(lists.bandwidths[d] * astra_sim_gigabyte / 1e9),
           .latency_ns = lists.latencies[d]});
  });
}

}  // namespace orrery::config
