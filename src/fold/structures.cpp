#include "structures.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "orrery/base/mix_all.hpp"
#include "orrery/collective/kind.hpp"
#include "orrery/parallel/packing.hpp"

namespace orrery::fold {
namespace {

using Bytestring = std::vector<std::byte>;

/// Returns a graph as bytes, which are equal for two graphs if and only if the graphs are.
Bytestring bytes_of(const trace::Graph& graph) {
  parallel::Packer packer;
  for (const std::uint32_t number :
       {graph.num_group_slots, graph.num_peer_slots, graph.num_tag_slots, graph.num_streams})
    packer.put(number);
  packer.put_all(std::span(graph.nodes));
  packer.put_all(std::span(graph.successors));
  packer.put_all(std::span(graph.durations));
  packer.put_all(std::span(graph.priorities));
  packer.put_all(std::span(graph.customs));
  packer.put_all(std::span(graph.milestones));
  packer.put_all(std::span(graph.tensors.sizes));
  packer.put_all(std::span(graph.tensors.num_listings));
  packer.put_all(std::span(graph.tensors.first));
  packer.put_all(std::span(graph.tensors.listings));
  return packer.take();
}

/// A structure of a rank: which of those of this rank it is.
struct Owned {
  std::uint32_t rank = 0, index = 0;

  friend auto operator<=>(const Owned&, const Owned&) = default;
};

Structure summary_of(const npu::Program& program, bool replay_only) {
  Structure structure;
  structure.num_nodes = program.graph->num_nodes();
  if (replay_only) return structure;
  std::vector<std::set<Structure::Collective>> collectives(program.uses.size());
  for (std::uint32_t i = 0; i < structure.num_nodes; ++i) {
    const auto& node = program.graph->nodes[i];
    structure.accesses_memory |= node.is_access();
    if (node.kind == trace::NodeKind::collective)
      collectives[program.use_of_node(NodeId(i))].emplace(collective::kind_of(node.collective), Bytes(node.size));
  }
  for (const auto& of_use : collectives) structure.collectives.emplace_back(of_use.begin(), of_use.end());
  return structure;
}

void put_structure(parallel::Packer& packer, const Structure& structure) {
  packer.put(structure.num_nodes);
  packer.put(structure.accesses_memory);
  packer.put(static_cast<std::uint32_t>(structure.collectives.size()));
  for (const auto& of_use : structure.collectives) {
    packer.put(static_cast<std::uint32_t>(of_use.size()));
    for (const auto& [kind, size] : of_use) {
      packer.put(kind);
      packer.put(size);
    }
  }
}

Structure get_structure(parallel::Unpacker& unpacker) {
  Structure structure;
  structure.num_nodes = unpacker.get<std::uint32_t>();
  structure.accesses_memory = unpacker.get<bool>();
  structure.collectives.resize(unpacker.get<std::uint32_t>());
  for (auto& of_use : structure.collectives) {
    const auto count = unpacker.get<std::uint32_t>();
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto kind = unpacker.get<collective::Kind>();
      of_use.emplace_back(kind, unpacker.get<Bytes>());
    }
  }
  return structure;
}

std::vector<Bytestring> taken(std::vector<parallel::Packer>& packers) {
  std::vector<Bytestring> result;
  for (auto& packer : packers) result.push_back(packer.take());
  return result;
}

/// Finds equal graphs of several ranks. The lowest rank that has a graph of some digest compares all graphs of this
/// digest, which the others send there.
class GraphComparison {
 public:
  GraphComparison(std::span<const npu::Program* const> programs, parallel::Communicator& world)
      : programs_(programs), world_(world), here_(static_cast<std::uint32_t>(world.rank().value())) {}

  /// Returns for each program of this rank the first structure of all ranks that is equal. Collective.
  std::vector<Owned> first_equal() {
    std::vector<Owned> first;
    for (std::uint32_t i = 0; i < programs_.size(); ++i) first.push_back({here_, i});
    if (world_.size() == 1) return first;
    for (const auto* program : programs_)
      digests_.push_back(mix_all(0, std::span<const std::byte>(bytes_of(*program->graph))));
    const std::vector<std::uint32_t> judges = judges_of_digests();
    std::vector<parallel::Packer> sent(static_cast<std::size_t>(world_.size()));
    for (std::uint32_t i = 0; i < programs_.size(); ++i) {
      if (judges[i] == here_) continue;
      sent[judges[i]].put(i);
      sent[judges[i]].put(digests_[i]);
      sent[judges[i]].put_all(std::span<const std::byte>(bytes_of(*programs_[i]->graph)));
    }
    const auto replies = world_.exchange_bytes(judged(world_.exchange_bytes(taken(sent)), judges));
    for (const auto& reply : replies)
      for (parallel::Unpacker unpacker(reply); !unpacker.empty();) {
        const auto index = unpacker.get<std::uint32_t>();
        first[index] = unpacker.get<Owned>();
      }
    return first;
  }

