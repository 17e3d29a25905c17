#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "circuits.hpp"
#include "graph_reader.hpp"
#include "keys.hpp"
#include "orrery/base/text.hpp"
#include "orrery/collective/custom_collective.hpp"
#include "orrery/network/graph_delays.hpp"
#include "orrery/network/packet_graph.hpp"
#include "orrery/topology/fabric.hpp"
#include "validation.hpp"

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
    // Switches of packets form trees of their own.
    const bool has_own_switch = dimension.in_switch_operations > 0 && !target.execution.network.model->sends_packets;
    if (!partners || dimension.links > 1 || dimension.oversubscription > 1 || has_own_switch)
      throw Error(
          ErrorCode::bad_input, place,
          fmt::format("found a {} on a graph, whose links and routes are those of the graph", dimension.shape.name()),
          "a Switch, a Ring or FullyConnected, with its size and no other keys; in the packet network also with "
          "in-switch-operations");
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
  target.execution.network.flits.clear();
  reading.dimensions_of_entry.clear();
  read_items(dimension_keys(), items, path, reading, [&](DimensionEntry entry, const Place& place, bool is_faultless) {
    bool is_sound = is_faultless;
    if (entry.flits && is_faultless)
      is_sound = reading.faults.attempt([&] {
        const auto first = static_cast<std::uint32_t>(target.dimensions.size());
        auto& flits = target.execution.network.flits;
        flits.push_back(flits_of(entry, first, place));
        if (flits.size() > 1) return;
        Place& of_first = target.places["system.network.dimensions.flits"] = place;
        of_first.key += ".flits";
      });
    for (const std::uint32_t size : entry.sizes) {
      topology::Dimension dimension = entry.dimension;
      dimension.shape = entry.shape.shape;
      dimension.size = size;
      if (is_sound)
        reading.faults.attempt(
            [&] { topology::validate(dimension, target.dimensions.size(), text_of(shapes(), entry.shape), place); });
      target.dimensions.push_back(dimension);
    }
    reading.dimensions_of_entry.push_back(entry.shape.rings);
  });
  // Only this model simulates flits, so it need not be named.
  if (!target.execution.network.flits.empty() && !target.places.contains("system.network.model"))
    target.execution.network.model = network::ModelName("congestion-aware");
  if (target.execution.network.graph && reading.faults.count() == 0) take_delays_of_graph(target, value.place(path));
}

void write_dimensions(const Configuration& target, std::string_view path, Writer& writer) {
  std::vector<std::string> items;
  const auto& flits = target.execution.network.flits;
  for (std::uint32_t d = 0; d < target.dimensions.size(); ++d) {
    const topology::Dimension& dimension = target.dimensions[d];
    const auto own = std::ranges::find_if(flits, [d](const auto& one) { return one.contains(d); });
    if (own != flits.end() && own->first != d) continue;  // written with the first one
    items.push_back(
        flow_text(dimension_keys(), own != flits.end()
                                        ? entry_of(*own, target.dimensions)
                                        : DimensionEntry{.shape = {dimension.shape},
                                                         .sizes = {dimension.size},
                                                         .dimension = dimension,
                                                         .lies_on_graph = target.execution.network.graph != nullptr}));
  }
  writer.put_list(path, items);
}

void read_port_rates(const Value& value, const std::string& path, Configuration& target, Reading& reading) {
  if (value.kind != Value::Kind::mapping || value.entries.empty())
    throw Error(ErrorCode::bad_input, value.place(path), fmt::format("found {}", value.description()),
                "a mapping of names of ports to their rates, such as {nic: 400 Gb/s}");
  for (const Value::Entry& entry : value.entries)
    reading.faults.attempt(
        [&] { target.port_rates[entry.key] = as_bandwidth(entry.value, fmt::format("{}.{}", path, entry.key)); });
}

