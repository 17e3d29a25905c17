#include "preparation.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "orrery/base/text.hpp"
#include "orrery/check/agreement.hpp"
#include "orrery/check/capacity.hpp"
#include "orrery/check/ranges.hpp"
#include "orrery/collective/custom_collective.hpp"
#include "orrery/collective/kind.hpp"
#include "orrery/communicator/communications.hpp"
#include "orrery/fold/folding.hpp"
#include "orrery/npu/concurrency.hpp"
#include "orrery/parallel/packing.hpp"
#include "orrery/parallel/raise_faults.hpp"
#include "orrery/partition/partitioning.hpp"
#include "orrery/workload/generator.hpp"
#include "stop_request.hpp"

namespace orrery::app {
namespace {

using trace::NodeKind;

/// The nodes of a structure for which something holds, found once for all NPUs that share it.
template <class Holds>
class NodesOf {
 public:
  explicit NodesOf(Holds holds) : holds_(std::move(holds)) {}

  const std::vector<NodeId>& graph(const trace::Graph& graph) {
    const auto [found, is_new] = known_.try_emplace(&graph);
    for (std::uint32_t i = 0; is_new && i < graph.num_nodes(); ++i)
      if (holds_(graph.nodes[i])) found->second.push_back(NodeId(i));
    return found->second;
  }

 private:
  Holds holds_;
  std::map<const trace::Graph*, std::vector<NodeId>> known_;
};

/// The first node of each use and kind of collective of a program, found once for all NPUs that share it.
class FirstCalls {
 public:
  struct Call {
    std::uint32_t use = 0;
    trace::CollectiveKind kind{};
    NodeId node;
  };

  /// Ascending in use, then in kind.
  const std::vector<Call>& of(const npu::Program& program) {
    const auto [found, is_new] = known_.try_emplace(&program);
    if (!is_new) return found->second;
    std::map<std::pair<std::uint32_t, trace::CollectiveKind>, NodeId> first;
    for (std::uint32_t i = 0; i < program.graph->num_nodes(); ++i)
      if (const auto& node = program.graph->nodes[i]; node.kind == NodeKind::collective)
        first.try_emplace({program.use_of_node(NodeId(i)), node.collective}, NodeId(i));
    for (const auto& [call, node] : first) found->second.push_back({call.first, call.second, node});
    return found->second;
  }

