#include "orrery/network/flow_run.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "flow_model.hpp"
#include "orrery/base/error.hpp"
#include "orrery/pdes/kernel.hpp"
#include "ports/switch_buffers.hpp"
#include "relay_delays.hpp"
#include "scheduling_order.hpp"

namespace orrery::network {
namespace {

/// Finds switches without room for a packet, flows that wait for flows which do not end at their source, and flows
/// without a way.
void check(const FlowScenario& scenario, const PacketRouter& router) {
  if (scenario.rules.keeps_buffers()) SwitchBuffers(scenario.graph, scenario.rules).require_room();
  for (std::size_t i = 0; i < scenario.flows.size(); ++i) {
    const FlowSpec& flow = scenario.flows[i];
    const Place place{.file = scenario.file, .key = fmt::format("workload.flows.{}", i)};
    const PacketRouter::FlowKey key{flow.source, flow.destination, flow.ports};
    if (follow_path(scenario.graph, router, key, scenario.rules.payload).least_rate == 0)
      throw Error(ErrorCode::bad_input, place,
                  fmt::format("no working links lead from node {} to node {}", flow.source, flow.destination),
                  "a way for it", "Add links, or leave the flow out.");
    for (const std::uint32_t before : flow.after)
      if (scenario.flows[before].destination != flow.source)
        throw Error(ErrorCode::bad_input, place,
                    fmt::format("this flow from node {} waits for flow {}, which ends at node {}", flow.source, before,
                                scenario.flows[before].destination),
                    "a flow that ends where this one begins");
  }
}

/// Throws Error (stuck) if packets wait for credits for ever. Collective.
void require_no_circle(const FlowModel& model, parallel::Communicator& world) {
  const std::vector<CreditWait> waits = model.devices().credit_waits();
  const auto all = world.all_gather(std::span<const CreditWait>(waits));
  world.agree([&] {
    const std::string text = describe_credit_waits(all, [](std::int64_t node) { return fmt::format("node {}", node); });
    if (world.is_root() && !text.empty()) throw Error(ErrorCode::stuck, "the simulated system is stuck: " + text);
  });
}

/// Takes the times of reductions of all ranks together. Collective.
std::vector<ReductionTimes> gather_reductions(const FlowModel& model, parallel::Communicator& world) {
  // The least of the first times counts. A rank may know none, which is greater than all others.
  const auto negative = [](Time time) { return -(time == FlowTimes::never ? Time::max() : time).ps(); };
  const auto positive = [](std::int64_t ps) { return -ps == Time::max().ps() ? FlowTimes::never : Time::from_ps(-ps); };
  std::vector<std::int64_t> times;
  for (const ReductionTimes& mine : model.reductions())
    times.insert(times.end(), {negative(mine.start), negative(mine.first_end), mine.end.ps()});
  if (!times.empty()) world.maximum(times);
  std::vector<ReductionTimes> all;
  for (std::size_t i = 0; i < times.size(); i += 3)
    all.push_back({positive(times[i]), positive(times[i + 1]), Time::from_ps(times[i + 2])});
  return all;
}

/// Takes the times and ports of all ranks together. Collective.
FlowResults gather(const FlowScenario& scenario, const PacketRouter& router, const FlowModel& model,
                   parallel::Communicator& world) {
  std::vector<std::int64_t> times;
  for (const FlowTimes& flow : model.times())
    times.insert(times.end(), {flow.start.ps(), flow.received.ps(), flow.acknowledged.ps()});
  if (!times.empty()) world.maximum(times);
  FlowResults results;
  for (std::size_t i = 0; i < times.size(); i += 3)
    results.flows.push_back({Time::from_ps(times[i]), Time::from_ps(times[i + 1]), Time::from_ps(times[i + 2]), {}});
  for (std::size_t i = 0; i < results.flows.size(); ++i) {
    const FlowSpec& flow = scenario.flows[i];
    FlowTimes& its = results.flows[i];
    if (its.start == FlowTimes::never) continue;
    its.alone = time_alone(scenario.graph, router, scenario.rules, {flow.source, flow.destination, flow.ports},
                           flow.bytes, its.start);
  }
  results.reductions = gather_reductions(model, world);
  std::vector<PortRecord> ports;
  model.devices().for_each_port([&](const Port& port) {
    const PortStatistics& done = port.done;
    ports.push_back({port.node, port.peer.node, done.packets, done.bytes, done.busy, done.marks, done.drops,
                     done.pauses, done.deepest_queue, done.trims, done.credit_wait});
  });
  results.ports = world.all_gather(std::span<const PortRecord>(ports));
  std::ranges::stable_sort(results.ports, {}, &PortRecord::node);
  PacketRecords mine;
  const auto before = ports_before(scenario.graph);
  model.devices().collect([&](const Port& port) { return before[port.node] + port.number; }, mine);
  results.records.links = world.gather(std::span<const FlowLinkRecord>(mine.links), Rank(0));
  results.records.queues = world.gather(std::span<const QueueRecord>(mine.queues), Rank(0));
  results.records.pauses = world.gather(std::span<const PauseRecord>(mine.pauses), Rank(0));
  results.records.connections = world.gather(std::span<const ConnectionRecord>(mine.connections), Rank(0));
  results.records.reductions = world.gather(std::span<const ReductionRecord>(mine.reductions), Rank(0));
  std::ranges::sort(results.records.reductions, {}, &ReductionRecord::node);
  put_in_order(results.records);
  ensure(scenario.flows.size() == results.flows.size(), "each flow has a result");
  return results;
}

}  // namespace

std::uint64_t PathFigures::bandwidth_delay_product() const {
  return static_cast<std::uint64_t>(static_cast<unsigned __int128>(round_trip.ps() / 1000) * least_rate /
                                    8'000'000'000U);
}

PathFigures follow_path(const PacketGraph& graph, const PacketRouter& router, const PacketRouter::FlowKey& key,
                        std::uint32_t payload) {
  PathFigures figures;
  std::int64_t delays = 0, payloads = 0;  // ns; delays there and back
  std::uint32_t node = key.source;
  for (std::uint32_t hops = 0; node != key.destination; ++hops) {
    const std::uint16_t number = router.port(node, key, Time::zero());
    if (number == PacketRouter::no_way || hops > graph.num_nodes()) return {};
    const PacketGraph::Port& port = graph.ports(node)[number];
    const PacketGraph::Way way = graph.way_of(port);
    delays += way.delay.ps() / 1000 + graph.way_into(port).delay.ps() / 1000;
    payloads += static_cast<std::int64_t>(std::uint64_t{payload} * 8'000'000'000U / way.rate);
    figures.least_rate = figures.least_rate == 0 ? way.rate : std::min(figures.least_rate, way.rate);
    node = port.peer;
  }
  figures.round_trip = Time::from_ns(delays + payloads);
  return figures;
}

/// All packets but the last are full. Those follow each other at the pace of the slowest link that they have passed,
/// so that the last of n full packets leaves link i at the sum of their times on the links up to i, the delays before
/// it, and n - 1 times the largest of these times. The last packet begins on a link when it is there and the packet
/// before it has left. If packets take several paths, it waits for the others on the first link only, and the message
/// is there with the later of the last two.
Time time_alone(const PacketGraph& graph, const PacketRouter& router, const PacketRules& rules,
                const PacketRouter::FlowKey& key, std::uint64_t bytes, Time now) {
  const bool takes_paths = rules.spreads_flows() || rules.transport->sprays;
  const std::uint64_t num_full = bytes == 0 ? 0 : (bytes - 1) / rules.payload;
  const std::uint64_t last_size = bytes - num_full * rules.payload + rules.header;
  Time first_leaves, most, full_there, there;  // times of the first and the last full packet, and of the last packet
  std::uint32_t node = key.source;
  for (std::uint32_t hops = 0; node != key.destination; ++hops) {
    const std::uint16_t number = router.port(node, key, now);
    if (number == PacketRouter::no_way || hops > graph.num_nodes()) return Time::max();
    const PacketGraph::Port& port = graph.ports(node)[number];
    const PacketGraph::Way way = graph.way_of(port);
    const Time full = transmission_time(rules.full_packet(), way.rate, rules);
    first_leaves += full;
    most = std::max(most, full);
    const Time free = num_full == 0 ? Time::zero() : first_leaves + most * static_cast<std::int64_t>(num_full - 1);
    const bool waits = hops == 0 || !takes_paths;
    there = (waits ? std::max(there, free) : there) + transmission_time(last_size, way.rate, rules) + way.delay;
    full_there = free + way.delay;
    first_leaves += way.delay;
    node = port.peer;
  }
  return num_full == 0 ? there : std::max(there, full_there);
}

FlowWindows::FlowWindows(const PacketGraph& graph, const PacketRouter& router, const PacketRules& rules)
    : graph_(graph), router_(router), rules_(rules) {
  if (rules.window.kind != PacketWindow::Kind::largest) return;
  for (std::uint32_t a = 0; a < graph.num_hosts(); ++a)
    for (std::uint32_t b = 0; b < graph.num_hosts(); ++b) {
      if (a == b) continue;
      const PathFigures path = follow_path(graph, router, {graph.host(a), graph.host(b), 0}, rules.payload);
      if (path.bandwidth_delay_product() > largest_.bandwidth_delay_product()) largest_ = path;
    }
}

FlowWindows::Window FlowWindows::find(const PacketRouter::FlowKey& key) const {
  const PathFigures path =
      rules_.window.kind == PacketWindow::Kind::largest ? largest_ : follow_path(graph_, router_, key, rules_.payload);
  switch (rules_.window.kind) {
    case PacketWindow::Kind::none:
      return {0, path.round_trip};
    case PacketWindow::Kind::fixed:
      return {rules_.window.bytes, path.round_trip};
    default:
      return {path.bandwidth_delay_product(), path.round_trip};
  }
}

FlowResults run_flows(const FlowScenario& scenario, parallel::Communicator& world, EventOrder order) {
  const PacketRouter router(scenario.graph, scenario.failures, scenario.routes);
  world.agree([&] { check(scenario, router); });
  const std::vector<Rank> of_node = place_nodes(scenario.graph, world.size());
  std::optional<FlowModel> made;
  world.agree([&] { made.emplace(scenario, router, of_node, world.rank(), order); });
  FlowModel& model = *made;
  std::uint64_t events = 0;
  if (order == EventOrder::by_scheduling) {
    SchedulingOrder kernel(model);
    model.start(kernel);
    events = kernel.run();
  } else {
    pdes::Options options;
    options.num_lps = scenario.graph.num_nodes();
    const RelayDelays delays(scenario.graph, scenario.rules, of_node, world.size());
    options.least_service_delay = delays.least();
    for (int rank = 0; rank < world.size(); ++rank) {
      if (rank == world.rank().value()) continue;
      pdes::Neighbour neighbour{.rank = Rank(rank)};
      neighbour.relay_delay = delays.between(world.rank(), Rank(rank));
      neighbour.outgoing = neighbour.relay_delay != Time::max();
      neighbour.incoming = delays.between(Rank(rank), world.rank()) != Time::max();
      if (neighbour.outgoing || neighbour.incoming) options.neighbours.push_back(neighbour);
    }
    pdes::Kernel kernel(world, model, std::move(options));
    model.start(kernel);
    kernel.run();
    events = kernel.statistics().events;
  }
  require_no_circle(model, world);
  const std::string leak = model.devices().find_leak();
  ensure(leak.empty(), leak);
  FlowResults results = gather(scenario, router, model, world);
  auto sum = static_cast<std::int64_t>(events);
  world.sum(std::span(&sum, 1));
  results.events = static_cast<std::uint64_t>(sum);
  return results;
}

}  // namespace orrery::network