void write_port_rates(const Configuration& target, std::string_view path, Writer& writer) {
  std::vector<std::string> entries;
  for (const auto& [name, rate] : target.port_rates)
    entries.push_back(fmt::format("{}: {}", in_quotes(name), bandwidth().text(rate).value_or("")));
  if (!entries.empty()) writer.put_entries(path, std::move(entries));
}

void read_given_graph(const Value& value, const std::string& path, Configuration& target, Reading& reading) {
  WholeGraph whole = read_graph(value, path, GraphHosts::of_npus, reading.faults);
  target.execution.network.graph = std::make_shared<const network::GivenGraph>(std::move(whole.given));
  std::ranges::move(whole.notes, std::back_inserter(target.warnings));
}

void take_circuits(const Value& value, const std::string& path, Configuration& target, Reading& reading) {
  if (reading.faults.count() == 0)
    target.execution.network.circuits = read_circuits(value, path, target, reading.faults);
}

constexpr Row<Configuration> system_rows[] = {
    {"system.base", "file whose keys apply where `system` does not set them", "systems/dgx-h100-superpod.yaml",
     Default::none(), file(), replaced_before()},
    {"system.npus",
     "number of NPUs of the system, whose dimensions are filled from the first on; the last one takes the rest", "128",
     Default::described("the product of the sizes of the dimensions"), count(), replaced_before(),
     see("configuration.md, *Presets*"),
     flag("npus", Heading::model, "N", {Taker::run, Taker::check, Taker::show_topology})},
    {"system.rules",
     "rules of arithmetic",
     "astra-sim",
     Default::value("physical"),
     word<rule_sets>(),
     {[](const Value& value, const std::string& path, Configuration& target, Reading&) {
        target.follow(as_word(value, path, rule_sets()));
      },
      [](const Configuration& target, std::string_view path, Writer& writer) {
        writer.put(path, std::string(name(target.rule_set)));
      },
      [](const Configuration& a, const Configuration& b) { return a.rule_set == b.rule_set; }},
     see("model.md, 1")},
};

constexpr Row<Configuration> network_rows[] = {
    {"system.network.model",
     "how messages share links; a dimension with `flits` needs congestion-aware, which it then is "
     "by default",
     "congestion-aware", Default::built_in(), word<network_models>(),
     [](auto& c) { return &c.execution.network.model; }, see("network.md"),
     flag("network", Heading::model, "MODEL",
          {Taker::run, Taker::check, Taker::show_topology, Taker::show_collective})},
    {"system.network.switching", "when a device passes a message on, in the congestion-aware network",
     "store-and-forward", Default::described("`cut-through`; `store-and-forward` with `rules: astra-sim`"),
     word<network_switchings>(), [](auto& c) { return &c.execution.network.switching; }},
    {"system.network.packet-size",
     "size of the pieces in which links serve messages, with cut-through; `0 B`: whole messages", "4 KiB",
     Default::built_in(), size(0, "4096 B"), [](auto& c) { return &c.execution.network.packet; }},
    {"system.network.graph",
     "hosts, switches and links on which the dimensions lie, a generator of them, or a file; NPU i is host i",
     "{hosts: 2, switches: 1, links: [[0, 2, 400 Gb/s, 1 us], [1, 2, 400 Gb/s, 1 us]]}",
     Default::described("the links of the shapes"),
     ValueInfo("mapping or file", "a mapping of hosts, switches and links, or the name of a file with one", "-", "any"),
     {read_given_graph,
      [](const Configuration& target, std::string_view path, Writer& writer) {
        if (const auto& given = target.execution.network.graph) writer.put(path, graph_text(*given));
      },
      [](const Configuration& a, const Configuration& b) {
        const auto &left = a.execution.network.graph, &right = b.execution.network.graph;
        return left && right ? graph_text(*left) == graph_text(*right) : left == right;
      }},
     see("packet-network.md")},
    {"system.network.dimensions",
     "dimensions, innermost first; the number of NPUs is the product of their sizes",
     "[{shape: Ring, size: 8, bandwidth: 400 GB/s, latency: 500 ns}]",
     Default::needed(),
     ValueInfo("list", dimensions_expected, "-", "1 to 64 entries"),
     {read_dimensions, write_dimensions,
      [](const Configuration& a, const Configuration& b) {
        return a.dimensions == b.dimensions && a.execution.network.flits == b.execution.network.flits;
      }}},
    {"system.network.circuits",
     "connections of optical switches: configurations with the NPU at each position, the groups that use them, and the "
     "time "
     "of "
     "a change",
     "{switching-time: 10 us, configurations: [{name: next, stride: 1}], groups: {dp: next}}",
     Default::described("the links stay as they are"),
     ValueInfo("mapping", "a mapping of switching-time, configurations and groups", "-", "any"),
     {take_circuits,
      [](const Configuration& target, std::string_view path, Writer& writer) {
        if (const auto& circuits = target.execution.network.circuits) writer.put(path, circuits_text(*circuits));
      },
      [](const Configuration& a, const Configuration& b) {
        const auto &left = a.execution.network.circuits, &right = b.execution.network.circuits;
        return left && right ? left->options() == right->options() : left == right;
      }},
     see("network.md, *Circuits*")},
    {"system.network.ports",
     "rates of the ports that dimensions name (`dimensions.port`), in each direction of an NPU",
     "{nic: 400 Gb/s}",
     Default::described("that of the fastest dimension of a port"),
     ValueInfo("mapping to bandwidths", "a mapping of names of ports to their rates", "B/s", "1 B/s or more each"),
     {read_port_rates, write_port_rates,
      [](const Configuration& a, const Configuration& b) { return a.port_rates == b.port_rates; }},
     see("network.md, *Shared ports*")},
};

}  // namespace