 private:
  std::map<const npu::Program*, std::vector<Call>> known_;
};

constexpr std::size_t most_unreadable = 1000;  // traces of a rank

/// What the configuration read as the communicator file; nothing if it names none, or could not read it.
const std::string* groups_text(const config::Configuration& configuration) {
  for (const auto& [name, text] : configuration.inputs)
    if (name == "groups.json" || name == "comm_group.json") return &text;
  return nullptr;
}

/// Dimensions of more than one NPU, as bits.
std::uint64_t dimensions_in_use(const topology::Topology& topology) {
  std::uint64_t bits = 0;
  for (std::uint32_t d = 0; d < topology.num_dimensions(); ++d)
    if (topology.dimension(d).size > 1) bits |= std::uint64_t{1} << d;
  return bits;
}

/// The partition that the options name, on every rank. Collective; errors are agreed. METIS works on rank 0, for which
/// the traces are read once more.
partition::Partition make_partition(const config::Configuration& configuration, const topology::Topology& topology,
                                    parallel::Communicator& world) {
  const auto& options = configuration.run.partition;
  if (options.strategy != partition::Strategy::metis || world.size() == 1) {
    std::optional<partition::Partition> result;
    world.agree([&] {
      result = options.strategy == partition::Strategy::metis
                   ? partition::Partition::blocks(topology.num_npus(), world.size())
                   : partition::Partition::make(options, topology, world.size());
    });
    return std::move(*result);
  }
  config::Configuration in_blocks = configuration;
  in_blocks.run.partition = {};
  std::vector<int> ranks;
  {
    Preparation preparation(in_blocks, world);
    const partition::Conversation conversation = partition::converse(preparation.run_context(), world);
    world.agree([&] {
      if (!world.is_root()) return;
      const auto dealt = partition::cut(conversation, world.size());
      for (std::uint32_t i = 0; i < topology.num_npus(); ++i) ranks.push_back(dealt.rank_of(NpuId(i)).value());
    });
  }
  world.broadcast(ranks, Rank(0));
  std::vector<Rank> map;
  for (const int rank : ranks) map.emplace_back(rank);
  return partition::Partition::from_ranks(std::move(map), world.size());
}

}  // namespace

Preparation::Foundations Preparation::lay_foundations(const config::Configuration& configuration,
                                                      parallel::Communicator& world, Faults& faults) {
  std::optional<network::DelayModel> delays;
  trace::NamedGroups groups;
  bool groups_known = true;
  world.agree([&] {
    delays = configuration.delays();
    const auto num_npus = delays->topology().num_npus();
    const auto& file = configuration.workload.groups;
    const std::string* const text = groups_text(configuration);
    Faults of_groups;
    if (text != nullptr)
      groups = trace::parse_groups(*text, file->string(), num_npus, of_groups);
    else if (!faults.empty())
      groups_known = false;  // perhaps the configuration names a file that could not be read
    else if (file)
      of_groups.attempt([&] { groups = trace::parse_groups(read_text(*file), file->string(), num_npus, of_groups); });
    groups_known = groups_known && of_groups.empty();
    of_groups.for_each([&](const Error& fault) { faults.add(fault); });
  });
  auto partition = make_partition(configuration, delays->topology(), world);
  return {std::move(*delays), std::move(partition), std::move(groups), groups_known};
}

Preparation::Preparation(const config::Configuration& configuration, parallel::Communicator& world)
    : Preparation(configuration, world, Faults()) {}

Preparation::Preparation(const config::Configuration& configuration, parallel::Communicator& world, Faults&& faults)
    : Preparation(configuration, world, faults) {
  parallel::raise_faults(faults, world);
}

Preparation::Preparation(const config::Configuration& configuration, parallel::Communicator& world, Faults& faults)
    : Preparation(configuration, world, faults, lay_foundations(configuration, world, faults)) {}

Preparation::~Preparation() = default;

std::unique_ptr<Preparation> Preparation::folded(const config::Configuration& configuration,
                                                 parallel::Communicator& world) {
  std::unique_ptr<Preparation> result;
  world.agree([&] {
    auto alone = parallel::make_serial();
    Faults faults;
    const Seat seat{world.rank(), world.size()};
    result.reset(new Preparation(configuration, *alone, faults, lay_foundations(configuration, *alone, faults), seat));
    parallel::raise_faults(faults, *alone);
    result->alone_ = std::move(alone);
  });
  return result;
}

Preparation::Preparation(const config::Configuration& configuration, parallel::Communicator& world, Faults& faults,
                         Foundations foundations, std::optional<Seat> folded_for)
    : configuration_(configuration),
      world_(world),
      here_(folded_for ? folded_for->here : world.rank()),
      delays_(std::move(foundations.delays)),
      partition_(std::move(foundations.partition)),
      memory_(configuration.remote_memory, delays_.topology().num_npus()),
      engine_(delays_, configuration.collectives),
      store_({.dependencies = configuration.workload.dependencies,
              .streams = configuration.workload.streams,
              .custom_nodes = configuration.workload.custom_nodes,
              .num_npus = topology().num_npus(),
              .groups_unknown = !foundations.groups_known},
             std::move(foundations.groups)) {
  for (std::uint32_t i = 0; i < topology().num_npus(); ++i) host_of_npu_.push_back(partition_.rank_of(NpuId(i)));
  for (std::uint32_t s = 0; s < memory_.num_servers(); ++s)
    host_of_server_.push_back(host_of_npu_[memory_.host_of(s).index()]);
  const bool system_known = faults.empty();
  world_.agree([&] {
    read_traces(faults);
    make_programs(faults);
    require_dimensions(faults);
    if (system_known) require_remote_memory(faults);
    if (system_known) require_local_memory(faults);
  });
  agree_on_groups();
  note_custom_nodes();
  if (configuration_.executor.network.model == network::Model::congestion_unaware &&
      configuration_.collectives.rules.share_bandwidth && !configuration_.executor.replay_only)
    engine_.share_among(sharers_ = npu::collectives_at_once(run_context(), world_));
  if (!configuration_.executor.replay_only && system_known) world_.agree([&] { check_algorithms(faults); });
  if (folded_for && faults.empty()) fold(*folded_for);
  if (!configuration_.executor.replay_only) check_agreement(foundations.groups_known, faults);
  check_durations(faults);
  gather_notices();
}

void Preparation::fold(const Seat& seat) {
  folding_ = std::make_unique<fold::Folding>(run_context(), seat.here, seat.num_ranks);
  for (std::uint32_t s = 0; s < memory_.num_servers(); ++s)
    host_of_server_[s] = folding_->host_of_npu()[memory_.host_of(s).index()];
}

/// Of a folded run what classes do with others is checked once each.
void Preparation::check_agreement(bool groups_known, Faults& faults) {
  auto looked_at = folding_ ? folding_->witnesses() : gather_read();
  std::vector<npu::NpuSpec> witnesses;
  if (folding_)
    for (const auto& npu : npus_)
      if (looked_at[npu.id.index()]) witnesses.push_back(npu);
  const check::Parties parties{store_, folding_ ? witnesses : npus_, communicators_, host_of_npu_, looked_at};
  check::check_messages(parties, world_, faults);
  if (groups_known) check::check_collectives(parties, world_, faults);
}

void Preparation::read_traces(Faults& faults) {
  const auto hosted = partition_.npus_of(world_.rank());
  if (const auto& generated = configuration_.workload.generated) {
    traces_ = workload::assemble(*generated, hosted, store_);
    local_npus_.assign(hosted.begin(), hosted.end());
    return;
  }
  traces_.reserve(hosted.size());
  std::size_t num_unreadable = 0;
  for (const NpuId npu : hosted) {
    end_if_signalled();
    auto trace = store_.read(configuration_.workload.trace_of(npu), npu, faults);
    if (!trace && ++num_unreadable == most_unreadable) {
      faults.add(Error(ErrorCode::bad_input, {},
                       fmt::format("{} traces cannot be read; no others are tried", most_unreadable)));
      return;
    }
    if (!trace) continue;
    traces_.push_back(std::move(*trace));
    local_npus_.push_back(npu);
  }
}

/// [num_npus] whether the trace could be read.
std::vector<char> Preparation::gather_read() {
  std::vector<char> is_read(topology().num_npus());
  for (const NpuId npu : world_.all_gather(std::span<const NpuId>(local_npus_))) is_read[npu.index()] = 1;
  return is_read;
}

void Preparation::make_programs(Faults& faults) {
  const auto in_use = dimensions_in_use(topology());
  npus_.reserve(traces_.size());
  for (std::size_t i = 0; i < traces_.size(); ++i) {
    const auto& trace = traces_[i];
    auto& program = programs_[trace.graph.get()];
    if (!program)
      program = std::make_unique<npu::Program>(npu::make_program(trace.graph, configuration_.executor, in_use));
    if (program->num_unknown_compute > 0)
      own_notices_.add("roofline", local_npus_[i].value(),
                       "compute nodes have neither num_ops nor tensor_size: with the roofline on they take no time",
                       program->num_unknown_compute);
    npus_.push_back({local_npus_[i], &trace, program.get(), {}});
    require_tags(npus_.back(), faults);
  }
}

/// Events carry tags of 32 bits.
void Preparation::require_tags(const npu::NpuSpec& npu, Faults& faults) const {
  const auto& graph = *npu.trace->graph;
  const auto& tags = npu.trace->tags;
  const auto is_too_large = [](std::uint64_t tag) { return tag > 0xffffffffU; };
  if (std::ranges::none_of(tags, is_too_large)) return;
  for (std::uint32_t i = 0; i < graph.num_nodes(); ++i) {
    const auto& node = graph.nodes[i];
    if ((node.kind != NodeKind::send && node.kind != NodeKind::receive) || !is_too_large(tags[node.detail])) continue;
    faults.add(Error(ErrorCode::bad_input, store_.place(*npu.trace, npu.id, NodeId(i)),
                     fmt::format("comm_tag is {}", static_cast<std::int64_t>(tags[node.detail])),
                     "0 or more and below 2^32"));
  }
}

/// Collectives of all NPUs may leave dimensions out, but not name some that the system does not have.
void Preparation::require_dimensions(Faults& faults) const {
  const auto num_dimensions = topology().num_dimensions();
  const std::uint64_t beyond = num_dimensions < 64 ? trace::all_dimensions << num_dimensions : 0;
  NodesOf nodes([beyond](const trace::Node& node) {
    return node.is_of_group() && node.detail != trace::all_dimensions && (node.detail & beyond) != 0;
  });
  for (const auto& npu : npus_)
    for (const NodeId id : nodes.graph(*npu.trace->graph)) {
      const auto& node = npu.trace->graph->nodes[id.index()];
      if (!store_.groups()[npu.trace->groups[node.slot].index()].members.empty()) continue;  // they do not count there
      faults.add(Error(ErrorCode::bad_input, store_.place(*npu.trace, npu.id, id),
                       fmt::format("involved_dim names dimension {}, but the system has {}",
                                   std::countr_zero(node.detail & beyond), counted(num_dimensions, "dimension")),
                       fmt::format("dimensions 0 to {}", num_dimensions - 1)));
    }
}

void Preparation::require_remote_memory(Faults& faults) {
  using memory::RemoteMemoryKind;
  if (memory_.kind() == memory::RemoteMemoryKind::hierarchical_pool || configuration_.executor.replay_only) return;
  const bool has_none = memory_.kind() == memory::RemoteMemoryKind::none;
  NodesOf nodes([&](const trace::Node& node) { return node.is_access() && (has_none || node.is_of_group()); });
  for (const auto& npu : npus_)
    for (const NodeId id : nodes.graph(*npu.trace->graph)) {
      const Place place = store_.place(*npu.trace, npu.id, id);
      const auto& node = npu.trace->graph->nodes[id.index()];
      if (has_none)
        faults.add(Error(ErrorCode::bad_input, place, "the node accesses remote memory, but the system has none",
                         "a remote memory in the configuration",
                         "Give the remote memory a kind, a bandwidth and a latency."));
      else
        faults.add(Error(ErrorCode::bad_input, place,
                         fmt::format("the node is a {}, but the remote memory has no switches that do this",
                                     trace::name(node.kind, node.collective)),
                         "a remote memory of the kind hierarchical-pool, or nodes without comm_type"));
    }
}

void Preparation::require_local_memory(Faults& faults) {
  const Bytes size = configuration_.executor.room();
  if (size == Bytes(0)) return;
  for (const auto& npu : npus_) {
    if (npu.trace->graph->tensors.sizes.empty())
      own_notices_.add("local-memory", npu.id.value(),
                       "the local memory has a size, but the trace lists no tensors: what is in it is not known");
    else if (npu.program->lifetimes.initial > size && configuration_.run.memory == config::ExcessPolicy::error)
      faults.add(check::initial_excess(npu, store_, size));
  }
}

/// Numbers the communicators of all ranks alike: sorted by name, members, dimensions and file.
void Preparation::agree_on_groups() {
  communicator::Communications communications(topology(), store_.groups());
  for (const auto& npu : npus_)
    for (const auto& use : npu.program->uses)
      if (communications.ask(npu.id, npu.trace->groups[use.group_slot], use))
        own_notices_.add("involved_dim", npu.id.value(), "involved_dim is ignored in collectives of a process group");
  auto all = communications.agree(engine_, world_);
  groups_.reserve(all.size());
  for (auto& c : all) {
    const auto id = static_cast<std::uint32_t>(groups_.size());
    groups_.push_back(std::move(c.group));
    if (c.custom > 0)
      groups_.back().name =
          fmt::format("{} by {}", groups_.back().name.empty() ? "all NPUs" : groups_.back().name,
                      configuration_.collectives.custom.of_nodes[c.custom - 1]->file().filename().string());
    const auto& members = groups_.back().members;
    // Spread over the members' ranks; which one does not matter to any result.
    const NpuId member = members.empty() ? NpuId(id % topology().num_npus()) : members[id % members.size()];
    communicators_.push_back({GroupId(id), &groups_.back(), c.dimensions, c.custom, host_of_npu_[member.index()]});
  }
  for (auto& npu : npus_) {
    npu.groups.reserve(npu.program->uses.size());
    for (const auto& use : npu.program->uses)
      npu.groups.push_back(communications.number(npu.id, npu.trace->groups[use.group_slot], use));
  }
}

/// One warning for ids of which no NPU has a collective.
void Preparation::note_custom_nodes() {
  const auto& custom_nodes = configuration_.workload.custom_nodes;
  if (custom_nodes.empty()) return;
  std::vector<std::int64_t> found(custom_nodes.size());
  for (const trace::NpuTrace& trace : traces_) {
    const auto& ids = trace.labels->ids;
    for (std::size_t i = 0; const auto& [id, custom] : custom_nodes) {
      const NodeId at(static_cast<std::uint32_t>(std::ranges::lower_bound(ids, id - trace.first_id) - ids.begin()));
      found[i++] += at.index() < ids.size() && trace.id_of(at) == id && trace.graph->custom_of(at) == custom;
    }
  }
  world_.sum(std::span(found));
  std::vector<std::uint64_t> missing;
  for (std::size_t i = 0; const auto& [id, custom] : custom_nodes)
    if (found[i++] == 0) missing.push_back(id);
  if (world_.is_root() && !missing.empty())
    own_notices_.add(
        "custom-nodes", 0,
        fmt::format("custom collectives of nodes: no trace has a collective with id {}", fmt::join(missing, ", ")));
}

void Preparation::check_algorithms(Faults& faults) {
  FirstCalls first_calls;
  std::set<std::pair<GroupId, trace::CollectiveKind>> done;
  for (const auto& npu : npus_) {
    // One member speaks for all, the same on any number of ranks.
    const auto speaks_for = [&](GroupId group) {
      const auto& members = communicators_[group.index()].group->members;
      return npu.id == (members.empty() ? NpuId(0) : members.front());
    };
    if (std::ranges::none_of(npu.groups, speaks_for)) continue;
    std::shared_ptr<const collective::GroupLayout> layout;
    GroupId of_layout;
    for (const auto& [use, kind, node] : first_calls.of(*npu.program)) {
      const auto group = npu.groups[use];
      if (!speaks_for(group) || !done.insert({group, kind}).second) continue;
      const auto& spec = communicators_[group.index()];
      if (!layout || of_layout != group) layout = engine_.layout(spec.group->members, spec.dimensions, spec.custom);
      of_layout = group;
      Faults found;
      found.attempt([&] { engine_.validate(*layout, collective::kind_of(kind)); });
      found.for_each([&](const Error& fault) {
        faults.add(Error(fault.code(), store_.place(*npu.trace, npu.id, node),
                         fmt::format("{}: {}", trace::describe(*spec.group), fault.text())));
      });
    }
  }
}

/// Only where nothing else is wrong on any rank: what does not fit is then told of the lowest NPU.
void Preparation::check_durations(Faults& faults) {
  auto num_faults = static_cast<std::int64_t>(faults.count());
  world_.sum(std::span(&num_faults, 1));
  if (num_faults > 0) return;
  Faults mine;
  world_.agree([&] { mine.attempt([&] { check::check_ranges(run_context(), store_); }); });
  std::int64_t own = std::numeric_limits<std::int64_t>::max();
  mine.for_each([&](const Error& fault) { own = fault.place().npu.value_or(0); });
  std::int64_t lowest = own;
  world_.minimum(std::span(&lowest, 1));
  if (own == lowest) mine.for_each([&](const Error& fault) { faults.add(fault); });
}

void Preparation::gather_notices() {
  own_notices_.merge(store_.notices());
  parallel::Packer packer;
  for (const auto& [kind, entry] : own_notices_.entries()) {
    packer.put_text(kind);
    packer.put(entry.npu);
    packer.put_text(entry.text);
    packer.put(entry.count);
  }
  const std::vector<std::byte> bytes = packer.take();
  const auto all = world_.gather(std::span<const std::byte>(bytes), Rank(0));
  for (parallel::Unpacker unpacker(all); !unpacker.empty();) {
    const auto kind = unpacker.get_text();
    const auto npu = unpacker.get<std::uint32_t>();
    const auto text = unpacker.get_text();
    notices_.add(kind, npu, text, unpacker.get<std::uint64_t>());
  }
}

std::span<const communicator::CommunicatorSpec> Preparation::communicators() const {
  return folding_ ? folding_->communicators() : communicators_;
}

std::span<const npu::NpuSpec> Preparation::npus() const { return folding_ ? folding_->npus() : npus_; }

npu::RunContext Preparation::run_context() {
  return {configuration_.executor,
          delays_,
          memory_,
          engine_,
          communicators(),
          npus(),
          {here_, folding_ ? folding_->host_of_npu() : host_of_npu_, host_of_server_},
          [this](NpuId npu, std::uint64_t node) { return place_of(npu, node); }};
}

Place Preparation::place_of(NpuId npu, std::uint64_t node) const {
  const auto look_up = [&](const trace::Store& store, const trace::NpuTrace& trace) {
    const auto& ids = trace.labels->ids;
    const auto at = std::ranges::lower_bound(ids, node - trace.first_id) - ids.begin();
    return store.place(trace, npu, NodeId(static_cast<std::uint32_t>(at)));
  };
  const auto own = std::ranges::find(npus_, npu, &npu::NpuSpec::id);
  if (own != npus_.end()) return look_up(store_, *own->trace);
  const auto& workload = configuration_.workload;
  trace::Store others({.dependencies = workload.dependencies, .streams = workload.streams, .alone = true}, {});
  return look_up(others, workload.generated ? workload::assemble(*workload.generated, {&npu, 1}, others).front()
                                            : others.read(workload.trace_of(npu), npu));
}

std::uint64_t Preparation::num_nodes() const {
  std::uint64_t count = 0;
  for (const auto& npu : npus()) count += npu.trace->graph->num_nodes();
  return count;
}

}  // namespace orrery::app
