#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "event_kind.hpp"
#include "fake_scheduler.hpp"
#include "graph_builder.hpp"
#include "orrery/communicator/member_side.hpp"
#include "orrery/npu/npus.hpp"

namespace orrery::npu::test {

constexpr Time ns(std::int64_t count) { return Time::from_ns(count); }

constexpr std::uint32_t away = 3;  // a peer on the other rank

/// When a node was in service.
struct Span {
  Time start, finish;

  friend bool operator==(const Span&, const Span&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Span& span) {
    return out << span.start.ps() << " ps to " << span.finish.ps() << " ps";
  }
};

/// A system whose messages may go over links.
struct LinkedSystem {
  network::MessageNetwork* links = nullptr;  ///< none: messages are events of the other NPU
  topology::Dimension dimension = {topology::Shape("Ring"), 4, Bandwidth::from_bytes_per_ns(50), 500};
  collective::Options collectives = {};
  const network::SimulatedNetwork* network = nullptr;  ///< that of `links`
  std::vector<std::uint32_t> cell_of = {};             ///< see RunContext
};

using Graphs = std::vector<std::shared_ptr<const trace::Graph>>;

/// The NPUs of rank 0. The test plays the kernel, the other rank and the hosts of communicators.
///
/// Four NPUs are in one dimension, a ring unless the test gives another one. Those for which the test gives a graph,
/// from NPU 0 on, are on rank 0, the others on rank 1. In each trace peer slot p is NPU p, tag slot t is tag t, group
/// slot 0 is the world and group slot 1 NPUs 0 and 1.
class RankOfNpus {
 public:
  static constexpr std::uint32_t world = 0, pair = 1;  // group slots

  explicit RankOfNpus(const Graphs& graphs, Options options = {},
                      const memory::RemoteMemoryOptions& memory_options = {}, const LinkedSystem& system = {})
      : delays(topology::Topology({system.dimension})),
        options_(options_for(std::move(options), system)),
        memory_(memory_options, 4),
        engine_(delays, system.collectives),
        cell_of_(system.cell_of) {
    for (std::uint32_t npu = 0; npu < 4; ++npu) of_npu_.emplace_back(npu < graphs.size() ? 0 : 1);
    of_server_.assign(memory_.num_servers(), Rank(1));
    programs_.reserve(graphs.size());
    traces_.reserve(graphs.size());
    for (const auto& graph : graphs) add(graph);
    const Hosting hosting{Rank(0), of_npu_, of_server_};
    run_.emplace(RunContext{options_, delays, memory_, engine_, communicators_, specs_, hosting, place_of_});
    run_->links = system.network;
    run_->cell_of = cell_of_;
    members_.emplace(
        communicator::Setup{
            .kernel = kernel,
            .engine = engine_,
            .network = network_,
            .specs = communicators_,
            .hosting = hosting,
            .first_lp = run_->first_communicator(),
            .place_of = place_of_,
            .execution = system.links ? communicator::Execution::by_members : communicator::Execution::at_host},
        [this](Rank to, const communicator::Report& report, std::span<const Time> times) {
          reports.push_back({to, report, {times.begin(), times.end()}});
        },
        [this](const communicator::Completion& completion) { npus->announce(completion); });
    servers_.emplace(
        kernel, memory_, hosting, place_of_, [](GroupId) { return std::string(); }, overrun_);
    npus.emplace(*run_, Services{kernel, network_, *members_, *servers_, system.links}, overrun_);
    npus->start();
  }
  RankOfNpus(const RankOfNpus&) = delete;
  RankOfNpus& operator=(const RankOfNpus&) = delete;

  /// Handles all events of the earliest time and ends that time. Returns whether there were any.
  bool step() {
    collect();
    if (pending_.empty()) return false;
    const Time now = std::ranges::min(pending_, pdes::before).time;
    const auto later = std::ranges::partition(pending_, [&](const pdes::Event& event) { return event.time == now; });
    std::vector<pdes::Event> events(pending_.begin(), later.begin());
    pending_.erase(pending_.begin(), later.begin());
    std::ranges::sort(events, pdes::before);
    kernel.time = now;
    for (const auto& event : events) npus->handle(event);
    npus->settle(now);
    return true;
  }
  /// Goes on until nothing more happens by itself.
  void run() {
    while (step()) continue;
  }
  /// Handles the events that are not later than `time`.
  void run_until(Time time) {
    for (collect(); !pending_.empty() && std::ranges::min(pending_, pdes::before).time <= time; collect()) step();
  }

