#include <algorithm>
#include <set>

#include "orrery/base/error.hpp"
#include "orrery/collective/kind.hpp"
#include "orrery/model/rank_model.hpp"

namespace orrery::model {
namespace {

/// Collects what may pass from this rank to each other one.
class Neighbours {
 public:
  explicit Neighbours(parallel::Communicator& world)
      : here_(world.rank()), table_(static_cast<std::size_t>(world.size())) {
    for (std::size_t r = 0; r < table_.size(); ++r) table_[r].rank = Rank(static_cast<int>(r));
  }

  void event(Rank to, Time delay) {
    if (to == here_) return;
    at(to).event_delay = std::min(at(to).event_delay, delay);
  }
  /// Servers here answer NPUs there, and call servers there.
  void relay(Rank to, Time delay) {
    service(to, delay);
    if (to != here_) at(to).relay_delay = std::min(at(to).relay_delay, delay);
  }
  void request(Rank to) {
    if (to != here_) at(to).requests = true;
  }
  void service(Rank to, Time delay) {
    least_service_ = std::min(least_service_, delay);
    if (to != here_) at(to).service_delay = std::min(at(to).service_delay, delay);
  }
  /// To this rank itself too.
  void reply(Rank to, Time delay, Time final_delay) {
    at(to).reply_delay = std::min(at(to).reply_delay, delay);
    least_reply_ = std::min(least_reply_, delay);
    least_final_ = std::min(least_final_, final_delay);
  }
  Time reply_here() const { return table_[here_.index()].reply_delay; }
  Time least_service() const { return least_service_; }
  Time least_reply() const { return least_reply_; }
  Time least_final() const { return least_final_; }
  Time least_event() const {
    Time least = Time::max();
    for (const auto& n : table_) least = std::min(least, n.event_delay);
    return least;
  }

  /// Those with which anything is exchanged. Collective.
  std::vector<pdes::Neighbour> agree(parallel::Communicator& world) {
    std::vector<std::vector<char>> outgoing(table_.size());
    for (std::size_t r = 0; r < table_.size(); ++r) {
      auto& n = table_[r];
      n.outgoing =
          n.requests || std::min({n.event_delay, n.service_delay, n.reply_delay, n.relay_delay}) != Time::max();
      outgoing[r] = {static_cast<char>(n.outgoing)};
    }
    const auto incoming = world.exchange(outgoing);
    std::vector<pdes::Neighbour> neighbours;
    for (std::size_t r = 0; r < table_.size(); ++r) {
      table_[r].incoming = incoming[r].at(0) != 0;
      if (static_cast<int>(r) != here_.value() && (table_[r].outgoing || table_[r].incoming))
        neighbours.push_back(table_[r]);
    }
    return neighbours;
  }

 private:
  pdes::Neighbour& at(Rank rank) { return table_[rank.index()]; }

  Rank here_;
  std::vector<pdes::Neighbour> table_;  // [ranks]
  Time least_service_ = Time::max(), least_reply_ = Time::max(), least_final_ = Time::max();
};

/// The shortest collective of each group that this rank's NPUs take part in, by the engine's least_duration.
std::vector<Time> shortest_collectives(const npu::RunContext& run) {
  std::vector<Time> shortest(run.communicators.size(), Time::max());
  std::set<std::pair<const npu::Program*, GroupId>> done;  // NPUs of one program and group do the same
  std::vector<std::shared_ptr<const collective::GroupLayout>> layout_of(run.communicators.size());
  for (const auto& npu : run.npus) {
    const auto& graph = *npu.program->graph;
    std::vector<std::shared_ptr<const collective::GroupLayout>> layouts(npu.groups.size());
    for (std::size_t use = 0; use < npu.groups.size(); ++use) {
      if (!done.emplace(npu.program, npu.groups[use]).second) continue;
      const auto& spec = run.communicators[npu.groups[use].index()];
      auto& layout = layout_of[spec.id.index()];
      if (!layout) layout = run.engine.layout(spec.group->members, spec.dimensions, spec.custom);
      layouts[use] = layout;
    }
    if (std::none_of(layouts.begin(), layouts.end(), [](const auto& layout) { return layout != nullptr; })) continue;
    for (std::uint32_t i = 0; i < graph.num_nodes(); ++i) {
      const auto& node = graph.nodes[i];
      if (node.kind != trace::NodeKind::collective) continue;
      const auto use = npu.program->use_of_node(NodeId(i));
      if (!layouts[use]) continue;
      Time& least = shortest[npu.groups[use].index()];
      least = std::min(
          least, run.engine.least_duration(*layouts[use], collective::kind_of(node.collective), Bytes(node.size)));
    }
  }
  return shortest;
}

Time least_over_ranks(parallel::Communicator& world, Time mine) {
  std::int64_t least = mine.ps();
  world.minimum(std::span(&least, 1));
  return Time::from_ps(least);
}

}  // namespace

pdes::Options RankModel::kernel_options(parallel::Communicator& world) const {
  const Rank here = world.rank();
  const auto& hosts = run_.hosting.of_npu;
  Neighbours neighbours(world);
  const bool has_replies = !run_.options.replay_only && !fabric_;
  const auto shortest =
      has_replies ? shortest_collectives(run_) : std::vector<Time>(run_.communicators.size(), Time::max());
  for (const auto& spec : run_.communicators) {
    if (fabric_) break;
    const auto ranks = communicator::ranks_of(spec, hosts);
    const bool is_local = ranks.size() == 1 && ranks.front() == spec.host;
    if (is_local) continue;  // its members and its host see each other without the kernel
    if (spec.host == here) {
      const Time final_delay =
          run_.engine.minimum_duration(*run_.engine.layout(spec.group->members, spec.dimensions, spec.custom));
      for (const Rank rank : ranks) neighbours.reply(rank, shortest[spec.id.index()], final_delay);
    } else if (std::binary_search(ranks.begin(), ranks.end(), here)) {
      neighbours.request(spec.host);
    }
  }
  // Links are on all ranks, and messages to all take some of them.
  for (int rank = 0; fabric_ && rank < world.size(); ++rank) neighbours.relay(Rank(rank), link_delays_->least_pass());
  for (const auto& npu : run_.npus)
    for (const NpuId peer : npu.trace->peers)
      if (!fabric_) neighbours.event(hosts[peer.index()], run_.delays.delay(npu.id, peer, Bytes(0)));
  for (std::uint32_t server = 0; server < run_.memory.num_servers(); ++server) {
    const Rank host = run_.hosting.of_server[server];
    for (std::uint32_t i = 0; i < run_.memory.npus_per_server(); ++i) {
      const Rank rank = hosts[run_.memory.first_npu_of(server).index() + i];
      if (host == here) neighbours.service(rank, run_.memory.service_delay());
      if (rank == here) neighbours.request(host);
    }
  }
  pdes::Options options;
  options.num_lps = static_cast<std::uint32_t>(hosts.size() + run_.communicators.size()) + run_.memory.num_servers() +
                    (fabric_ ? fabric_->num_links() : 0);
  options.service_delay = neighbours.least_service();
  options.reply_delay = neighbours.reply_here();
  options.final_delay = std::min(least_over_ranks(world, neighbours.least_final()), Time::from_ns(1'000'000'000));
  options.least_reply_delay = least_over_ranks(world, neighbours.least_reply());
  options.least_service_delay = least_over_ranks(world, neighbours.least_service());
  options.least_event_delay = least_over_ranks(world, neighbours.least_event());
  options.neighbours = neighbours.agree(world);
  options.lps_run_ahead = !fabric_;
  return options;
}

}  // namespace orrery::model
