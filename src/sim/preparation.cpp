#include "orrery/sim/preparation.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "agreement.hpp"
#include "orrery/executor/kinds.hpp"
#include "orrery/sim/partitioning.hpp"
#include "orrery/workload/generator.hpp"
#include "packing.hpp"
#include "ranges.hpp"

namespace orrery::sim {
namespace {

using trace::NodeKind;

/// A group and the dimensions it takes part in: what makes a communicator.
struct Communication {
  trace::Group group;
  std::uint64_t dimensions = trace::all_dimensions;

  friend auto operator<=>(const Communication&, const Communication&) = default;
};

trace::NamedGroups read_groups(const config::Configuration& configuration, std::uint32_t num_npus) {
  const auto& file = configuration.workload.groups;
  return file ? trace::read_group_file(*file, num_npus) : trace::NamedGroups{};
}

/// Dimensions of more than one NPU, as bits.
std::uint64_t dimensions_in_use(const topology::Topology& topology) {
  std::uint64_t bits = 0;
  for (std::uint32_t d = 0; d < topology.num_dimensions(); ++d)
    if (topology.dimension(d).size > 1) bits |= std::uint64_t{1} << d;
  return bits;
}

std::vector<Communication> gather_sorted(const std::set<Communication>& mine, parallel::Communicator& world) {
  Packer packer;
  for (const auto& c : mine) {
    packer.put_text(c.group.name);
    packer.put(c.dimensions);
    packer.put_all(std::span<const NpuId>(c.group.members));
  }
  std::vector<std::byte> bytes = packer.take();
  const auto all = world.all_gather(std::span<const std::byte>(bytes));
  std::set<Communication> merged;
  for (Unpacker unpacker(all); !unpacker.empty();) {
    Communication c;
    c.group.name = unpacker.get_text();
    c.dimensions = unpacker.get<std::uint64_t>();
    c.group.members = unpacker.get_all<NpuId>();
    merged.insert(std::move(c));
  }
  return {merged.begin(), merged.end()};
}

}  // namespace

Preparation::Foundations Preparation::lay_foundations(const config::Configuration& configuration,
                                                      parallel::Communicator& world) {
  std::optional<topology::Topology> topology;
  trace::NamedGroups groups;
  world.agree([&] {
    topology = configuration.topology();
    groups = read_groups(configuration, topology->num_npus());
  });
  auto partition = make_partition(configuration, *topology, world);
  return {std::move(*topology), std::move(partition), std::move(groups)};
}

Preparation::Preparation(const config::Configuration& configuration, parallel::Communicator& world,
                         std::vector<Error>* problems)
    : Preparation(configuration, world, problems, lay_foundations(configuration, world)) {}

Preparation::Preparation(const config::Configuration& configuration, parallel::Communicator& world,
                         std::vector<Error>* problems, Foundations foundations)
    : configuration_(configuration),
      world_(world),
      problems_(problems),
      topology_(std::move(foundations.topology)),
      partition_(std::move(foundations.partition)),
      memory_(configuration.remote_memory, topology_.num_npus(), topology_.rules().rounding),
      engine_(topology_, configuration.collectives),
      store_({configuration.workload.dependencies, topology_.num_npus()}, std::move(foundations.groups)) {
  for (std::uint32_t i = 0; i < topology_.num_npus(); ++i) host_of_npu_.push_back(partition_.rank_of(NpuId(i)));
  for (std::uint32_t s = 0; s < memory_.num_servers(); ++s)
    host_of_server_.push_back(host_of_npu_[memory_.first_npu_of(s).index()]);
  const auto mine = partition_.npus_of(world.rank());
  local_npus_.assign(mine.begin(), mine.end());
  guard([this] { read_traces(); });
  guard([this] { make_programs(); });
  guard([this] { require_remote_memory(); });
  const bool incomplete = problems_ && !problems_->empty();  // what the traces that could not be read do is unknown
  agree_on_groups();
  const auto known = problems_ ? problems_->size() : 0;
  guard([this] { check_algorithms(); });
  if (!problems_ || problems_->size() == known) guard([this] { check_ranges(setting(), store_); });
  if (!configuration_.executor.replay_only && !incomplete) {
    const Parties parties{store_, npus_, communicators_, host_of_npu_};
    guard([&] { check_messages(parties, world_); });
    guard([&] { check_collectives(parties, world_); });
  }
  gather_notices();
}

/// All ranks agree on a failure of `body`, or it is noted and the search goes on.
void Preparation::guard(const std::function<void()>& body) {
  if (!problems_) return world_.agree(body);
  try {
    body();
  } catch (const Error& error) {
    problems_->push_back(error);
  }
}

void Preparation::read_traces() {
  if (const auto& generated = configuration_.workload.generated) {
    traces_ = workload::assemble(*generated, local_npus_, store_);
    return;
  }
  traces_.reserve(local_npus_.size());
  std::vector<NpuId> read;
  for (const NpuId npu : local_npus_) {
    try {
      traces_.push_back(store_.read(configuration_.workload.trace_of(npu), npu));
      read.push_back(npu);
    } catch (const Error& error) {
      if (!problems_) throw;
      problems_->push_back(error);
    }
  }
  local_npus_ = std::move(read);
}

void Preparation::make_programs() {
  const auto in_use = dimensions_in_use(topology_);
  npus_.reserve(traces_.size());
  for (std::size_t i = 0; i < traces_.size(); ++i) {
    const auto& trace = traces_[i];
    auto& program = programs_[trace.graph.get()];
    if (!program)
      program = std::make_unique<executor::Program>(
          executor::make_program(trace.graph, configuration_.executor, topology_.rules(), in_use));
    if (program->num_unknown_compute > 0)
      own_notices_.add("roofline", local_npus_[i].value(),
                       "compute nodes have neither num_ops nor tensor_size: with the roofline on they take no time",
                       program->num_unknown_compute);
    for (const auto tag : trace.tags)
      if (tag > 0xffffffffU)
        throw Error(ErrorCode::bad_input,
                    {.file = store_.file(trace), .npu = local_npus_[i].value(), .key = "comm_tag"},
                    fmt::format("found {}", tag), "a tag below 2^32");
    npus_.push_back({local_npus_[i], &trace, program.get(), {}});
  }
}

void Preparation::require_remote_memory() {
  if (memory_.kind() != device::RemoteMemoryKind::none || configuration_.executor.replay_only) return;
  for (const auto& npu : npus_) {
    const auto& graph = *npu.trace->graph;
    for (std::uint32_t i = 0; i < graph.num_nodes(); ++i)
      if (graph.nodes[i].kind == NodeKind::mem_load || graph.nodes[i].kind == NodeKind::mem_store)
        throw Error(ErrorCode::bad_input, store_.place(*npu.trace, npu.id, NodeId(i)),
                    "the node accesses remote memory, but the system has none", "a remote memory in the configuration",
                    "Give the remote memory a kind, a bandwidth and a latency.");
  }
}

/// Numbers the communicators of all ranks alike: sorted by name, members and dimensions.
void Preparation::agree_on_groups() {
  const auto needed = [this](const executor::NpuSpec& npu, const executor::GroupUse& use) {
    Communication c{store_.groups()[npu.trace->groups[use.group_slot].index()], use.dimensions};
    if (c.dimensions == trace::all_dimensions) return c;
    if (c.group.members.empty()) {
      c.group.members = engine_.split(npu.id, use.dimensions);
      c.group.name = fmt::format("sub-grid of NPU {}", c.group.members.front().value());
    } else {
      own_notices_.add("involved_dim", npu.id.value(), "involved_dim is ignored in collectives of a process group");
      c.dimensions = trace::all_dimensions;
    }
    return c;
  };
  std::set<Communication> mine;
  for (const auto& npu : npus_)
    for (const auto& use : npu.program->uses) mine.insert(needed(npu, use));
  const auto all = gather_sorted(mine, world_);
  groups_.reserve(all.size());
  for (const auto& c : all) {
    const auto id = static_cast<std::uint32_t>(groups_.size());
    groups_.push_back(c.group);
    const auto& members = groups_.back().members;
    // Spread over the members' ranks; which one does not matter to any result.
    const NpuId member = members.empty() ? NpuId(id % topology_.num_npus()) : members[id % members.size()];
    communicators_.push_back({GroupId(id), &groups_.back(), c.dimensions, host_of_npu_[member.index()]});
  }
  for (auto& npu : npus_)
    for (const auto& use : npu.program->uses) {
      const auto found = std::lower_bound(all.begin(), all.end(), needed(npu, use));
      npu.groups.push_back(GroupId(static_cast<std::uint32_t>(found - all.begin())));
    }
}

void Preparation::check_algorithms() {
  if (configuration_.executor.replay_only) return;
  std::set<std::pair<GroupId, trace::CollectiveKind>> done;
  for (const auto& npu : npus_) {
    const auto& graph = *npu.trace->graph;
    if (graph.num_group_slots == 0) continue;
    for (std::uint32_t i = 0; i < graph.num_nodes(); ++i) {
      const auto& node = graph.nodes[i];
      if (node.kind != NodeKind::collective) continue;
      const auto& spec = communicators_[npu.groups[npu.program->use_of_node(NodeId(i))].index()];
      if (!done.insert({spec.id, node.collective}).second) continue;
      engine_.validate(*engine_.layout(spec.group->members, spec.dimensions), executor::engine_kind(node.collective));
    }
  }
}

void Preparation::gather_notices() {
  own_notices_.merge(store_.notices());
  Packer packer;
  for (const auto& [kind, entry] : own_notices_.entries()) {
    packer.put_text(kind);
    packer.put(entry.npu);
    packer.put_text(entry.text);
    packer.put(entry.count);
  }
  const std::vector<std::byte> bytes = packer.take();
  const auto all = world_.gather(std::span<const std::byte>(bytes), Rank(0));
  for (Unpacker unpacker(all); !unpacker.empty();) {
    const auto kind = unpacker.get_text();
    const auto npu = unpacker.get<std::uint32_t>();
    const auto text = unpacker.get_text();
    notices_.add(kind, npu, text, unpacker.get<std::uint64_t>());
  }
}

executor::Setting Preparation::setting() {
  return {configuration_.executor, topology_, memory_, engine_, communicators_, npus_, host_of_npu_, host_of_server_};
}

std::uint64_t Preparation::num_nodes() const {
  std::uint64_t count = 0;
  for (const auto& npu : npus_) count += npu.trace->graph->num_nodes();
  return count;
}

}  // namespace orrery::sim
