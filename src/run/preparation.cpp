#include "orrery/run/preparation.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <iterator>
#include <span>
#include <utility>

#include "orrery/npu/concurrency.hpp"
#include "orrery/npu/connected.hpp"
#include "orrery/npu/queue_turns.hpp"
#include "orrery/npu/recorded.hpp"
#include "orrery/parallel/gather_notices.hpp"
#include "orrery/parallel/raise_faults.hpp"
#include "orrery/run/agreed.hpp"
#include "same_inputs.hpp"

namespace orrery::run {
namespace {

/// Returns the rank of each memory server. It is the rank of one of the NPUs that the server serves.
std::vector<Rank> hosts_of_servers(const memory::RemoteMemory& memory, std::span<const Rank> host_of_npu) {
  std::vector<Rank> hosts;
  for (std::uint32_t s = 0; s < memory.num_servers(); ++s) hosts.push_back(host_of_npu[memory.host_of(s).index()]);
  return hosts;
}

/// Returns whether a node of this rank is of this kind.
template <class Predicate>
bool any_node(const npu::Programs& programs, Predicate is_of_kind) {
  return std::ranges::any_of(
      programs, [&](const auto& program) { return std::ranges::any_of(program.second->graph->nodes, is_of_kind); });
}

bool is_send(const trace::Node& node) { return node.kind == trace::NodeKind::send; }

}  // namespace

Preparation::Preparation(const config::Configuration& configuration, parallel::Communicator& world, Faults& faults,
                         bool folds, std::span<const HostedNpu> fixed)
    : configuration_(configuration), readable_{.system = faults.empty()}, here_(world.rank()) {
  read(world, faults, fixed);
  number(world);
  sharers_ = share_bandwidth(world);
  of_all_.turns_go_on = npu::turns_go_on_over_all(unfolded_context(rank_->npus), world);
  check(world, faults, folds);
}

/// Makes the system, and reads the traces. Collective.
void Preparation::read(parallel::Communicator& world, Faults& faults, std::span<const HostedNpu> fixed) {
  system_ = agreed(world, [&] { return std::make_unique<System>(configuration_); });
  traces_.emplace(read_hosted_traces(configuration_, *system_, world, faults, fixed));
  readable_.groups = traces_->groups_are_known;
  host_of_server_ = hosts_of_servers(system_->memory, traces_->partition.ranks());
  programs_ = agreed(world, [&] {
    return npu::make_programs(traces_->traces, configuration_.execution,
                              communicator::dimensions_in_use(system_->topology(), system_->engine));
  });
}

/// Runs all checks, and folds the run between them. Collective.
void Preparation::check(parallel::Communicator& world, Faults& faults, bool folds) {
  Notices mine = traces_->notices;
  const check::Findings findings{faults, mine};
  const auto run = [&](const auto& checks, const npu::RunContext& context) {
    check::run_checks(checks, {configuration_, context, traces_->store, readable_}, world, findings);
  };
  run(check::checks_of_nodes(), unfolded_context(rank_->npus));
  if (folds && !parallel::any_faults(faults, world)) fold(assignment(world), {}, world);
  // In a folded run the other NPUs would only repeat what these do.
  const auto compared = folded_ ? folded_->folding.npus_to_compare() : std::vector<npu::NpuSpec>();
  run(check::checks_of_agreement(), unfolded_context(folded_ ? compared : rank_->npus));
  run(check::checks_of_simulated_npus(), run_context());
  notices_ = parallel::gather_notices(mine, world);
}

Preparation::FoldedRun::FoldedRun(const npu::RunContext& unfolded, fold::Assignment ranks, const fold::ReadNpus& read,
                                  parallel::Communicator& world, fold::Assumptions assumptions)
    : assignment(std::move(ranks)),
      folding(unfolded, assignment, read, world, std::move(assumptions)),
      host_of_server(hosts_of_servers(unfolded.memory, folding.host_of_npu())) {}

/// Folds the run. Collective.
void Preparation::fold(fold::Assignment assignment, fold::Assumptions assumptions, parallel::Communicator& world) {
  const auto read = [this](std::span<const NpuId> npus) {
    read_more(npus);
    std::vector<npu::NpuSpec> specs;
    for (const NpuId npu : npus) {
      const trace::NpuTrace& trace = other_traces_.at(npu);
      specs.push_back({npu, &trace, programs_.at(trace.graph.get()).get(), {}});
    }
    return specs;
  };
  folded_.emplace(unfolded_context(rank_->npus), std::move(assignment), read, world, std::move(assumptions));
  require_same_traces(store(), world);  // several ranks have read those of representatives
}

void Preparation::fold_again(std::span<const communicator::Divergence> divergences, parallel::Communicator& world) {
  auto assumptions = folded_->folding.assumptions_after(divergences);
  fold::Assignment assignment = folded_->assignment;
  fold(std::move(assignment), std::move(assumptions), world);
}

/// Reads the traces of NPUs that other ranks host, as far as this rank has not read them yet.
void Preparation::read_more(std::span<const NpuId> npus) {
  std::vector<NpuId> missing;
  for (const NpuId npu : npus)
    if (!other_traces_.contains(npu)) missing.push_back(npu);
  if (missing.empty()) return;
  auto traces = read_others(*traces_, configuration_, missing, here_);
  auto programs = npu::make_programs(traces, configuration_.execution,
                                     communicator::dimensions_in_use(system_->topology(), system_->engine));
  programs_.merge(programs);
  for (std::size_t i = 0; i < missing.size(); ++i) other_traces_.emplace(missing[i], std::move(traces[i]));
}

std::vector<npu::NpuSpec> Preparation::unfolded(std::span<const NpuId> representatives) {
  const auto is_here = [&](NpuId npu) { return traces_->partition.rank_of(npu) == here_; };
  std::vector<NpuId> others;
  std::ranges::copy_if(representatives, std::back_inserter(others), std::not_fn(is_here));
  read_more(others);
  std::vector<npu::NpuSpec> specs;
  for (const NpuId npu : representatives) {
    if (is_here(npu)) {
      specs.push_back(*std::ranges::lower_bound(rank_->npus, npu, {}, &npu::NpuSpec::id));
      continue;
    }
    const trace::NpuTrace& trace = other_traces_.at(npu);
    const auto groups = folded_->folding.groups_of(npu);
    specs.push_back({npu, &trace, programs_.at(trace.graph.get()).get(), {groups.begin(), groups.end()}});
  }
  return specs;
}

void Preparation::note_split(std::optional<fold::EarlierClasses> before) {
  if (before)
    earlier_classes_.push_back(*before);
  else
    earlier_classes_.clear();
}

/// Returns which ranks simulate the classes, as the partition says. Collective.
fold::Assignment Preparation::assignment(parallel::Communicator& world) const {
  if (configuration_.run.partition.is_default()) return {};
  const auto made = make_partition(*traces_, configuration_, *system_, world);
  fold::Assignment result;
  result.rank_of_npu.assign(made.ranks().begin(), made.ranks().end());
  return result;
}

/// Numbers the communicators of all ranks, and finds what holds for the traces of all ranks together. Collective.
void Preparation::number(parallel::Communicator& world) {
  const HostedTraces& traces = *traces_;
  std::vector<communicator::CommunicatorRequest> requests;
  requests.reserve(traces.npus.size());
  for (std::size_t i = 0; i < traces.npus.size(); ++i)
    requests.push_back({traces.npus[i], traces.traces[i].groups, programs_.at(traces.traces[i].graph.get())->uses});
  auto numbered =
      communicator::number_communicators(requests, traces.store.groups(), system_->topology(), system_->engine, world);
  rank_.emplace(RankNpus{{std::move(numbered.all), configuration_.collectives, traces.partition.ranks()}, {}});
  rank_->npus.reserve(traces.npus.size());
  for (std::size_t i = 0; i < traces.npus.size(); ++i) {
    const auto& trace = traces.traces[i];
    rank_->npus.push_back(
        {traces.npus[i], &trace, programs_.at(trace.graph.get()).get(), std::move(numbered.of_request[i])});
  }
  of_all_.least_recorded = npu::least_recorded_cost(rank_->npus, configuration_.execution, world);
  std::array<std::int64_t, 2> any{
      system_->memory.num_servers() > 0 && any_node(programs_, std::mem_fn(&trace::Node::is_access)),
      any_node(programs_, is_send)};
  world.maximum(any);
  of_all_.accesses_servers = any[0] != 0;
  of_all_.sends_messages = any[1] != 0;
  const npu::RunContext run = unfolded_context(rank_->npus);
  if (run.knows_places() && !run.options.goes_over_links() && !run.orders_requests())
    positions_ = npu::positions_among_connected(rank_->npus, run.hosting.num_npus(), world);
  of_all_.positions = positions_;
}

npu::RunContext Preparation::unfolded_context(std::span<const npu::NpuSpec> npus) {
  return {configuration_.execution,
          system_->delays,
          system_->memory,
          system_->engine,
          rank_->communicators.specs(),
          npus,
          {here_, traces_->partition.ranks(), host_of_server_},
          [this](NpuId npu, std::uint64_t node) { return place_of(*traces_, configuration_, npu, node); },
          of_all_,
          configuration_.run.cell_size};
}

npu::RunContext Preparation::run_context() {
  npu::RunContext context = unfolded_context(folded_ ? folded_->folding.npus() : rank_->npus);
  if (!folded_) return context;
  context.communicators = folded_->folding.communicators();
  context.hosting = {here_, folded_->folding.host_of_npu(), folded_->host_of_server};
  return context;
}

/// Tells the engine how many collectives share the bandwidth of each dimension, if the model has them share it.
/// Collective.
std::vector<std::uint32_t> Preparation::share_bandwidth(parallel::Communicator& world) {
  const auto& options = configuration_.execution;
  if (options.network.model->simulates_links() || !configuration_.collectives.rules.share_bandwidth ||
      options.replay_only)
    return {};
  auto sharers =
      npu::collectives_at_once(unfolded_context(rank_->npus), configuration_.collectives.sharing.set_of, world);
  std::vector<std::uint32_t> most(system_->topology().num_dimensions(), 1);
  for (const auto& of_set : sharers)
    for (std::size_t d = 0; d < most.size(); ++d) most[d] = std::max(most[d], of_set[d]);
  system_->engine.share_among(std::move(sharers));
  return most;
}

std::uint64_t Preparation::num_nodes() const {
  std::uint64_t count = 0;
  for (const auto& npu : folded_ ? folded_->folding.npus() : std::span<const npu::NpuSpec>(rank_->npus))
    count += npu.trace->graph->num_nodes();
  return count;
}

std::unique_ptr<Preparation> prepare(const config::Configuration& configuration, parallel::Communicator& world) {
  Faults faults;
  auto result = std::make_unique<Preparation>(configuration, world, faults, configuration.run.fold);
  parallel::raise_faults(faults, world);
  return result;
}

}  // namespace orrery::run
