#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "orrery/base/text.hpp"
#include "orrery/network/packet_graph.hpp"
#include "packets.hpp"
#include "validation.hpp"

namespace orrery::config {
namespace {

using network::PacketRules;

/// Returns the names of the controls of a transport; the default control if it has none of its own.
std::vector<std::string_view> controls_of(network::TransportName transport) {
  std::vector<std::string_view> names;
  for (const auto control : network::ControlName::all())
    if (control->transport == transport.name() || (transport->has_connections && control->make_tcp != nullptr))
      names.push_back(control.name());
  if (names.empty()) names.push_back(network::ControlName().name());
  return names;
}

/// Finds a discipline that the transport cannot have, and a queue that is too short.
std::optional<Contradiction> contradiction_of_queues(const PacketRules& rules) {
  const network::DisciplineName queues = rules.queues();
  const std::string key = "system.network.packets.discipline";
  const bool is_of_transport = queues.name() == rules.transport->discipline;
  const auto found = [&](std::string_view what) { return fmt::format("found {} {}", queues.name(), what); };
  if (!is_of_transport && (rules.transport->has_own_queues || queues->make == nullptr))
    return Contradiction{key, found(fmt::format("with transport: {}", rules.transport.name())),
                         fmt::format("no discipline, or another transport")};
  if (!queues->has_queues || rules.transport->has_own_queues) return {};
  if (rules.uses_credits)
    return Contradiction{"system.network.packets.flow-control",
                         fmt::format("found credits with discipline: {}, whose switches drop packets", queues.name()),
                         "no flow-control, or discipline: shared-buffer"};
  if (!rules.transport->has_connections && rules.loss == network::PacketLoss::go_back_n)
    return Contradiction{key, found("with loss: go-back-n, which repairs no loss of a last packet"),
                         "loss: selective, or discipline: shared-buffer"};
  const std::uint64_t least = 2 * rules.with_sizes().full_packet();
  if (rules.queue_limit() < least)
    return Contradiction{"system.network.packets.queue", fmt::format("found {} B", rules.queue_limit()),
                         fmt::format("at least {} B, two full packets", least)};
  if (queues.name() == "red" && rules.marks.empty())
    return Contradiction{key, found("without marks, so that it would be drop-tail"),
                         "marks such as [[any, 66 kB, 66 kB, 1]], or discipline: drop-tail"};
  return {};
}

/// Finds what TCP does not have.
std::optional<Contradiction> contradiction_of_tcp(const PacketRules& rules) {
  const network::TcpRules& tcp = rules.tcp;
  const auto key = [](std::string_view name) { return fmt::format("system.network.packets.{}", name); };
  if (rules.uses_credits)
    return Contradiction{key("flow-control"), "found credits with transport: tcp", "pauses or none"};
  if (rules.chooses_hops())
    return Contradiction{key("routing"),
                         fmt::format("found {} with transport: tcp, whose connections keep one path",
                                     text_of(routings(), rules.routing)),
                         "routing: flow-hash"};
  if (rules.completion != network::PacketCompletion::last_byte)
    return Contradiction{key("completion"), "found acknowledged with transport: tcp", "last-byte"};
  if (tcp.mss > network::TcpRules::most_mss)
    return Contradiction{key("tcp.mss"), fmt::format("found {} B", tcp.mss),
                         fmt::format("at most {} B", network::TcpRules::most_mss)};
  if (tcp.least_buffer > tcp.most_buffer)
    return Contradiction{key("tcp.receive-buffer"),
                         fmt::format("found least {} B above most {} B", tcp.least_buffer, tcp.most_buffer),
                         "a least size that is not above the most"};
  if (tcp.least_buffer < 2 * std::uint64_t{tcp.mss})
    return Contradiction{key("tcp.receive-buffer"), fmt::format("found {} B", tcp.least_buffer),
                         fmt::format("at least {} B, two full segments", 2 * std::uint64_t{tcp.mss})};
  if (tcp.most_buffer > network::TcpRules::most_window)
    return Contradiction{key("tcp.receive-buffer"), fmt::format("found {} B", tcp.most_buffer),
                         fmt::format("at most {} B", network::TcpRules::most_window)};
  std::uint32_t shift = 0;  // bits that windows, which have 16, leave out
  while (tcp.most_buffer >> shift > 65'535) ++shift;
  if (tcp.least_buffer >> shift << shift < tcp.mss)
    return Contradiction{key("tcp.receive-buffer"),
                         fmt::format("found least {} B, of which windows in units of {} B leave less than a segment",
                                     tcp.least_buffer, std::uint64_t{1} << shift),
                         "a larger least size, or a smaller most"};
  if (tcp.header > 65'535)
    return Contradiction{key("tcp.header"), fmt::format("found {} B", tcp.header), "at most 65535 B"};
  if (tcp.ack_segments == 0) return Contradiction{key("tcp.delayed-ack.segments"), "found 0", "at least 1"};
  if (tcp.min_rto == Time::zero() || tcp.syn_timeout == Time::zero())
    return Contradiction{key(tcp.min_rto == Time::zero() ? "tcp.min-rto" : "tcp.syn-timeout"), "found 0 s",
                         "more than 0 s"};
  return {};
}

std::optional<Contradiction> contradiction_of_transport(const PacketRules& rules) {
  const auto controls = controls_of(rules.transport);
  if (std::ranges::find(controls, rules.control.name()) == controls.end())
    return Contradiction{
        "system.network.packets.control",
        fmt::format("found {} with transport {}", rules.control.name(), rules.transport.name()),
        fmt::format("{}, or another transport; presets such as uec and tcp-linux set both", fmt::join(controls, ", "))};
  if (auto of_queues = contradiction_of_queues(rules)) return of_queues;
  if (rules.transport->has_connections)
    if (auto of_tcp = contradiction_of_tcp(rules)) return of_tcp;
  if (rules.control->needs_marks && !rules.queues()->marks)
    return Contradiction{"system.network.packets.control",
                         fmt::format("found {} with discipline: {}, which marks no packets", rules.control.name(),
                                     rules.queues().name()),
                         "discipline: red, or another control"};
  if (rules.control->needs_marks && rules.marks.empty())
    return Contradiction{"system.network.packets.control",
                         fmt::format("found {} without marks, by which alone its rates change", rules.control.name()),
                         "marks, or another control"};
  if (rules.control->uses_telemetry && rules.window.kind == network::PacketWindow::Kind::none)
    return Contradiction{"system.network.packets.window",
                         fmt::format("found none with control: {}, which changes windows", rules.control.name()),
                         "path, largest or a size, or another control"};
  if (rules.control.name() == "dcqcn")
    for (const auto& [key, interval] : {std::pair("alpha-interval", rules.parameters.alpha_interval),
                                        std::pair("decrease-interval", rules.parameters.decrease_interval),
                                        std::pair("increase-interval", rules.parameters.increase_interval)})
      if (interval == Time::zero())
        return Contradiction{fmt::format("system.network.packets.{}", key), "found 0 s between updates of the rate",
                             "more than 0 s"};
  if (rules.transport.name() != "uec") return {};
  if (rules.uses_credits)
    return Contradiction{"system.network.packets.flow-control",
                         "found credits with transport: uec, whose switches trim or drop packets",
                         "no flow-control, or transport: roce"};
  if (rules.queue && *rules.queue < rules.full_packet())
    return Contradiction{"system.network.packets.queue", fmt::format("found {} B", *rules.queue),
                         fmt::format("at least {} B, a full packet", rules.full_packet())};
  if (rules.chooses_hops())
    return Contradiction{
        "system.network.packets.routing",
        fmt::format("found {} with transport: uec, whose hosts choose paths", text_of(routings(), rules.routing)),
        "spraying in place of routing, or transport: roce"};
  return {};
}

std::optional<Contradiction> contradiction_of_routing(const PacketRules& rules, bool has_graph) {
  if (!rules.chooses_hops()) return {};
  const std::string key = "system.network.packets.routing";
  const std::string_view routing = text_of(routings(), rules.routing);
  const auto found = [&](std::string_view what) { return fmt::format("found {} {}", routing, what); };
  if (rules.spreads_flows() && rules.loss == network::PacketLoss::go_back_n)
    return Contradiction{key, found("with loss: go-back-n, where a receiver drops packets that overtake others"),
                         "loss: selective, or routing: flow-hash"};
  if (rules.spreads_flows() && rules.control->uses_telemetry)
    return Contradiction{key,
                         found(fmt::format("with control: {}, which compares what one packet after the other tells of "
                                           "the links of one path",
                                           name(rules.control))),
                         "another control, or routing: flow-hash"};
  if (!has_graph)
    return Contradiction{key, found("on the links of shapes, which have one route for each pair of NPUs"),
                         "system.network.graph, or routing: flow-hash"};
  return {};
}

/// Finds a key that has no effect beside the others.
std::optional<Contradiction> idle_key(const PacketRules& rules) {
  const PacketRules none;
  const bool is_uec = rules.transport.name() == "uec", is_tcp = rules.transport->has_connections;
  struct Condition {
    std::string_view key, needs;
    bool is_idle;
  };
  const Condition conditions[] = {
      {"spraying", "transport: uec", !is_uec && rules.spraying != none.spraying},
      {"trimming", "transport: uec", !is_uec && rules.trimming != none.trimming},
      {"queue", "a discipline with queues (drop-tail, red, trimming)", !rules.queues()->has_queues && rules.queue},
      {"ewma", "discipline: red", rules.queues().name() != "red" && rules.mean_weight != none.mean_weight},
      {"tcp", "transport: tcp", !is_tcp && rules.tcp != none.tcp},
      {"loss", "transport: roce", (is_uec || is_tcp) && rules.loss != none.loss},
      {"retransmission-timeout", "transport: roce", (is_uec || is_tcp) && rules.timeout},
      {"credits", "flow-control: credits", !rules.uses_credits && rules.credits},
      {"virtual-channels", "flow-control: credits",
       !rules.uses_credits && rules.virtual_channels != none.virtual_channels}};
  for (const Condition& condition : conditions)
    if (condition.is_idle)
      return Contradiction{fmt::format("system.network.packets.{}", condition.key),
                           fmt::format("found it without {}, where it has no effect", condition.needs),
                           fmt::format("{}, or the default", condition.needs)};
  return {};
}

/// A direction of a link, as far as congestion controls depend on it.
struct Port {
  std::uint64_t rate = 0;  // bits per second
  double latency_ns = 0;
  bool is_of_switch = false;

  friend auto operator<=>(const Port&, const Port&) = default;
};

/// Returns the different ports.
std::set<Port> ports_of(const network::PacketGraph& graph) {
  std::set<Port> ports;
  for (const network::PacketGraph::Link& link : graph.links())
    for (const auto& [from, to] : {std::pair(link.a, link.b), std::pair(link.b, link.a)}) {
      const network::PacketGraph::Way& way = link.way_to(to);
      ports.insert({way.rate, static_cast<double>(way.delay.ps()) / 1000, !graph.node(from).is_host});
    }
  return ports;
}

std::set<Port> ports_of(const Configuration& configuration) {
  if (const auto& given = configuration.execution.network.graph) return ports_of(given->graph);
  std::set<Port> ports;
  const topology::Topology topology = configuration.topology();
  for (std::uint32_t d = 0; d < topology.num_dimensions(); ++d) {
    const topology::Dimension& dimension = topology.dimension(d);
    if (dimension.size > 1)
      ports.insert({static_cast<std::uint64_t>(std::llround(dimension.bandwidth_of_links().bytes_per_ns() * 8e9)),
                    dimension.latency_ns, !topology.wiring(d).switch_tiers().empty()});
  }
  return ports;
}

bool acts_by_marks(const PacketRules& rules) { return rules.control->needs_marks && !rules.transport->has_own_queues; }

std::string as_rate(std::uint64_t rate) { return fmt::format("{:.6g} Gb/s", static_cast<double>(rate) / 1e9); }

/// Finds ports of switches that mark no packets although the control acts by marks.
std::optional<std::string> warning_of_marks(const std::set<Port>& ports, const PacketRules& rules) {
  std::vector<std::string> without;
  for (const Port& port : ports)
    if (port.is_of_switch && rules.marks_at(port.rate) == nullptr &&
        (without.empty() || without.back() != as_rate(port.rate)))
      without.push_back(as_rate(port.rate));
  if (without.empty()) return {};
  return fmt::format(
      "switches mark no packets at ports of {}, so that {} does not slow flows that meet there: give thresholds of "
      "this rate in system.network.packets.marks",
      fmt::join(without, ", "), rules.control.name());
}

/// Finds a port over which a packet and its acknowledgement always take longer than the control allows.
std::optional<std::string> warning_of_delays(const std::set<Port>& ports, const PacketRules& rules) {
  const double most = rules.control->most_round_trip_ns;
  const auto packet = static_cast<double>(rules.with_sizes().full_packet());
  const auto round_trip = [&](const Port& port) {
    return packet * 8e9 / static_cast<double>(port.rate) + 2 * port.latency_ns;
  };
  const auto slowest = std::ranges::max_element(ports, {}, round_trip);
  if (slowest == ports.end() || round_trip(*slowest) <= most) return {};
  return fmt::format(
      "{0} slows flows whose round trips take more than {1:.0f} us, and over a link of {2} and {3:.6g} us one packet "
      "takes {4:.6g} us: a flow that is alone does not reach the rate of the link. Take another "
      "system.network.packets.control",
      rules.control.name(), most / 1000, as_rate(slowest->rate), slowest->latency_ns / 1000,
      round_trip(*slowest) / 1000);
}

std::optional<std::string> warning_of_control(const std::set<Port>& ports, const PacketRules& rules) {
  if (acts_by_marks(rules)) return warning_of_marks(ports, rules);
  if (rules.control->most_round_trip_ns > 0) return warning_of_delays(ports, rules);
  return {};
}

}  // namespace

std::optional<std::string> warning_of_control(const Configuration& configuration) {
  const network::Options& network = configuration.execution.network;
  if (!network.model->sends_packets) return {};
  return warning_of_control(ports_of(configuration), network.packets);
}

std::optional<std::string> warning_of_control(const network::PacketGraph& graph, const PacketRules& rules) {
  return warning_of_control(ports_of(graph), rules);
}

std::optional<Contradiction> contradiction_of(const PacketRules& rules, bool has_graph) {
  if (!rules.has_enough_credits())
    return Contradiction{"system.network.packets.credits", fmt::format("found {} B", *rules.credits),
                         fmt::format("at least {} B, the largest packet", rules.largest_packet())};
  if (auto of_transport = contradiction_of_transport(rules)) return of_transport;
  if (auto of_routing = contradiction_of_routing(rules, has_graph)) return of_routing;
  return idle_key(rules);
}

std::optional<Contradiction> contradiction_of_links(const network::PacketGraph& graph, const PacketRules& rules) {
  const bool has_queues = rules.queues()->has_queues && !rules.transport->has_own_queues;
  const std::uint64_t least = rules.with_sizes().full_packet();
  for (const network::PacketGraph::Link& link : graph.links())
    for (const std::uint32_t node : {link.a, link.b}) {
      const auto& queue = link.way_to(node).queue;
      if (!queue) continue;
      const std::string found = fmt::format("found a queue of {} B for the link from node {} to node {}", *queue,
                                            node == link.a ? link.b : link.a, node);
      if (!has_queues)
        return Contradiction{
            "system.network.graph",
            fmt::format("{} with discipline: {}, where it has no effect", found, rules.queues().name()),
            "rows of four values, or discipline: drop-tail or red"};
      if (*queue < least)
        return Contradiction{"system.network.graph", found, fmt::format("at least {} B, a full packet", least)};
    }
  return {};
}

std::optional<Contradiction> contradiction_of_reduction(const PacketRules& rules) {
  constexpr std::string_view expected = "transport: roce with flow-control: pauses, or no reduction in switches";
  if (rules.transport.name() != "roce")
    return Contradiction{
        "system.network.packets.transport",
        fmt::format("found {} with reduction in switches, whose packets nobody sends again", rules.transport.name()),
        std::string(expected)};
  if (!rules.queues()->shares_buffers)
    return Contradiction{
        "system.network.packets.discipline",
        fmt::format("found {} with reduction in switches, whose packets nobody sends again", rules.queues().name()),
        "shared-buffer, or no reduction in switches"};
  if (!rules.can_reduce())
    return Contradiction{"system.network.packets.flow-control",
                         fmt::format("found {} with reduction in switches, which PFC pauses protect from losses",
                                     rules.uses_credits ? "credits" : "none"),
                         std::string(expected)};
  return {};
}

/// Switches that carry out operations of collectives need a network without losses.
void Validation::validate_reduction() {
  const collective::Options& collectives = c_.collectives;
  if (!collectives.uses_switch_operations()) return;
  if (const auto found = contradiction_of_reduction(c_.execution.network.packets))
    refuse(found->key, found->found, found->expected);
}

/// Links without two equal directions are not there.
void Validation::validate_packets() {
  require(c_.execution.network.switching == network::Switching::store_and_forward, "system.network.switching",
          "found cut-through in the packet network, where packets are stored and forwarded", "store-and-forward");
  require(c_.rule_set == RuleSet::physical, "system.rules",
          "found astra-sim in the packet network, whose times are in ps",
          "physical; system.network.packets.preset: astra-sim-ns3 has the rules of ASTRA-sim's ns-3");
  if (const auto rules = contradiction_of(c_.execution.network.packets, c_.execution.network.graph != nullptr))
    refuse(rules->key, rules->found, rules->expected);
  if (const auto& given = c_.execution.network.graph)
    if (const auto links = contradiction_of_links(given->graph, c_.execution.network.packets))
      refuse(links->key, links->found, links->expected);
  validate_reduction();
  for (std::size_t d = 0; d < c_.dimensions.size(); ++d) {
    const auto& dimension = c_.dimensions[d];
    const auto refuse = [&](std::string_view found, std::string_view expected) {
      faults_.add(
          Error(ErrorCode::bad_input, fmt::format("topology, dimension {} ({}): found {} in the packet network; "
                                                  "expected {}",
                                                  d, dimension.shape.name(), found, expected)));
    };
    if (dimension.oversubscription > 1 && topology_.wiring(static_cast<std::uint32_t>(d)).core_bandwidth() > 0)
      refuse("an oversubscribed switch", "oversubscription 1, or a FatTree");
  }
}

}  // namespace orrery::config
