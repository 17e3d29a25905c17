#include <algorithm>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "cells.hpp"
#include "orrery/base/error.hpp"
#include "orrery/collective/kind.hpp"
#include "orrery/model/rank_model.hpp"
#include "orrery/npu/recorded.hpp"

namespace orrery::model {
namespace {

/// Collects what may pass from this rank to each other one, with lower bounds of the delays.
class Neighbours {
 public:
  explicit Neighbours(parallel::Communicator& world)
      : here_(world.rank()), table_(static_cast<std::size_t>(world.size())) {
    for (std::size_t r = 0; r < table_.size(); ++r) table_[r].rank = Rank(static_cast<int>(r));
  }

  Rank here() const { return here_; }

  /// Adds messages of an NPU here to an NPU there. For this rank itself this does nothing.
  void add_messages(Rank to, Time delay) {
    if (to == here_) return;
    at(to).event_delay = std::min(at(to).event_delay, delay);
  }
  /// Adds requests of NPUs here to a server there. For this rank itself this does nothing.
  void add_requests(Rank to) {
    if (to != here_) at(to).requests = true;
  }
  /// Adds answers of a server here to NPUs there.
  void add_answers(Rank to, Time delay) {
    least_service_ = std::min(least_service_, delay);
    if (to == here_) return;
    at(to).service_delay = std::min(at(to).service_delay, delay);
    least_between_ = std::min(least_between_, delay);
  }
  /// Adds a server here that answers NPUs there and calls servers there. There is another rank.
  void add_relay(Rank to, Time delay) {
    add_answers(to, delay);
    add_hand_over(to, delay);
  }
  /// Adds a server here that calls servers there and answers no NPU there. There is another rank.
  void add_hand_over(Rank to, Time delay) {
    at(to).relay_delay = std::min(at(to).relay_delay, delay);
    least_between_ = std::min(least_between_, delay);
  }
  /// Adds the completions of collectives that are computed here, for NPUs there: `delay` after the first member has
  /// arrived, and `final_delay` after the last one.
  void add_completions(Rank to, Time delay, Time final_delay) {
    at(to).reply_delay = std::min(at(to).reply_delay, delay);
    least_reply_ = std::min(least_reply_, delay);
    least_final_ = std::min(least_final_, final_delay);
  }

  /// Returns what has been added, and the least delays of all ranks, as the kernel wants it. Collective.
  pdes::Options agree(parallel::Communicator& world) {
    pdes::Options options;
    options.service_delay = least_service_;
    options.reply_delay = table_[here_.index()].reply_delay;
    options.final_delay = std::min(least_over_ranks(world, least_final_), longest_final_delay);
    options.least_reply_delay = least_over_ranks(world, least_reply_);
    options.least_service_delay = least_over_ranks(world, least_between_);
    options.least_event_delay = least_over_ranks(world, least_event());
    options.neighbours = agree_on_channels(world);
    return options;
  }

