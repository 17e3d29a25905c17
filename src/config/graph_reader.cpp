#include "graph_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "keys/packets.hpp"
#include "orrery/base/error.hpp"

namespace orrery::config {
namespace {

using network::GivenGraph;
using network::PacketGraph;

constexpr std::string_view link_expected = "rows [node, node, rate, delay] such as [0, 16, 100 Gb/s, 1 us]";
constexpr std::string_view failure_expected = "rows [node, node, time] such as [8, 11, 50 us]";
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

const Words<network::GraphRoutes>& graph_routes() {
  using network::GraphRoutes;
  static const Words<GraphRoutes> words = {
      {"widest", GraphRoutes::widest, "of the ways with the fewest links those whose slowest link is the fastest"},
      {"shortest", GraphRoutes::shortest, "all ways with the fewest links, as in ns-3"}};
  return words;
}

/// Reads one graph.
class GraphReader {
 public:
  GraphReader(Section& section, Faults& faults) : section_(section), faults_(faults) {}

  GivenGraph read() {
    read_nodes();
    read_placement();
    read_links();
    read_failures();
    read_routes();
    return std::move(given_);
  }

 private:
  void read_nodes();
  void read_placement();
  void read_links();
  void read_failures();
  void read_routes();
  std::uint32_t as_node(const Value& value, const std::string& key) const;
  std::uint32_t find_link(const Value& row, const std::string& key) const;

  Section& section_;
  Faults& faults_;
  GivenGraph given_;
  std::vector<std::uint32_t> number_of_host_;  // in the graph; empty: as they are numbered in the file
};

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

/// Numbers the hosts so that host i is that of NPU i. Those without an NPU follow.
void GraphReader::read_placement() {
  const std::string path = section_.path("placement");
  const Value* const placement = section_.find("placement");
  if (placement == nullptr) return;
  faults_.attempt([&] {
    constexpr std::uint32_t unknown = ~0U;
    const std::uint32_t num_hosts = given_.graph.num_hosts();
    std::uint32_t next = 0;
    std::vector<std::uint32_t> numbers(num_hosts, unknown);
    for (const Value& item : as_list(*placement, path, placement_expected)) {
      std::uint32_t& number = numbers[as_count(item, path, 0, num_hosts == 0 ? 0 : num_hosts - 1)];
      if (number != unknown)
        throw Error(ErrorCode::bad_input, item.place(path),
                    fmt::format("found host {} again, which has NPU {}", item.text, number), "a host for each NPU");
      number = next++;
    }
    for (std::uint32_t& number : numbers)
      if (number == unknown) number = next++;
    number_of_host_ = std::move(numbers);
  });
}

void GraphReader::read_links() {
  const std::string path = section_.path("links");
  const Value* const links = section_.need("links", link_expected);
  if (links == nullptr) return;
  faults_.attempt([&] {
    for (const Value& item : as_list(*links, path, link_expected))
      faults_.attempt([&] {
        const auto& row = as_row(item, path, 4, link_expected);
        const PacketGraph::Link link{as_node(row[0], path), as_node(row[1], path), as_bit_rate(row[2], path),
                                     as_graph_time(row[3], path)};
        if (link.a == link.b)
          throw Error(ErrorCode::bad_input, item.place(path), "found a link from a node to itself", link_expected);
        if (link.rate == 0)
          throw Error(ErrorCode::bad_input, item.place(path), "found a rate below 1 b/s", link_expected);
        given_.graph.add_link(link);
      });
  });
}

void GraphReader::read_failures() {
  const std::string path = section_.path("failures");
  const Value* const failures = section_.find("failures");
  if (failures == nullptr) return;
  faults_.attempt([&] {
    if (failures->kind == Value::Kind::sequence && failures->items.empty()) return;
    for (const Value& item : as_list(*failures, path, failure_expected)) {
      const auto& row = as_row(item, path, 3, failure_expected);
      given_.failures.push_back({find_link(item, path), as_graph_time(row[2], path)});
    }
  });
  std::ranges::stable_sort(given_.failures, {}, &network::LinkFailure::time);
}

void GraphReader::read_routes() {
  if (const Value* const routes = section_.find("routes"))
    faults_.attempt([&] { given_.routes = as_word(*routes, section_.path("routes"), graph_routes()); });
}

/// Returns the number that a node of the file has in the graph.
std::uint32_t GraphReader::as_node(const Value& value, const std::string& key) const {
  const std::uint32_t count = given_.graph.num_nodes();
  const std::uint32_t node = as_count(value, key, 0, count == 0 ? 0 : count - 1);
  return node < number_of_host_.size() ? number_of_host_[node] : node;
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

network::GivenGraph read_graph(Section& section, Faults& faults) { return GraphReader(section, faults).read(); }

std::string graph_text(const network::GivenGraph& given) {
  const PacketGraph& graph = given.graph;
  std::string links, failures;
  for (const PacketGraph::Link& link : graph.links())
    links +=
        fmt::format("{}[{}, {}, {} b/s, {} ps]", links.empty() ? "" : ", ", link.a, link.b, link.rate, link.delay.ps());
  for (const network::LinkFailure& failure : given.failures) {
    const PacketGraph::Link& link = graph.links()[failure.link];
    failures += fmt::format("{}[{}, {}, {} ps]", failures.empty() ? "" : ", ", link.a, link.b, failure.time.ps());
  }
  return fmt::format("{{hosts: {}, switches: {}, links: [{}], failures: [{}], routes: {}}}", graph.num_hosts(),
                     graph.num_nodes() - graph.num_hosts(), links, failures, text_of(graph_routes(), given.routes));
}

}  // namespace orrery::config
