#include "orrery/network/packet_router.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include <fmt/format.h>

#include "orrery/base/error.hpp"

namespace orrery::network {
namespace {

/// MurmurHash3 of three words, 32 bits (Appleby, public domain), without a tail.
std::uint32_t murmur3(const std::uint32_t (&words)[3], std::uint32_t seed) {
  std::uint32_t hash = seed;
  for (std::uint32_t word : words) {
    word = std::rotl(word * 0xcc9e2d51U, 15) * 0x1b873593U;
    hash = std::rotl(hash ^ word, 13) * 5 + 0xe6546b64U;
  }
  hash ^= 12U;
  hash = (hash ^ (hash >> 16U)) * 0x85ebca6bU;
  hash = (hash ^ (hash >> 13U)) * 0xc2b2ae35U;
  return hash ^ (hash >> 16U);
}

/// Returns the address of a node in 11.0.0.0/8, which ASTRA-sim's ns-3 gives it.
std::uint32_t address(std::uint32_t node) { return 0x0b000001U + ((node / 256) << 16U) + ((node % 256) << 8U); }

constexpr std::uint64_t most_entries = std::uint64_t{1} << 28U;

void require_size(const PacketGraph& graph) {
  const std::uint64_t entries = std::uint64_t{graph.num_nodes()} * graph.num_hosts();
  if (entries > most_entries)
    throw Error(ErrorCode::bad_input,
                fmt::format("the packet network has {} nodes and {} hosts; expected at most 2^28 pairs of them: each "
                            "node has a table of all hosts",
                            graph.num_nodes(), graph.num_hosts()));
}

}  // namespace

PacketRouter::PacketRouter(const PacketGraph& graph, std::span<const LinkFailure> failures, const RouteRules& rules)
    : graph_(graph), rules_(rules) {
  require_size(graph);
  std::vector<bool> is_down(graph.links().size());
  std::size_t next = 0;
  for (; next < failures.size() && failures[next].time == Time::zero(); ++next) is_down[failures[next].link] = true;
  add_tables(Time::zero(), is_down);
  while (next < failures.size()) {
    const Time time = failures[next].time;
    for (; next < failures.size() && failures[next].time == time; ++next) is_down[failures[next].link] = true;
    add_tables(time, is_down);
  }
}

PacketRouter::PacketRouter(const PacketGraph& graph,
                           const std::function<std::uint16_t(std::uint32_t, std::uint32_t)>& port_of)
    : graph_(graph) {
  require_size(graph);
  Tables& tables = tables_.emplace_back();
  Known known;
  tables.choice.resize(std::size_t{graph.num_nodes()} * graph.num_hosts());
  number_of({}, tables, known);
  for (std::uint32_t node = 0; node < graph.num_nodes(); ++node)
    for (std::uint32_t host = 0; host < graph.num_hosts(); ++host)
      if (const std::uint16_t port = port_of(node, host); port != no_way)
        tables.choice[std::size_t{node} * graph.num_hosts() + host] = number_of({port}, tables, known);
}

void PacketRouter::add_tables(Time since, const std::vector<bool>& is_down) {
  Tables& tables = tables_.emplace_back();
  tables.since = since;
  tables.choice.resize(std::size_t{graph_.num_nodes()} * graph_.num_hosts());
  Known known;
  number_of({}, tables, known);
  if (!rules_.table.empty()) return add_given_routes(is_down, tables, known);
  for (std::uint32_t host = 0; host < graph_.num_hosts(); ++host) add_routes_to(host, is_down, tables, known);
}

/// Takes the links that work to the neighbours of the table, ascending in their numbers.
void PacketRouter::add_given_routes(const std::vector<bool>& is_down, Tables& tables, Known& known) const {
  const auto& table = rules_.table;
  for (std::size_t row = 0; row < table.size();) {
    const auto [node, destination, unused] = table[row];
    std::vector<std::pair<std::uint32_t, std::uint16_t>> hops;
    for (; row < table.size() && table[row].node == node && table[row].destination == destination; ++row)
      for (std::uint16_t p = 0; p < graph_.ports(node).size(); ++p)
        if (const auto& port = graph_.ports(node)[p]; port.peer == table[row].next && !is_down[port.link])
          hops.emplace_back(port.peer, p);
    std::ranges::sort(hops);
    std::vector<std::uint16_t> list;
    for (const auto& [peer, p] : hops) list.push_back(p);
    tables.choice[std::size_t{node} * graph_.num_hosts() + graph_.host_number(destination)] =
        number_of(list, tables, known);
  }
}

/// Finds the distance of all nodes from a host, and for each node the ports that lead nearer to it, ascending in the
/// number of the neighbour.
void PacketRouter::add_routes_to(std::uint32_t host, const std::vector<bool>& is_down, Tables& tables,
                                 Known& known) const {
  constexpr std::uint32_t unknown = ~0U;
  const std::uint32_t destination = graph_.host(host);
  std::vector<std::uint32_t> distance(graph_.num_nodes(), unknown), reached{destination};
  distance[destination] = 0;
  for (std::size_t i = 0; i < reached.size(); ++i) {
    const std::uint32_t node = reached[i];
    if (graph_.node(node).is_host && node != destination && !rules_.hosts_forward) continue;
    for (const auto& port : graph_.ports(node)) {
      if (is_down[port.link] || distance[port.peer] != unknown) continue;
      distance[port.peer] = distance[node] + 1;
      reached.push_back(port.peer);
    }
  }
  std::vector<std::uint64_t> width(graph_.num_nodes(), 0);  // rate of the slowest link of the widest path
  width[destination] = ~std::uint64_t{0};
  std::vector<std::pair<std::uint32_t, std::uint16_t>> nearer;
  for (const std::uint32_t node : reached) {
    nearer.clear();
    const auto ports = graph_.ports(node);
    for (std::uint16_t p = 0; p < ports.size(); ++p) {
      const std::uint32_t peer = ports[p].peer;
      if (is_down[ports[p].link] || distance[peer] == unknown || distance[peer] + 1 != distance[node]) continue;
      if (graph_.node(peer).is_host && peer != destination && !rules_.hosts_forward) continue;
      const std::uint64_t rate = std::min(width[peer], graph_.way_of(ports[p]).rate);
      if (rules_.paths == GraphRoutes::widest && rate < width[node]) continue;
      if (rules_.paths == GraphRoutes::widest && rate > width[node]) nearer.clear();
      width[node] = std::max(width[node], rate);
      nearer.emplace_back(peer, p);
    }
    std::ranges::sort(nearer);
    std::vector<std::uint16_t> list;
    for (const auto& [peer, p] : nearer) list.push_back(p);
    tables.choice[std::size_t{node} * graph_.num_hosts() + host] = number_of(list, tables, known);
  }
}

/// Returns the number of a list of ports, which many destinations share.
std::uint16_t PacketRouter::number_of(const std::vector<std::uint16_t>& ports, Tables& tables, Known& known) {
  const auto [found, is_new] = known.try_emplace(ports, static_cast<std::uint16_t>(tables.choices.size()));
  if (is_new) {
    ensure(tables.choices.size() < no_way, "a packet network has too many different sets of next hops");
    tables.choices.push_back(ports);
  }
  return found->second;
}

std::span<const std::uint16_t> PacketRouter::ports(std::uint32_t node, std::uint32_t destination, Time now) const {
  const Tables* tables = &tables_.back();
  while (tables->since > now) --tables;
  const std::size_t entry = std::size_t{node} * graph_.num_hosts() + graph_.host_number(destination);
  return tables->choices[tables->choice[entry]];
}

std::uint32_t PacketRouter::hash(std::uint32_t node, const FlowKey& key) {
  const std::uint32_t words[3] = {address(key.source), address(key.destination), key.ports};
  return murmur3(words, node);
}

std::uint16_t PacketRouter::port(std::uint32_t node, const FlowKey& key, Time now) const {
  const auto choice = ports(node, key.destination, now);
  if (choice.size() == 1) return choice[0];
  if (choice.empty()) return no_way;
  return choice[hash(node, key) % choice.size()];
}

Error unreachable(NpuId from, NpuId to, Time time) {
  return Error(ErrorCode::bad_input,
               fmt::format("NPU {} sends a message to NPU {}, and no working links lead there at {} ps; expected a way "
                           "between NPUs that talk to each other. Other NPUs forward only with forwarding: true.",
                           from.value(), to.value(), time.ps()));
}

}  // namespace orrery::network