  /// Delivers an event of an NPU of the other rank, as the kernel does when it arrives. `stream` is the tag.
  void deliver(EventKind kind, std::uint32_t from, std::uint32_t stream, Time time, std::uint64_t size = 1024) {
    auto event = pdes::Event::make(time, pdes::Stage::client, LpId(from), sequence_++, LpId(0));
    event.kind = static_cast<std::uint16_t>(kind);
    event.node = stream;
    event.detail = size;
    admit(event);
  }
  void deliver_message(std::uint32_t from, std::uint32_t tag, Time time, std::uint64_t size = 1024) {
    deliver(EventKind::data, from, tag, time, size);
  }
  /// Answers a request that NPU 0 has sent to a server.
  void answer(const pdes::Event& request, Time time) {
    auto event = pdes::Event::make(time, pdes::Stage::client, request.target, sequence_++, LpId(0));
    event.kind = pdes::completion;
    event.node = request.node;
    admit(event);
  }
  /// Delivers an event of the links.
  void deliver(const pdes::Event& event) { admit(event); }
  /// Says, as the host of a communicator, when each participant of a collective completes.
  void complete(communicator::Report report, const std::vector<Time>& times) {
    report.kind = communicator::ReportKind::completions;
    members_->complete(report, times);
  }

  /// Returns when the nodes of an NPU were in service that are done, by the index of the node.
  std::map<std::uint64_t, Span> spans(std::uint32_t npu = 0) const {
    std::map<std::uint64_t, Span> spans;
    for (const auto& record : npus->timeline())
      if (record.npu == NpuId(npu)) spans[record.node] = {record.start, record.finish};
    return spans;
  }
  /// Returns the time that a message of so many bytes of NPU 0 takes to NPU `to`.
  Time delay(std::uint32_t to, Bytes size = Bytes(1024)) const { return delays.delay(NpuId(0), NpuId(to), size); }
  /// Returns the bytes that have been counted as traffic of the network's dimension.
  Bytes traffic() const { return network_.bytes()[0]; }
  LpId first_server() const { return run_->first_server(); }

  struct SentReport {
    Rank to;
    communicator::Report report;
    std::vector<Time> times;
  };

  test_support::FakeScheduler kernel;  ///< `sent` keeps what has gone to the other rank
  network::DelayModel delays;
  std::vector<SentReport> reports;
  std::optional<Npus> npus;

 private:
  static Options options_for(Options options, const LinkedSystem& system) {
    options.timeline = true;
    if (system.links) options.network.model = network::ModelName("congestion-aware");
    return options;
  }

  void add(const std::shared_ptr<const trace::Graph>& graph) {
    programs_.push_back(make_program(graph, options_, {1}));
    auto labels = std::make_shared<trace::Labels>();
    labels->names.resize(graph->num_nodes());
    for (std::uint32_t node = 0; node < graph->num_nodes(); ++node) labels->ids.push_back(node);
    traces_.push_back({.graph = graph,
                       .labels = labels,
                       .groups = {GroupId(0), GroupId(1)},
                       .peers = {NpuId(0), NpuId(1), NpuId(2), NpuId(3)},
                       .tags = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9},
                       .recorded = {}});
    NpuSpec spec{NpuId(static_cast<std::uint32_t>(specs_.size())), &traces_.back(), &programs_.back(), {}, nullptr};
    for (const auto& use : programs_.back().uses) spec.groups.emplace_back(use.group_slot);
    specs_.push_back(std::move(spec));
  }
  void admit(pdes::Event event) {
    if (npus->admit(event)) pending_.push_back(event);
  }
  /// Takes what the NPUs have scheduled, and delivers what they have sent to each other.
  void collect() {
    for (auto* const events : {&kernel.scheduled, &kernel.resumed}) {
      pending_.insert(pending_.end(), events->begin(), events->end());
      events->clear();
    }
    const auto is_here = [](const auto& sent) { return sent.to == Rank(0); };
    const auto here = std::ranges::stable_partition(kernel.sent, std::not_fn(is_here));
    const std::vector sent(here.begin(), here.end());
    kernel.sent.erase(here.begin(), here.end());
    for (const auto& message : sent) admit(message.event);
  }

  Options options_;
  memory::RemoteMemory memory_;
  std::vector<Rank> of_npu_, of_server_;
  collective::Engine engine_;
  network::Analytical network_{delays};
  trace::Group everybody_{}, pair_{"pair", {NpuId(0), NpuId(1)}};
  std::vector<communicator::CommunicatorSpec> communicators_{
      {GroupId(0), &everybody_, trace::all_dimensions, 0, Rank(1)},
      {GroupId(1), &pair_, trace::all_dimensions, 0, Rank(0)}};
  std::vector<Program> programs_;
  std::vector<trace::NpuTrace> traces_;
  std::vector<NpuSpec> specs_;
  std::vector<std::uint32_t> cell_of_;
  communicator::PlaceOf place_of_ = [](NpuId npu, std::uint64_t node) {
    return Place{.file = "trace." + std::to_string(npu.value()), .node_name = "node " + std::to_string(node)};
  };
  std::optional<Overrun> overrun_;
  std::optional<RunContext> run_;
  std::optional<communicator::MemberSide> members_;
  std::optional<memory::MemoryServers> servers_;
  std::vector<pdes::Event> pending_;
  std::uint64_t sequence_ = 0;  // of events of the other rank
};

}  // namespace orrery::npu::test
