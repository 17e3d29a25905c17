#include "graph_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "generated_graph.hpp"
#include "keys/packets.hpp"
#include "orrery/base/error.hpp"
#include "orrery/base/text.hpp"
#include "orrery/graphfile/infragraph.hpp"
#include "orrery/graphfile/ns3_config.hpp"
#include "orrery/topology/network_graph.hpp"
#include "orrery/trace/store.hpp"
#include "route_table.hpp"

namespace orrery::config {
namespace {

using network::GivenGraph;
using network::PacketGraph;

constexpr std::string_view link_expected =
    "rows [node, node, rate, delay] such as [0, 16, 100 Gb/s, 1 us], or with a queue such as 150 kB behind the delay";
constexpr std::string_view ways_expected =
    "one value for both directions, or two: [from the first node to the second, back]";
constexpr std::string_view failure_expected =
    "rows [node, node, time] such as [8, 11, 50 us], or [node, time] for all links of a node";
constexpr std::string_view placement_expected = "a list with the host of each NPU, such as [0, 4, 1, 5]";
constexpr std::uint32_t most_nodes = 1U << 24U;

Time as_graph_time(const Value& value, const std::string& key) {
  return Time::from_ps(std::llround(as_nanoseconds(value, key) * 1000));
}

const std::vector<Value>& as_row(const Value& value, const std::string& key, std::size_t size,
                                 std::string_view expected) {
  if (value.kind == Value::Kind::sequence && value.items.size() == size) return value.items;
  throw Error(ErrorCode::bad_input, value.place(key), fmt::format("found {}", value.description()), expected);
}

/// Returns how many bytes may wait for a link: a size, or `none` if there is no limit.
std::uint64_t as_queue(const Value& value, const std::string& key) {
  const std::string text = as_text(value, key, "a size such as 150 kB, or none");
  return text == "none" ? ~std::uint64_t{0} : parse_bytes(text, value.place(key)).count();
}

/// Returns a value for both directions of a link, or a list of one for each.
std::pair<const Value&, const Value&> as_ways(const Value& value, const std::string& key) {
  if (value.kind != Value::Kind::sequence) return {value, value};
  const auto& ways = as_row(value, key, 2, ways_expected);
  return {ways[0], ways[1]};
}

/// Reads one mapping.
class GraphReader {
 public:
  GraphReader(const Value& mapping, const std::string& path, GraphHosts hosts, Faults& faults)
      : section_(&mapping, path, mapping, faults), hosts_(hosts), faults_(faults) {}

  WholeGraph read();

 private:
  void read_file(const Value& name);
  std::vector<graphfile::InfragraphFile> read_devices();
  void read_nodes();
  void read_links();
  void read_link(const Value& item, const std::string& key);
  void read_failures();
  void read_failure(const Value& item, const std::string& key);
  void read_routes();
  void read_placement();
  void read_generated();
  void order_routes();
  std::uint32_t as_node(const Value& value, const std::string& key) const;
  std::uint32_t find_link(const Value& row, const std::string& key) const;