const Keys<Configuration>& system_keys() {
  static const Keys<Configuration> all("system", system_rows);
  return all;
}

const Keys<Configuration>& network_keys() {
  static const Keys<Configuration> all("system.network", network_rows);
  return all;
}

namespace {

/// Returns whether a dimension leads through the port; those between the nodes of a library share one unasked.
bool leads_through(const topology::Topology& topology, std::string_view port) {
  for (std::uint32_t d = 0; d < topology.num_dimensions(); ++d)
    if (topology.dimension(d).port == port) return true;
  return false;
}

}  // namespace

void Validation::validate_network() {
  const auto& network = c_.execution.network;
  require(network.packet == Bytes(0) || network.switching == network::Switching::cut_through,
          "system.network.packet-size", "found a size, but messages are stored and forwarded whole",
          "system.network.switching: cut-through, or no packet size");
  for (const DrawnPer per : {DrawnPer::collective, DrawnPer::message})
    require(
        !network.model->simulates_links() || !c_.execution.noise.variations.has(per), "perturbation.distributions",
        fmt::format("found a distribution per {} in the congestion-aware network, where times follow from the links",
                    text_of(drawn_per(), per)),
        "distributions of compute (per machine, npu, step and node), or system.network.model: congestion-unaware");
  if (network.graph) validate_graph();
  if (network.circuits)
    for (const Contradiction& one : contradictions_of_circuits(c_)) refuse(one.key, one.found, one.expected);
  for (std::size_t d = 0; d < c_.dimensions.size(); ++d)
    require(c_.dimensions[d].routing != topology::Routing::adaptive || c_.may_choose_routes(),
            fmt::format("system.network.dimensions.{}.routing", d),
            "found adaptive, but no queue of a whole message decides over its route here",
            "minimal, or system.network.model: congestion-aware without packet-size, circuits and rules: astra-sim");
  validate_flits();
  validate_ports();
  validate_recording();
  if (network.model->sends_packets) validate_packets();
  if (network.model->simulates_links()) {
    if (!network.graph) attempt([&] { const topology::Fabric links(topology_); });
    for (const auto& [kind, files] : c_.collectives.custom.of_kind)
      for (const auto& custom : files)
        require(!custom->uses_switch(), fmt::format("system.collectives.custom.{}", collective::name(kind)),
                fmt::format("found {}, which lets the switch add up and multiply data", custom->file().string()),
                "a plan with memory or port channels, or system.network.model: congestion-unaware");
    require(!c_.run.fold, "run.fold",
            "found true with the congestion-aware network, where NPUs that are alike still meet at different links",
            "false (no --fold), or the network model congestion-unaware");
    return;
  }
  for (std::size_t d = 0; d < c_.dimensions.size(); ++d)
    if (c_.dimensions[d].shape->is_of_links_only)
      faults_.add(Error(ErrorCode::bad_input,
                        fmt::format("topology, dimension {} ({}): the congestion-unaware network does not have this "
                                    "shape; expected {}, or system.network.model: congestion-aware",
                                    d, c_.dimensions[d].shape.name(), topology::shapes_of_any_network())));
}

