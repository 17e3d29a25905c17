#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "agreement.hpp"
#include "orrery/base/mix.hpp"
#include "orrery/executor/kinds.hpp"
#include "packing.hpp"

namespace orrery::sim {
namespace {

using trace::NodeKind;

/// The collectives of one structure in one use, in the order that dependencies fix, or by id if they fix none.
struct Sequence {
  std::vector<std::uint32_t> nodes;
  bool is_ordered = false;
};

/// For one NPU and group: enough to see whether members agree.
struct Digest {
  std::uint32_t group = 0;
  std::uint32_t npu = 0;
  std::uint64_t count = 0;
  std::uint64_t contents = 0;  ///< of kinds and sizes, whatever their order
  std::uint64_t order = 0;     ///< the same, in order; 0 if dependencies do not fix it
};

std::uint64_t digest_of(const trace::Node& node) {
  return mix(static_cast<std::uint64_t>(node.collective) + 1, node.size);
}

// The collectives of a use are ordered by dependencies if and only if each has another number of them before it on its
// longest chain: the one with k before it then depends on one with k - 1 before it, and there is only one such.
std::vector<Sequence> sequences_of(const executor::Program& program) {
  const auto& graph = *program.graph;
  const auto n = graph.num_nodes();
  std::vector<Sequence> sequences(program.uses.size());
  for (std::uint32_t i = 0; i < n; ++i)
    if (graph.nodes[i].kind == NodeKind::collective) sequences[program.use_of_node(NodeId(i))].nodes.push_back(i);
  std::vector<std::uint32_t> depth(n);
  const auto order = graph.topological_order();
  for (std::uint32_t use = 0; use < sequences.size(); ++use) {
    auto& sequence = sequences[use];
    std::fill(depth.begin(), depth.end(), 0);
    for (const auto i : order) {
      const auto& node = graph.nodes[i];
      const bool counts = node.kind == NodeKind::collective && program.use_of_node(NodeId(i)) == use;
      for (const auto s : graph.successors_of(NodeId(i))) depth[s] = std::max(depth[s], depth[i] + (counts ? 1 : 0));
    }
    const auto shallower = [&](std::uint32_t a, std::uint32_t b) { return depth[a] < depth[b]; };
    std::vector<std::uint32_t> sorted = sequence.nodes;
    std::stable_sort(sorted.begin(), sorted.end(), shallower);
    const auto twice =
        std::adjacent_find(sorted.begin(), sorted.end(), [&](auto a, auto b) { return depth[a] == depth[b]; });
    sequence.is_ordered = twice == sorted.end();
    if (sequence.is_ordered) sequence.nodes = std::move(sorted);
  }
  return sequences;
}

class Sequences {
 public:
  const std::vector<Sequence>& of(const executor::Program& program) {
    auto [found, added] = by_program_.try_emplace(&program);
    if (added) found->second = sequences_of(program);
    return found->second;
  }

 private:
  std::map<const executor::Program*, std::vector<Sequence>> by_program_;
};

Digest summarise(const trace::Graph& graph, const Sequence& sequence, GroupId group, NpuId npu) {
  Digest digest{group.value(), npu.value(), sequence.nodes.size(), 0, sequence.is_ordered ? 1U : 0U};
  for (const auto i : sequence.nodes) {
    const auto one = digest_of(graph.nodes[i]);
    digest.contents += one;
    if (sequence.is_ordered) digest.order = mix(digest.order, one);
  }
  return digest;
}

/// Two members of a group that do not agree.
struct Dispute {
  std::uint32_t group = ~0U;
  std::uint32_t first = 0, second = 0;

