#include <cmath>

#include "keys.hpp"
#include "validation.hpp"

namespace orrery::config {
namespace {

using network::FlitFlowControl;
using network::FlitRouting;
using network::FlitRules;

constexpr std::uint32_t most_buffer = 4096, most_packet = 1U << 20U, most_ports = 1024;

const Words<FlitPreset>& flit_presets() {
  static const Words<FlitPreset> words = {
      {"booksim", FlitPreset::booksim,
       "the router that BookSim 2 calls iq, which computes routes in a cycle of its own"},
      {"garnet", FlitPreset::garnet, "routes are computed by the router before, and buffers hold four flits"}};
  return words;
}

bool is_garnet(const FlitEntry& entry) { return entry.preset == FlitPreset::garnet; }

constexpr Row<FlitEntry> flit_rows[] = {
    {"system.network.dimensions.flits.preset",
     "other defaults: `booksim` has those of this table, `garnet` has `route: 0` and `buffer: 4`", "garnet",
     Default::built_in(), word<flit_presets>(), [](auto& entry) { return &entry.preset; },
     written_if([](const FlitEntry&) { return false; })},
    {"system.network.dimensions.flits.flit", "bytes that a link carries in a cycle, which takes flit / bandwidth",
     "32 B", Default::built_in(), size(1, "16 B"), [](auto& entry) { return &entry.rules.flit; }},
    {"system.network.dimensions.flits.packet", "flits of a packet; the last one of a message may have fewer", "16",
     Default::built_in(), count(1, most_packet), [](auto& entry) { return &entry.rules.packet; }},
    {"system.network.dimensions.flits.virtual-channels", "virtual channels of each port of a router", "2",
     Default::built_in(), count(1, FlitRules::most_virtual_channels),
     [](auto& entry) { return &entry.rules.virtual_channels; }},
    {"system.network.dimensions.flits.buffer", "flits that the buffer of a virtual channel holds", "16",
     Default::described("8; 4 with `preset: garnet`"), count(1, most_buffer),
     [](auto& entry) { return &entry.rules.buffer; },
     prepare([](FlitEntry& entry) { entry.rules.buffer = is_garnet(entry) ? 4 : 8; })},
    {"system.network.dimensions.flits.flow-control", "when a packet may go on to the next router",
     "virtual-cut-through", Default::built_in(), word<flit_flow_controls>(),
     [](auto& entry) { return &entry.rules.flow_control; }},
    {"system.network.dimensions.flits.routing", "how routers choose the way of a packet", "adaptive-xy-yx",
     Default::built_in(), word<flit_routings>(), [](auto& entry) { return &entry.rules.routing; }},
    {"system.network.dimensions.flits.route",
     "cycles from the arrival of a head flit to its request for a virtual channel; 0: the router before computed its "
     "route",
     "0", Default::described("1; 0 with `preset: garnet`"), count(0, FlitRules::most_cycles),
     [](auto& entry) { return &entry.rules.route; },
     prepare([](FlitEntry& entry) { entry.rules.route = is_garnet(entry) ? 0 : 1; })},
    {"system.network.dimensions.flits.link", "cycles of a flit, or of a credit, on a link between routers", "3",
     Default::described("1; 2 on a Torus2D"), count(0, FlitRules::most_cycles),
     [](auto& entry) { return &entry.rules.link; },
     prepare([](FlitEntry& entry) { entry.rules.link = entry.is_torus ? 2 : 1; })},
    {"system.network.dimensions.flits.seed", "seed of the draws where two ways are equally good", "7",
     Default::built_in(), count(0), [](auto& entry) { return &entry.rules.seed; }},
};

/// Returns the period of a cycle in ns.
double cycle_of(const DimensionEntry& entry) {
  return static_cast<double>(entry.flits->rules.flit.count()) / entry.dimension.bandwidth.bytes_per_ns();
}

[[noreturn]] void refuse(const Place& at, std::string_view key, std::string_view found, std::string_view expected,
                         std::string_view hint = {}) {
  Place place = at;
  place.key = fmt::format("{}.{}", at.key, key);
  throw Error(ErrorCode::bad_input, place, found, expected, hint);
}

/// Throws Error (bad_input) for rules that contradict each other or the shape.
void require_sound_flits(const DimensionEntry& entry, const Place& place) {
  if (entry.shape.rings != 2 && !entry.shape.is_one_router)
    refuse(place, "flits", fmt::format("found it on a {}", text_of(shapes(), entry.shape)),
           "shape: Mesh2D, Torus2D or Crossbar", "Other dimensions may stay as they are beside it.");
  const FlitRules& rules = entry.flits->rules;
  const bool is_mesh = entry.sizes.size() == 2 && !entry.flits->is_torus;
  if (rules.routing == FlitRouting::adaptive_xy_yx && !is_mesh)
    refuse(place, "flits.routing", fmt::format("found adaptive-xy-yx on a {}", text_of(shapes(), entry.shape)),
           "dor, or shape: Mesh2D");
  const bool has_halves = entry.flits->is_torus || rules.routing == FlitRouting::adaptive_xy_yx;
  if (has_halves && rules.virtual_channels % 2 != 0)
    refuse(place, "flits.virtual-channels",
           fmt::format("found {}, an odd number, with {}", rules.virtual_channels,
                       entry.flits->is_torus ? "a Torus2D" : "routing: adaptive-xy-yx"),
           "an even number: packets of each kind have one half of them");
  if (rules.flow_control == FlitFlowControl::virtual_cut_through && rules.buffer < rules.packet)
    refuse(place, "flits.buffer",
           fmt::format("found {} flits with virtual-cut-through and packets of {}", rules.buffer, rules.packet),
           fmt::format("{} or more, shorter packets, or flow-control: wormhole", rules.packet));
  const double ps = cycle_of(entry) * 1000;
  if (ps < 1 || std::abs(ps - std::round(ps)) > 1e-9 * ps)
    refuse(place, "bandwidth",
           fmt::format("found a cycle of {:.9g} ps: {} B of a flit over the bandwidth", ps, rules.flit.count()),
           "a whole number of ps", "128 GB/s and flits of 16 B have cycles of 125 ps, for example.");
}

/// Throws Error (bad_input) for properties of links that routers of flits do not have.
void require_plain_links(const DimensionEntry& entry, const Place& place) {
  const topology::Dimension& dimension = entry.dimension;
  constexpr std::string_view expected = "a dimension without `flits`, or without this key";
  if (dimension.links > 1)
    refuse(place, "links", fmt::format("found {} links side by side beside `flits`", dimension.links),
           "1, with the bandwidth of all of them");
  if (dimension.in_switch_operations > 0) refuse(place, "in-switch-operations", "found it beside `flits`", expected);
  if (dimension.oversubscription > 1) refuse(place, "oversubscription", "found it beside `flits`", expected);
  if (!dimension.port.empty()) refuse(place, "port", "found it beside `flits`", expected);
  if (entry.shape.is_one_router && entry.sizes.front() > most_ports)
    refuse(place, "size", fmt::format("found a router with {} ports", entry.sizes.front()),
           fmt::format("at most {} NPUs, or a Mesh2D", most_ports));
}

}  // namespace

const Keys<FlitEntry>& flit_keys() {
  static const Keys<FlitEntry> all("system.network.dimensions.flits", flit_rows, "system.network.dimensions.flits");
  return all;
}

void read_flits(const Value& value, const std::string& path, DimensionEntry& entry, Reading& reading) {
  entry.flits.emplace();
  entry.flits->is_torus = entry.shape.rings == 2 && entry.shape.shape == topology::Shape("Ring");
  read_any_item(flit_keys(), value, path, &*entry.flits, reading);
}

network::FlitDimensions flits_of(DimensionEntry& entry, std::uint32_t first, const Place& place) {
  require_sound_flits(entry, place);
  require_plain_links(entry, place);
  const FlitRules& rules = entry.flits->rules;
  entry.dimension.latency_ns = rules.hop_cycles() * cycle_of(entry);
  using network::FlitShape;
  const FlitShape of_two = entry.flits->is_torus ? FlitShape::torus : FlitShape::mesh;
  return {first, static_cast<std::uint32_t>(entry.sizes.size()),
          entry.shape.is_one_router ? FlitShape::crossbar : of_two, rules};
}

DimensionEntry entry_of(const network::FlitDimensions& flits, std::span<const topology::Dimension> dimensions) {
  DimensionEntry entry;
  entry.dimension = dimensions[flits.first];
  entry.shape = {entry.dimension.shape, flits.count, flits.shape == network::FlitShape::crossbar};
  for (std::uint32_t d = flits.first; d < flits.first + flits.count; ++d) entry.sizes.push_back(dimensions[d].size);
  entry.flits = FlitEntry{flits.rules, FlitPreset::booksim, flits.shape == network::FlitShape::torus};
  return entry;
}

/// Flits are simulated beside the links of the congestion-aware network only.
void Validation::validate_flits() {
  const network::Options& network = c_.execution.network;
  if (network.flits.empty()) return;
  constexpr std::string_view key = "system.network.dimensions.flits";  // has the place of the first entry with flits
  require(network.model == network::ModelName("congestion-aware"), "system.network.model",
          fmt::format("found {} beside a dimension with `flits`", name(network.model)),
          "congestion-aware, which takes in and hands on whole messages, or no `flits`");
  require(c_.rule_set == RuleSet::physical, key, "found it with ASTRA-sim's rules, which know no flits",
          "rules: physical, or no `flits`");
  require(!network.graph && !network.circuits, key, "found it beside system.network.graph or system.network.circuits",
          "dimensions with links of their own");
  require(network.packet == Bytes(0), "system.network.packet-size",
          "found a size beside a dimension with `flits`, which takes in and hands on whole messages",
          "no packet-size, or no `flits`");
  require(!network.has_requests, "system.gpu.evaluate",
          "found thread blocks of GPUs in a network with a dimension of `flits`", "alone, or no `flits`");
  for (const auto& faulty : c_.perturbation.links)
    for (const network::FlitDimensions& flits : network.flits)
      require(!flits.contains(faulty.dimension), "perturbation.links",
              fmt::format("found slow or failed links in dimension {}, which has `flits`", faulty.dimension),
              "links of other dimensions, or no `flits`");
}

}  // namespace orrery::config