/// Ports are of NPUs with one link into a dimension where links are simulated, so that it is known which link is behind
/// the port.
void Validation::validate_ports() {
  for (const auto& [port, rate] : c_.port_rates)
    require(leads_through(topology_, port), fmt::format("system.network.ports.{}", port),
            fmt::format("no dimension leads through a port '{}'", port),
            "the name of a port that a dimension has (system.network.dimensions.port)");
  for (std::uint32_t d = 0; d < c_.dimensions.size(); ++d) {
    const topology::Dimension& dimension = c_.dimensions[d];
    if (dimension.port.empty()) continue;
    const std::string key = fmt::format("system.network.dimensions.{}.port", d);
    require(c_.rule_set == RuleSet::physical, key, "found a port with ASTRA-sim's rules, which know none",
            "no port, or rules: physical");
    const topology::SharedPort* const port = topology_.ports().of(d);
    if (!c_.execution.network.model->simulates_links() || port == nullptr || !port->is_contended) continue;
    const std::string_view network = name(c_.execution.network.model);
    require(
        dimension.shape->sends_over_one_link, key,
        fmt::format("found a port that dimensions share on a {} in the {} network", dimension.shape.name(), network),
        fmt::format("a {}, or system.network.model: congestion-unaware",
                    names_where<topology::ShapeType>(
                        [](const topology::ShapeType& shape) { return shape.sends_over_one_link; })));
    require(dimension.in_switch_operations == 0, key,
            fmt::format("found a port that dimensions share beside in-switch-operations in the {} network", network),
            "one of the two, or system.network.model: congestion-unaware");
  }
}

/// The delay model takes the routes of a graph for its dimensions, and messages over links take them one by one.
void Validation::validate_graph() {
  const std::string_view key = "system.network.graph";
  const auto& network = c_.execution.network;
  const bool fails_later =
      std::ranges::any_of(network.graph->failures, [](const auto& failure) { return failure.time > Time::zero(); });
  require(network.model->simulates_links() || !fails_later, key,
          fmt::format("found failures after the start in the {} network, whose links stay as they are",
                      name(network.model)),
          "failures at 0 s, or system.network.model: congestion-aware or packet");
  require(network.model->sends_packets || !fails_later || network.packet == Bytes(0), key,
          "found failures after the start beside system.network.packet-size: the pieces of a message take one route",
          "failures at 0 s, no packet-size, or system.network.model: packet");
  require(c_.perturbation.links.empty(), "perturbation.links",
          "found faults of links by dimension, but the links are those of system.network.graph",
          "system.network.graph.failures, or links of that rate");
}

/// Refuses what only a network that sends packets can record.
void Validation::validate_recording() {
  const network::PacketRecording& recording = c_.execution.network.recording;
  const bool has_packets = c_.execution.goes_over_links() && c_.execution.network.model->sends_packets;
  require(!recording.flows || has_packets, "run.record-flows", "found true without the packet network",
          "false, or system.network.model: packet");
  require(recording.queue_bins == 0 || has_packets, "run.queue-bins",
          fmt::format("found {} without the packet network", recording.queue_bins),
          "0, or system.network.model: packet");
}

}  // namespace orrery::config