  auto operator<=>(const Dispute&) const = default;
};

/// At the groups' hosts: the least dispute there. A member that sent no digest does no collective at all.
Dispute find_dispute(const Parties& parties, std::vector<Digest> digests) {
  std::sort(digests.begin(), digests.end(),
            [](const Digest& a, const Digest& b) { return std::tie(a.group, a.npu) < std::tie(b.group, b.npu); });
  Dispute least;
  for (auto first = digests.begin(); first != digests.end();) {
    const auto last = std::find_if(first, digests.end(), [&](const Digest& d) { return d.group != first->group; });
    const auto& members = parties.communicators[first->group].group->members;
    const auto size = members.empty() ? parties.host_of_npu.size() : members.size();
    const auto other = std::find_if(first, last, [&](const Digest& d) {
      return d.count != first->count || d.contents != first->contents ||
             (d.order != 0 && first->order != 0 && d.order != first->order);
    });
    if (other != last) {
      least = std::min(least, {first->group, first->npu, other->npu});
    } else if (static_cast<std::size_t>(last - first) < size) {
      for (std::size_t i = 0; i < size; ++i) {
        const auto npu = members.empty() ? static_cast<std::uint32_t>(i) : members[i].value();
        if (std::none_of(first, last, [&](const Digest& d) { return d.npu == npu; })) {
          least = std::min(least, {first->group, first->npu, npu});
          break;
        }
      }
    }
    first = last;
  }
  return least;
}

/// What one NPU does in a group, for the message.
struct Account {
  struct Step {
    std::uint64_t id = 0, size = 0;
    trace::CollectiveKind kind{};
    std::string name;
    bool operator==(const Step& other) const { return size == other.size && kind == other.kind; }
    std::string text() const { return fmt::format("{} of {} bytes (node {} '{}')", trace::name(kind), size, id, name); }
  };
  std::string file;
  std::vector<Step> steps;
};

std::vector<std::byte> pack_account(const Parties& parties, const executor::NpuSpec& npu, GroupId group,
                                    Sequences& sequences) {
  Packer packer;
  packer.put(npu.id.value());
  packer.put_text(parties.store.file(*npu.trace));
  for (std::size_t use = 0; use < npu.groups.size(); ++use) {
    if (npu.groups[use] != group) continue;
    const auto& nodes = sequences.of(*npu.program)[use].nodes;
    packer.put(static_cast<std::uint64_t>(nodes.size()));
    for (const auto i : nodes) {
      const auto& node = npu.trace->graph->nodes[i];
      packer.put(npu.trace->id_of(NodeId(i)));
      packer.put(node.size);
      packer.put(node.collective);
      packer.put_text(parties.store.name_of(*npu.trace, NodeId(i)));
    }
    return packer.take();
  }
  packer.put(std::uint64_t{0});
  return packer.take();
}

[[noreturn]] void refuse(const trace::Group& group, const Dispute& dispute,
                         std::map<std::uint32_t, Account>& accounts) {
  const Account& a = accounts[dispute.first];
  const Account& b = accounts[dispute.second];
  std::size_t k = 0;
  while (k < a.steps.size() && k < b.steps.size() && a.steps[k] == b.steps[k]) ++k;
  const auto step = [k](const Account& account) {
    return k < account.steps.size() ? account.steps[k].text() : std::string("nothing");
  };
  const bool first_has = k < a.steps.size();
  const Account& shown = first_has ? a : b;
  throw Error(
      ErrorCode::bad_input, {.file = shown.file, .npu = first_has ? dispute.first : dispute.second},
      fmt::format("the members of group '{}' disagree on their collective number {}: NPU {} has {} of {} in all, "
                  "NPU {} has {} of {} in all",
                  group.name, k + 1, dispute.first, step(a), a.steps.size(), dispute.second, step(b), b.steps.size()),
      "the same kinds and sizes in the same order on all members", "Correct the traces.");
}

}  // namespace

void check_collectives(const Parties& parties, parallel::Communicator& world) {
  Sequences sequences;
  std::vector<std::vector<Digest>> digests(static_cast<std::size_t>(world.size()));
  for (const auto& npu : parties.npus) {
    const auto& of_npu = sequences.of(*npu.program);
    for (std::size_t use = 0; use < npu.groups.size(); ++use) {
      const auto& spec = parties.communicators[npu.groups[use].index()];
      digests[spec.host.index()].push_back(summarise(*npu.trace->graph, of_npu[use], spec.id, npu.id));
    }
  }
  std::vector<Digest> mine;
  for (const auto& part : world.exchange(digests)) mine.insert(mine.end(), part.begin(), part.end());
  const Dispute here = find_dispute(parties, std::move(mine));
  const auto all = world.all_gather(std::span<const Dispute>(&here, 1));
  const Dispute dispute = *std::min_element(all.begin(), all.end());
  if (dispute.group == ~0U) return;

  std::vector<std::byte> bytes;
  for (const auto& npu : parties.npus)
    if (npu.id.value() == dispute.first || npu.id.value() == dispute.second) {
      const auto account = pack_account(parties, npu, GroupId(dispute.group), sequences);
      bytes.insert(bytes.end(), account.begin(), account.end());
    }
  const auto gathered = world.gather<std::byte>(bytes, Rank(0));
  if (!world.is_root()) return;
  std::map<std::uint32_t, Account> accounts;
  for (Unpacker unpacker(gathered); !unpacker.empty();) {
    Account& account = accounts[unpacker.get<std::uint32_t>()];
    account.file = unpacker.get_text();
    for (auto count = unpacker.get<std::uint64_t>(); count > 0; --count) {
      auto& step = account.steps.emplace_back();
      step.id = unpacker.get<std::uint64_t>();
      step.size = unpacker.get<std::uint64_t>();
      step.kind = unpacker.get<trace::CollectiveKind>();
      step.name = unpacker.get_text();
    }
  }
  refuse(*parties.communicators[dispute.group].group, dispute, accounts);
}

}  // namespace orrery::sim