  Section section_;
  GraphHosts hosts_;
  Faults& faults_;
  GivenGraph given_;
  std::optional<topology::GeneratedGraph> generated_;
  std::vector<std::string> notes_;
  bool may_have_devices_ = false;  // it is a description of InfraGraph
};

WholeGraph GraphReader::read() {
  if (const Value* const name = section_.find("file")) {
    faults_.attempt([&] { read_file(*name); });
  } else if (section_.find("generate") != nullptr) {
    read_generated();
  } else {
    read_nodes();
    read_links();
  }
  if (const Value* const devices = section_.find("devices"); devices != nullptr && !may_have_devices_)
    faults_.add(Error(ErrorCode::bad_input, devices->place(section_.path("devices")),
                      "found devices beside a graph that is no description of InfraGraph",
                      "the file of such a description beside it"));
  if (given_.graph.num_hosts() == 0) return {};  // which is a fault already
  read_failures();
  read_routes();
  read_placement();
  order_routes();
  section_.refuse_unknown();
  return {std::move(given_), std::move(generated_), std::move(notes_)};
}

/// Reads a file: a topology or a configuration of ns-3, a description of InfraGraph, or a mapping of this reader.
void GraphReader::read_file(const Value& name) {
  const std::string path = section_.path("file");
  const auto file = as_path(name, path);
  const std::string text = read_text(file, name.place(path));
  if (graphfile::is_ns3_graph(text)) {
    given_ = graphfile::read_ns3_graph(text, file, notes_);
    return;
  }
  refuse_other_text(file, text);
  const Value root =
      parse_yaml(text, std::make_shared<const Origin>(Origin{file.string(), file.parent_path()}), faults_);
  if (const Value* const other = root.find("file"); other != nullptr)
    throw Error(ErrorCode::bad_input, other->place("graph.file"), "found a file in the file of a graph",
                "hosts, switches and links");
  if (is_own_graph(root)) {
    WholeGraph whole = GraphReader(root, "graph", hosts_, faults_).read();
    given_ = std::move(whole.given);
    generated_ = std::move(whole.generated);
    std::ranges::move(whole.notes, std::back_inserter(notes_));
    return;
  }
  refuse_other_file(file, root);
  const topology::ComponentGraph components = graphfile::parse_infragraph(text, file.string(), read_devices());
  for (const std::string& note : components.notes) notes_.push_back(fmt::format("{}: {}", file.string(), note));
  topology::NetworkGraph network = topology::network_of(components);
  if (network.num_npus > 1 && network.links.empty())
    throw Error(ErrorCode::bad_input, {.file = file.string()},
                fmt::format("the description joins none of its {} XPUs", network.num_npus),
                "links that lead from XPU to XPU, in a host or by switches",
                "An infrastructure in another file may join several instances of a device by their NICs.");
  Section defaults = section_.section("defaults");
  topology::complete_links(network, read_link_defaults(defaults, faults_), file.string());
  defaults.refuse_unknown();
  given_ = graph_of(network);
}

/// Reads the files with further devices of a description of InfraGraph.
std::vector<graphfile::InfragraphFile> GraphReader::read_devices() {
  may_have_devices_ = true;
  std::vector<graphfile::InfragraphFile> files;
  const std::string path = section_.path("devices");
  const Value* const devices = section_.find("devices");
  if (devices == nullptr) return files;
  for (const Value& name : as_list(*devices, path, "a list of files, such as [server.yaml, switch.yaml]")) {
    const auto file = as_path(name, path);
    files.push_back({read_text(file, name.place(path)), file.string()});
  }
  return files;
}

void GraphReader::read_generated() {
  generated_ = read_generated_graph(section_, faults_);
  if (!generated_) return;
  given_ = graph_of(generated_->graph);
  given_.routes.hosts_forward = generated_->hosts_forward;
}

void GraphReader::read_nodes() {
  const Value* const hosts = section_.need("hosts", "the number of hosts, which are the first nodes");
  const Value* const switches = section_.find("switches");
  faults_.attempt([&] {
    const std::uint32_t num_hosts = hosts == nullptr ? 0 : as_count(*hosts, section_.path("hosts"), 2, most_nodes);
    const std::uint32_t num_switches =
        switches == nullptr ? 0 : as_count(*switches, section_.path("switches"), 0, most_nodes);
    for (std::uint32_t h = 0; h < num_hosts; ++h) given_.graph.add_host();
    for (std::uint32_t s = 0; s < num_switches; ++s) given_.graph.add_switch({});
  });
}

void GraphReader::read_links() {
  const std::string path = section_.path("links");
  const Value* const links = section_.need("links", link_expected);
  if (links == nullptr || given_.graph.num_nodes() == 0) return;
  faults_.attempt([&] {
    const auto& items = as_list(*links, path, link_expected);
    for (std::size_t i = 0; i < items.size(); ++i)
      faults_.attempt([&] { read_link(items[i], fmt::format("{}.{}", path, i)); });
  });
}

void GraphReader::read_link(const Value& item, const std::string& key) {
  const bool has_queue = item.kind == Value::Kind::sequence && item.items.size() == 5;
  const auto& row = as_row(item, key, has_queue ? 5 : 4, link_expected);
  const auto [rate, rate_back] = as_ways(row[2], key);
  const auto [delay, delay_back] = as_ways(row[3], key);
  PacketGraph::Way way{as_bit_rate(rate, key), as_graph_time(delay, key)};
  PacketGraph::Way back{as_bit_rate(rate_back, key), as_graph_time(delay_back, key)};
  if (has_queue) {
    const auto [queue, queue_back] = as_ways(row[4], key);
    way.queue = as_queue(queue, key);
    back.queue = as_queue(queue_back, key);
  }
  PacketGraph::Link link{as_node(row[0], key), as_node(row[1], key), way.rate, way.delay};
  link.queue = way.queue;
  if (link.a == link.b)
    throw Error(ErrorCode::bad_input, item.place(key), "found a link from a node to itself", link_expected);
  if (back != way) link.back = back;
  given_.graph.add_link(link);
}

void GraphReader::read_failures() {
  const std::string path = section_.path("failures");
  const Value* const failures = section_.find("failures");
  if (failures == nullptr) return;
  faults_.attempt([&] {
    if (failures->kind == Value::Kind::sequence && failures->items.empty()) return;
    const auto& items = as_list(*failures, path, failure_expected);
    for (std::size_t i = 0; i < items.size(); ++i)
      faults_.attempt([&] { read_failure(items[i], fmt::format("{}.{}", path, i)); });
  });
  std::ranges::stable_sort(given_.failures, {}, &network::LinkFailure::time);
}

void GraphReader::read_failure(const Value& item, const std::string& key) {
  if (item.items.size() == 2) {
    const auto& row = as_row(item, key, 2, failure_expected);
    const Time time = as_graph_time(row[1], key);
    for (const auto& port : given_.graph.ports(as_node(row[0], key))) given_.failures.push_back({port.link, time});
    return;
  }
  const auto& row = as_row(item, key, 3, failure_expected);
  given_.failures.push_back({find_link(item, key), as_graph_time(row[2], key)});
}

void GraphReader::read_routes() {
  faults_.attempt([&] {
    const Value* const routes = section_.find("routes");
    if (routes != nullptr && routes->kind == Value::Kind::mapping)
      given_.routes.table = read_route_table(*routes, section_.path("routes"), given_.graph, faults_);
    else if (routes != nullptr)
      given_.routes.paths = as_word(*routes, section_.path("routes"), graph_routes());
    if (const Value* const forwarding = section_.find("forwarding"))
      given_.routes.hosts_forward = as_bool(*forwarding, section_.path("forwarding"));
  });
}

/// Puts the rows of a table in order, and checks them.
void GraphReader::order_routes() {
  auto& table = given_.routes.table;
  if (table.empty()) return;
  const auto order = [](const network::StaticRoute& row) { return std::tuple(row.node, row.destination, row.next); };
  std::ranges::sort(table, {}, order);
  table.erase(std::ranges::unique(table).begin(), table.end());
  const std::string path = section_.path("routes");
  const Value* const routes = section_.find("routes");  // or the file of the graph has them
  faults_.attempt([&] { check_route_table(given_, routes != nullptr ? routes->place(path) : Place{.key = path}); });
}

/// Returns the graph with other numbers of its hosts.
PacketGraph renumbered(const PacketGraph& graph, const std::vector<std::uint32_t>& number_of_host) {
  const auto number_of = [&](std::uint32_t node) { return node < number_of_host.size() ? number_of_host[node] : node; };
  PacketGraph other;
  for (std::uint32_t node = 0; node < graph.num_nodes(); ++node)
    if (graph.node(node).is_host)
      other.add_host();
    else
      other.add_switch({});
  for (PacketGraph::Link link : graph.links()) {
    link.a = number_of(link.a);
    link.b = number_of(link.b);
    other.add_link(link);
  }
  return other;
}

/// Numbers the hosts so that host i is that of NPU i. Those without an NPU follow.
void GraphReader::read_placement() {
  const std::string path = section_.path("placement");
  const Value* const placement = section_.find("placement");
  if (placement == nullptr) return;
  faults_.attempt([&] {
    if (hosts_ == GraphHosts::alone)
      throw Error(ErrorCode::bad_input, placement->place(path),
                  "found a placement of NPUs, but flows are between hosts", "no placement");
    constexpr std::uint32_t unknown = ~0U;
    const std::uint32_t num_hosts = given_.graph.num_hosts();
    std::vector<std::uint32_t> numbers(num_hosts, unknown);
    std::uint32_t next = 0;
    for (const Value& item : as_list(*placement, path, placement_expected)) {
      std::uint32_t& number = numbers[as_count(item, path, 0, num_hosts - 1)];
      if (number != unknown)
        throw Error(ErrorCode::bad_input, item.place(path),
                    fmt::format("found host {} again, which has NPU {}", item.text, number), "a host for each NPU");
      number = next++;
    }
    given_.num_placed = next;
    for (std::uint32_t& number : numbers)
      if (number == unknown) number = next++;
    given_.graph = renumbered(given_.graph, numbers);
    for (network::StaticRoute& row : given_.routes.table)
      for (std::uint32_t* const node : {&row.node, &row.destination, &row.next})
        if (*node < numbers.size()) *node = numbers[*node];
  });
}

/// Returns the number of a node.
std::uint32_t GraphReader::as_node(const Value& value, const std::string& key) const {
  return as_count(value, key, 0, given_.graph.num_nodes() - 1);
}

/// Returns the link between the two nodes of a row. There must be one.
std::uint32_t GraphReader::find_link(const Value& row, const std::string& key) const {
  const std::uint32_t a = as_node(row.items[0], key), b = as_node(row.items[1], key);
  for (const auto& port : given_.graph.ports(a))
    if (port.peer == b) return port.link;
  throw Error(ErrorCode::bad_input, row.place(key),
              fmt::format("found nodes {} and {}, which no link joins", row.items[0].text, row.items[1].text),
              failure_expected);
}

}  // namespace

const Words<network::GraphRoutes>& graph_routes() {
  using network::GraphRoutes;
  static const Words<GraphRoutes> words = {
      {"widest", GraphRoutes::widest, "of the shortest paths those whose slowest link is the fastest"},
      {"shortest", GraphRoutes::shortest, "all shortest paths, as in ns-3"}};
  return words;
}

namespace {

void refuse_if_known(const std::filesystem::path& file) {
  const auto other = trace::describe_other(file);
  if (!other) return;
  throw Error(ErrorCode::bad_input, {.file = file.string()}, fmt::format("the file is {}", *other),
              "a mapping of hosts, switches and links, a topology of ns-3, or a description of InfraGraph");
}

}  // namespace

void refuse_other_text(const std::filesystem::path& file, std::string_view text) {
  text = trimmed(text, " \t\r\n");
  while (text.starts_with('#') || text.starts_with(';'))  // comments
    text = trimmed(text.substr(std::min(text.find('\n'), text.size())), " \t\r\n");
  const bool may_be_mapping = text.empty() || std::string_view("<[0123456789").find(text.front()) == text.npos;
  if (!may_be_mapping || text.starts_with("Nodes ")) refuse_if_known(file);
}

void refuse_other_file(const std::filesystem::path& file, const Value& root) {
  constexpr std::string_view of_infragraph[] = {"infrastructure", "device", "devices", "instances", "components"};
  const auto has = [&](std::string_view key) { return root.find(key) != nullptr; };
  if (root.kind != Value::Kind::mapping || std::ranges::none_of(of_infragraph, has)) refuse_if_known(file);
}

bool is_own_graph(const Value& root) { return root.find("hosts") != nullptr || root.find("generate") != nullptr; }

GivenGraph graph_of(const topology::NetworkGraph& network) {
  GivenGraph given;
  for (std::uint32_t node = 0; node < network.nodes.size(); ++node)
    if (node < network.num_npus)
      given.graph.add_host();
    else
      given.graph.add_switch({});
  for (const auto& link : network.links) {
    const auto& kind = network.kinds[link.kind];
    given.graph.add_link({link.a, link.b, static_cast<std::uint64_t>(std::llround(*kind.bytes_per_ns * 8e9)),
                          Time::from_ps(std::llround(*kind.latency_ns * 1000))});
    if (std::max(link.a, link.b) < network.num_npus) given.routes.hosts_forward = true;
  }
  return given;
}

WholeGraph read_graph(const Value& value, const std::string& path, GraphHosts hosts, Faults& faults) {
  if (value.kind != Value::Kind::scalar) return GraphReader(value, path, hosts, faults).read();
  Value mapping;
  mapping.kind = Value::Kind::mapping;
  mapping.line = value.line;
  mapping.origin = value.origin;
  mapping.entries.push_back({"file", value.line, value});
  return GraphReader(mapping, path, hosts, faults).read();
}

}  // namespace orrery::config
