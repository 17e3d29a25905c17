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
Type<Shape> astra_sim_shape() {
  Type<Shape> type = word(astra_sim_shapes());
  type.read = [read = type.read](const Value& value, const std::string& key, const Reading& reading) {
    const auto is_word = [&](const auto& words) {
      return std::ranges::any_of(words, [&](const auto& word) { return word.text == value.text; });
    };
    if (!is_word(astra_sim_shapes()) && is_word(shapes()))
      throw Error(ErrorCode::bad_input, value.place(key), fmt::format("found {}", value.description()),
                  "Ring, FullyConnected or Switch",
                  fmt::format("ASTRA-sim's files have no {}, but CONFIG.yaml has.", value.text));
    return read(value, key, reading);
  };
  return type;
}

/// Returns how a list is read that has one entry for each dimension. A faulty entry becomes `fallback`.
template <class T>
Handling<NetworkLists> list_of_dimensions(std::vector<T> NetworkLists::*member, const Type<T>& entry, T fallback,
                                          std::string_view expected) {
  return {
      [=](const Value& value, const std::string& path, NetworkLists& lists, Reading& reading) {
        const auto& items = as_list(value, path, expected);
        auto& values = lists.*member;
        values.assign(items.size(), fallback);
        for (std::size_t d = 0; d < items.size(); ++d)
          reading.faults.attempt([&] { values[d] = entry.read(items[d], fmt::format("{}[{}]", path, d), reading); });
        const std::size_t count = lists.shapes.size();
        if (count > 0 && items.size() != count)
          throw Error(ErrorCode::bad_input, value.place(path), fmt::format("found a list of {}", items.size()),
                      fmt::format("a list of {}, one entry for each dimension of 'topology'", count));
      },
      {},
      {}};
}

}  // namespace

const Keys<NetworkLists>& network_yml_keys() {
  static const Keys<NetworkLists> all = [] {
    Keys<NetworkLists> keys("network.yml");
    const auto add = [&](const AboutAstraSim& about, std::string_view expected, std::string_view unit,
                         std::string_view range, std::vector<WordInfo> words, auto handling) {
      keys.add_astra_sim(about,
                         {"list", std::string(expected), std::string(unit), std::string(range), std::move(words), true},
                         std::move(handling));
    };
    constexpr std::string_view shapes_expected = "a list of Ring, FullyConnected or Switch";
    constexpr std::string_view sizes_expected = "a list of whole numbers";
    constexpr std::string_view bandwidths_expected = "a list of numbers, GB/s of 2^30 bytes";
    constexpr std::string_view latencies_expected = "a list of numbers, ns";
    add({.name = "topology",
         .becomes = "system.network.dimensions.shape",
         .help = "shape of each dimension",
         .otherwise = Default::needed()},
        shapes_expected, "-", "one word for each dimension", info_of(astra_sim_shapes()),
        list_of_dimensions(&NetworkLists::shapes, astra_sim_shape(), Shape("Ring"), shapes_expected));
    add({.name = "npus_count",
         .becomes = "system.network.dimensions.size",
         .help = "size of each dimension",
         .otherwise = Default::needed()},
        sizes_expected, "-", "1 or more each", {},
        list_of_dimensions(&NetworkLists::sizes, count(), 0U, sizes_expected));
    add({.name = "bandwidth",
         .becomes = "system.network.dimensions.bandwidth",
         .help = "bandwidth of a link, in GB of 2^30 bytes",
         .otherwise = Default::needed()},
        bandwidths_expected, "GiB/s", "more than 0 each", {},
        list_of_dimensions(&NetworkLists::bandwidths, positive_number("GiB/s"), 1.0, bandwidths_expected));
    add({.name = "latency",
         .becomes = "system.network.dimensions.latency",
         .help = "latency of a hop",
         .otherwise = Default::needed()},
        latencies_expected, "ns", "0 to 1e12 each", {},
        list_of_dimensions(&NetworkLists::latencies, plain_nanoseconds(), 0.0, latencies_expected));
    return keys;
  }();
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