 private:
  /// The final delay must be finite, also where no rank computes collectives.
  static constexpr Time longest_final_delay = Time::from_ns(1'000'000'000);

  static Time least_over_ranks(parallel::Communicator& world, Time mine) {
    std::int64_t least = mine.ps();
    world.minimum(std::span(&least, 1));
    return Time::from_ps(least);
  }
  Time least_event() const {
    Time least = Time::max();
    for (const auto& neighbour : table_) least = std::min(least, neighbour.event_delay);
    return least;
  }
  /// Returns the ranks with which this one exchanges anything. Collective.
  std::vector<pdes::Neighbour> agree_on_channels(parallel::Communicator& world) {
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
  pdes::Neighbour& at(Rank rank) { return table_[rank.index()]; }

  Rank here_;
  std::vector<pdes::Neighbour> table_;  // [ranks]
  Time least_service_ = Time::max(), least_reply_ = Time::max(), least_final_ = Time::max();
  Time least_between_ = Time::max();  // of servers here, to other ranks
};

/// Returns the layout of the collectives of a communicator.
std::shared_ptr<const collective::GroupLayout> layout_of(const npu::RunContext& run,
                                                         const communicator::CommunicatorSpec& spec) {
  return collective::layout_of(run.engine, *spec.group, spec.dimensions, spec.custom);
}

/// Finds the shortest collective of communicators.
class ShortestCollectives {
 public:
  explicit ShortestCollectives(const npu::RunContext& run)
      : run_(run), layouts_(run.communicators.size()), shortest_(run.communicators.size(), Time::max()) {}

  /// Asks for a communicator.
  void add(const communicator::CommunicatorSpec& spec) { layouts_[spec.id.index()] = layout_of(run_, spec); }
  /// Returns the least times from the first arrival to a completion, by collective::Engine::least_duration; max() for
  /// communicators that nobody asked for or that NPUs here do not use. O(uses of the NPUs here), and O(nodes) for each
  /// distinct program and layout.
  std::vector<Time> find() {
    for (const auto& npu : run_.npus)
      for (std::uint32_t use = 0; use < npu.groups.size(); ++use) {
        const std::uint32_t group = npu.groups[use].value();
        if (layouts_[group]) shortest_[group] = std::min(shortest_[group], of_use(*npu.program, use, *layouts_[group]));
      }
    return std::move(shortest_);
  }

 private:
  /// Returns the least time of the collectives of one use of a program.
  Time of_use(const npu::Program& program, std::uint32_t use, const collective::GroupLayout& layout) {
    const auto [found, is_new] = of_uses_.try_emplace({&program, use, &layout}, Time::max());
    if (!is_new) return found->second;
    const auto& nodes = program.graph->nodes;
    for (std::uint32_t i = 0; i < nodes.size(); ++i)
      if (nodes[i].kind == trace::NodeKind::collective && program.use_of_node(NodeId(i)) == use)
        found->second = std::min(
            found->second,
            run_.engine.least_duration(layout, collective::kind_of(nodes[i].collective), Bytes(nodes[i].size)));
    return found->second;
  }

  const npu::RunContext& run_;
  std::vector<std::shared_ptr<const collective::GroupLayout>> layouts_;  // [communicators] null: nobody asked
  std::vector<Time> shortest_;
  std::map<std::tuple<const npu::Program*, std::uint32_t, const collective::GroupLayout*>, Time> of_uses_;
};

/// Adds what passes between the members and the hosts of communicators, of which the host computes the collectives.
void add_communicators(Neighbours& neighbours, const npu::RunContext& run) {
  struct Spread {
    const communicator::CommunicatorSpec& spec;
    std::vector<Rank> ranks;
  };
  std::vector<Spread> hosted;
  ShortestCollectives collectives(run);
  for (const auto& spec : run.communicators) {
    auto ranks = communicator::ranks_of(spec, run.hosting.of_npu);
    const bool is_local = ranks.size() == 1 && ranks.front() == spec.host;
    if (is_local) continue;  // its members and its host see each other without the kernel
    if (spec.host == neighbours.here()) {
      if (!run.options.replay_only) collectives.add(spec);  // a replay carries no collectives out
      hosted.push_back({spec, std::move(ranks)});
    } else if (std::ranges::binary_search(ranks, neighbours.here())) {
      neighbours.add_requests(spec.host);
    }
  }
  const std::vector<Time> shortest = collectives.find();
  for (const auto& [spec, ranks] : hosted) {
    const Time least = std::min(shortest[spec.id.index()], run.of_all.least_recorded);
    const Time final_delay = std::min(run.engine.minimum_duration(*layout_of(run, spec)), run.of_all.least_recorded);
    for (const Rank rank : ranks)
      neighbours.add_completions(rank, run.memory.least_after_answer(least),
                                 run.memory.least_after_answer(final_delay));
  }
}

/// Adds the messages of the congestion-unaware network.
void add_messages(Neighbours& neighbours, const npu::RunContext& run) {
  for (const auto& npu : run.npus)
    for (const NpuId peer : npu.trace->peers) {
      const Time least = std::min(run.send_delay(npu.id, peer, Bytes(0)), npu::half_of(run.of_all.least_recorded));
      neighbours.add_messages(run.hosting.of_npu[peer.index()], run.memory.least_after_answer(least));
    }
}

/// Adds the requests to remote memory and its answers.
void add_memory_servers(Neighbours& neighbours, const npu::RunContext& run) {
  for (std::uint32_t server = 0; server < run.memory.num_servers(); ++server) {
    const Rank host = run.hosting.of_server[server];
    for (std::uint32_t i = 0; i < run.memory.npus_per_server(); ++i) {
      const Rank rank = run.hosting.of_npu[run.memory.first_npu_of(server).index() + i];
      if (host == neighbours.here()) neighbours.add_answers(rank, run.memory.service_delay());
      if (rank == neighbours.here()) neighbours.add_requests(host);
    }
  }
}

}  // namespace

pdes::Options RankModel::kernel_options(parallel::Communicator& world) const {
  Neighbours neighbours(world);
  if (simulated_network_) {
    const std::optional<Time> own_answer_delay = simulated_network_->own_answer_delay();
    neighbours.add_answers(world.rank(), own_answer_delay.value_or(simulated_network_->least_relay_delay()));
    if (const auto notice_delay = simulated_network_->notice_delay())
      neighbours.add_answers(world.rank(), *notice_delay);
    // Processes are on all ranks, and messages to all ranks pass some of them.
    Time between_ranks;
    world.agree([&] { between_ranks = simulated_network_->relay_delay_between_ranks(run_.hosting); });
    for (int rank = 0; rank < world.size(); ++rank) {
      if (Rank(rank) == world.rank()) continue;
      own_answer_delay ? neighbours.add_hand_over(Rank(rank), between_ranks)
                       : neighbours.add_relay(Rank(rank), between_ranks);
    }
  } else {
    add_communicators(neighbours, run_);
    add_messages(neighbours, run_);
  }
  add_memory_servers(neighbours, run_);
  pdes::Options options = neighbours.agree(world);
  options.num_lps = run_.first_link().value() + (simulated_network_ ? simulated_network_->num_processes() : 0);
  options.lps_run_ahead = !simulated_network_;
  options.cell_of = options.lps_run_ahead ? cells_of(run_) : cells_of_lps(run_);
  return options;
}

}  // namespace orrery::model