 private:
  /// Returns the lowest rank that has a graph of the digest of each program of this rank.
  std::vector<std::uint32_t> judges_of_digests() {
    std::vector<std::size_t> counts;
    const auto all = world_.all_gather(std::span<const std::uint64_t>(digests_), &counts);
    std::map<std::uint64_t, std::uint32_t> lowest;
    std::size_t at = 0;
    for (std::uint32_t rank = 0; rank < counts.size(); ++rank)
      for (std::size_t i = 0; i < counts[rank]; ++i) lowest.try_emplace(all[at++], rank);
    std::vector<std::uint32_t> judges;
    for (const auto digest : digests_) judges.push_back(lowest.at(digest));
    return judges;
  }

  /// Compares what came from each rank with the graphs of this rank and with each other. Returns what to reply: for
  /// each graph its index and the first one that is equal to it.
  std::vector<Bytestring> judged(const std::vector<Bytestring>& incoming, std::span<const std::uint32_t> judges) {
    std::multimap<std::uint64_t, std::pair<Bytestring, Owned>> known;
    const auto first_of = [&](std::uint64_t digest, Bytestring bytes, Owned owned) {
      const auto [begin, end] = known.equal_range(digest);
      for (auto at = begin; at != end; ++at)
        if (at->second.first == bytes) return at->second.second;
      known.emplace(digest, std::pair(std::move(bytes), owned));
      return owned;
    };
    std::set<std::uint64_t> asked;
    std::vector<parallel::Packer> replies(incoming.size());
    for (std::uint32_t rank = 0; rank < incoming.size(); ++rank)
      for (parallel::Unpacker unpacker(incoming[rank]); !unpacker.empty();) {
        const auto index = unpacker.get<std::uint32_t>();
        const auto digest = unpacker.get<std::uint64_t>();
        if (asked.insert(digest).second)
          for (std::uint32_t i = 0; i < programs_.size(); ++i)
            if (digests_[i] == digest && judges[i] == here_)
              (void)first_of(digest, bytes_of(*programs_[i]->graph), {here_, i});
        replies[rank].put(index);
        replies[rank].put(first_of(digest, unpacker.get_all<std::byte>(), {rank, index}));
      }
    return taken(replies);
  }

  std::span<const npu::Program* const> programs_;
  parallel::Communicator& world_;
  std::uint32_t here_;
  std::vector<std::uint64_t> digests_;  // [programs]
};

}  // namespace

Structures number_structures(std::span<const npu::NpuSpec> npus, bool replay_only, parallel::Communicator& world) {
  Structures result;
  std::vector<const npu::Program*> programs;
  for (const npu::NpuSpec& npu : npus)
    if (programs.empty() || npu.program != programs.back())
      if (result.number_of.try_emplace(npu.program, static_cast<std::uint32_t>(programs.size())).second)
        programs.push_back(npu.program);
  const auto here = static_cast<std::uint32_t>(world.rank().value());
  const std::vector<Owned> first = GraphComparison(programs, world).first_equal();
  parallel::Packer packer;  // the structures that this rank is the first to have
  for (std::uint32_t i = 0; i < programs.size(); ++i) {
    if (first[i] != Owned{here, i}) continue;
    packer.put(first[i]);
    put_structure(packer, summary_of(*programs[i], replay_only));
  }
  const Bytestring mine = packer.take();
  const auto all = world.all_gather(std::span<const std::byte>(mine));
  std::map<Owned, std::uint32_t> numbers;
  for (parallel::Unpacker unpacker(all); !unpacker.empty();) {
    numbers.emplace(unpacker.get<Owned>(), static_cast<std::uint32_t>(numbers.size()));
    result.all.push_back(get_structure(unpacker));
  }
  for (auto& [program, number] : result.number_of) number = numbers.at(first[number]);
  return result;
}

}  // namespace orrery::fold
