#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "common_order.hpp"
#include "orrery/base/mix.hpp"
#include "orrery/base/text.hpp"
#include "orrery/check/agreement.hpp"
#include "orrery/parallel/packing.hpp"

namespace orrery::check {
namespace {

using trace::NodeKind;

/// [uses] the first use of the same communicator: a named group is one, whatever dimensions its nodes name.
std::vector<std::uint32_t> first_uses(std::span<const GroupId> groups) {
  std::map<GroupId, std::uint32_t> first;
  std::vector<std::uint32_t> result;
  for (const GroupId group : groups)
    result.push_back(first.try_emplace(group, static_cast<std::uint32_t>(result.size())).first->second);
  return result;
}

std::uint64_t label_of(NodeKind node, trace::CollectiveKind kind, std::uint64_t size) {
  return mix(static_cast<std::uint64_t>(node) << 8U | (static_cast<std::uint64_t>(kind) + 1), size);
}

/// The collectives, and accesses to memory, of one NPU in one communicator.
struct Sequence {
  std::vector<std::uint32_t> nodes;  ///< in an order that the dependencies allow
  std::uint64_t contents = 0;        ///< of kinds and sizes, whatever their order
  std::uint64_t order = 0;           ///< the same, in the order of `nodes`

  void add(const trace::Graph& graph, std::uint32_t node) {
    const auto& of_group = graph.nodes[node];
    const auto label = label_of(of_group.kind, of_group.collective, of_group.size);
    nodes.push_back(node);
    contents += label;
    order = mix(order, label);
  }
};

/// The collectives of each communicator of an NPU, computed once for NPUs that are alike.
class Sequences {
 public:
  /// [uses] empty where it is not the first use of its communicator.
  const std::vector<Sequence>& of(const npu::NpuSpec& npu) {
    auto first = first_uses(npu.groups);
    const auto [found, added] = known_.try_emplace({npu.program, first});
    if (!added) return found->second;
    auto& sequences = found->second;
    sequences.resize(first.size());
    if (first.empty()) return sequences;
    const auto& graph = *npu.program->graph;
    for (const auto i : graph.topological_order())
      if (graph.nodes[i].is_of_group()) sequences[first[npu.program->use_of_node(NodeId(i))]].add(graph, i);
    return sequences;
  }

 private:
  std::map<std::pair<const npu::Program*, std::vector<std::uint32_t>>, std::vector<Sequence>> known_;
};

/// For one NPU and group: enough to see whether members may disagree.
struct Digest {
  std::uint32_t group = 0;
  std::uint32_t npu = 0;
  std::uint64_t count = 0;
  std::uint64_t contents = 0, order = 0;  ///< as of a Sequence

  bool same_contents(const Digest& other) const { return count == other.count && contents == other.contents; }
};

/// Two members of a group that disagree, or may if it is about the order alone.
struct Dispute {
  std::uint32_t group = 0;
  std::uint32_t first = 0, second = 0;
  bool about_order = false;

  auto operator<=>(const Dispute&) const = default;
};

/// Members that were read but sent no digest do no collective in the group: the first of them.
std::optional<std::uint32_t> absent_member(const Parties& parties, std::span<const Digest> digests) {
  const auto& members = parties.communicators[digests.front().group].group->members;
  const auto size = members.empty() ? parties.host_of_npu.size() : members.size();
  if (digests.size() == size) return {};
  std::set<std::uint32_t> present;
  for (const Digest& digest : digests) present.insert(digest.npu);
  for (std::size_t i = 0; i < size; ++i) {
    const auto npu = members.empty() ? static_cast<std::uint32_t>(i) : members[i].value();
    if (parties.is_read[npu] && !present.contains(npu)) return npu;
  }
  return {};
}

/// Of one group: each that differs in a new way from the lowest member, for the order also from the one before it.
void find_disputes(const Parties& parties, std::span<const Digest> digests, std::vector<Dispute>& disputes) {
  const Digest& first = digests.front();
  std::set<std::pair<std::uint64_t, std::uint64_t>> known = {{first.contents, first.order}};
  const Digest* previous = nullptr;
  for (const Digest& digest : digests) {
    if (!known.emplace(digest.contents, digest.order).second) continue;
    const bool about_order = digest.same_contents(first);
    disputes.push_back({first.group, first.npu, digest.npu, about_order});
    if (!about_order) continue;
    if (previous != nullptr) disputes.push_back({first.group, previous->npu, digest.npu, true});
    previous = &digest;
  }
  if (const auto absent = absent_member(parties, digests)) disputes.push_back({first.group, first.npu, *absent, false});
}

/// The disputes of the groups hosted here.
std::vector<Dispute> find_disputes(const Parties& parties, std::vector<Digest> digests) {
  std::sort(digests.begin(), digests.end(),
            [](const Digest& a, const Digest& b) { return std::tie(a.group, a.npu) < std::tie(b.group, b.npu); });
  std::vector<Dispute> disputes;
  for (auto first = digests.begin(); first != digests.end();) {
    const auto last = std::find_if(first, digests.end(), [&](const Digest& d) { return d.group != first->group; });
    find_disputes(parties, std::span(first, last), disputes);
    first = last;
  }
  return disputes;
}

/// What one NPU does in a group.
struct Account {
  struct Step {
    std::uint64_t id = 0, size = 0;
    NodeKind node{};
    trace::CollectiveKind kind{};
    std::string name;

    std::uint64_t label() const { return label_of(node, kind, size); }
    std::string text() const {
      return fmt::format("node {} '{}' ({} of {})", id, name, trace::name(node, kind), counted(size, "byte"));
    }
  };
  std::string file;
  std::vector<Step> steps;
  Calls calls;  ///< with a graph only if the order is in dispute
};

using MemberOfGroup = std::pair<std::uint32_t, std::uint32_t>;  // group, NPU

void put_account(parallel::Packer& packer, const Parties& parties, const npu::NpuSpec& npu, std::uint32_t group,
                 bool with_graph, Sequences& sequences) {
  const auto& graph = *npu.trace->graph;
  packer.put(group);
  packer.put(npu.id.value());
  packer.put_text(parties.store.file(*npu.trace));
  const auto use = std::find(npu.groups.begin(), npu.groups.end(), GroupId(group)) - npu.groups.begin();
  static const std::vector<std::uint32_t> nothing;
  const auto& nodes = static_cast<std::size_t>(use) < npu.groups.size()
                          ? sequences.of(npu)[static_cast<std::size_t>(use)].nodes
                          : nothing;
  packer.put_all(std::span(nodes));
  for (const auto i : nodes) {
    packer.put(npu.trace->id_of(NodeId(i)));
    packer.put(graph.nodes[i].size);
    packer.put(graph.nodes[i].kind);
    packer.put(graph.nodes[i].collective);
    packer.put_text(parties.store.name_of(*npu.trace, NodeId(i)));
  }
  std::vector<std::uint32_t> first_successor;
  if (with_graph)
    for (const auto& node : graph.nodes) first_successor.push_back(node.first_successor);
  packer.put_all(std::span<const std::uint32_t>(first_successor));
  packer.put_all(with_graph ? std::span(graph.successors) : std::span<const std::uint32_t>());
}

/// On rank 0: what all who are in a dispute do.
std::map<MemberOfGroup, Account> gather_accounts(const Parties& parties, const std::vector<Dispute>& disputes,
                                                 Sequences& sequences, parallel::Communicator& world) {
  std::map<MemberOfGroup, bool> wanted;  // and whether with the graph
  for (const Dispute& dispute : disputes)
    for (const auto npu : {dispute.first, dispute.second}) {
      bool& with_graph = wanted[{dispute.group, npu}];
      with_graph = with_graph || dispute.about_order;
    }
  parallel::Packer packer;
  for (const auto& [member, with_graph] : wanted) {
    const auto npu = std::find_if(parties.npus.begin(), parties.npus.end(),
                                  [&](const auto& n) { return n.id.value() == member.second; });
    if (npu != parties.npus.end()) put_account(packer, parties, *npu, member.first, with_graph, sequences);
  }
  const std::vector<std::byte> bytes = packer.take();
  const auto gathered = world.gather(std::span<const std::byte>(bytes), Rank(0));
  std::map<MemberOfGroup, Account> accounts;
  for (parallel::Unpacker unpacker(gathered); !unpacker.empty();) {
    const auto group = unpacker.get<std::uint32_t>();
    Account& account = accounts[{group, unpacker.get<std::uint32_t>()}];
    account.file = unpacker.get_text();
    account.calls.nodes = unpacker.get_all<std::uint32_t>();
    for (std::size_t i = 0; i < account.calls.nodes.size(); ++i) {
      auto& step = account.steps.emplace_back();
      step.id = unpacker.get<std::uint64_t>();
      step.size = unpacker.get<std::uint64_t>();
      step.node = unpacker.get<NodeKind>();
      step.kind = unpacker.get<trace::CollectiveKind>();
      step.name = unpacker.get_text();
      account.calls.labels.push_back(step.label());
    }
    account.calls.first_successor = unpacker.get_all<std::uint32_t>();
    account.calls.successors = unpacker.get_all<std::uint32_t>();
  }
  return accounts;
}

/// The first step that `account` has more often than `other`.
const Account::Step* surplus(const Account& account, const Account& other) {
  std::map<std::uint64_t, std::size_t> left;
  for (const auto& step : other.steps) ++left[step.label()];
  for (const auto& step : account.steps)
    if (left[step.label()]-- == 0) return &step;
  return nullptr;
}

/// A member as a message shows it.
struct Party {
  std::uint32_t npu;
  const Account& account;

  Place place(const Account::Step* step) const {
    Place place{.file = account.file, .npu = npu};
    if (step == nullptr) return place;
    place.node = step->id;
    place.node_name = step->name;
    return place;
  }
};

Error disagreement(const std::string& group, const Party& a, const Party& b) {
  const auto *mine = surplus(a.account, b.account), *theirs = surplus(b.account, a.account);
  std::string text;
  const auto say = [&](const Party& who, const Account::Step* step, const Party& other) {
    if (step != nullptr)
      text += fmt::format("{}NPU {} has {}, which NPU {} has {}", text.empty() ? "" : "; ", who.npu, step->text(),
                          other.npu, other.account.steps.empty() ? "not, nor any other" : "not, or not as often");
  };
  say(a, mine, b);
  say(b, theirs, a);
  return {ErrorCode::bad_input, theirs != nullptr ? b.place(theirs) : a.place(mine),
          fmt::format("the members of {} disagree on their collectives: {}", group, text),
          "the same kinds and sizes in the same order on all members", "Correct the traces."};
}

Error contradiction(const std::string& group, const Party& a, const Party& b, const std::vector<Before>& circle) {
  std::string text;
  const Account::Step* shown = nullptr;
  for (const Before& before : circle) {
    const Party& who = before.of_second_member ? b : a;
    const auto &first = who.account.steps[before.first], &then = who.account.steps[before.then];
    if (before.of_second_member) shown = &first;
    text += fmt::format("{}NPU {} has {} before {}", text.empty() ? "" : "; ", who.npu, first.text(), then.text());
  }
  return {ErrorCode::bad_input, b.place(shown),
          fmt::format("the members of {} disagree on the order of their collectives: {}", group, text),
          "dependencies that leave one order for all members", "Correct the dependencies in the traces."};
}

}  // namespace

void check_collectives(const Parties& parties, parallel::Communicator& world, Faults& faults) {
  Sequences sequences;
  std::vector<std::vector<Digest>> digests(static_cast<std::size_t>(world.size()));
  for (const auto& npu : parties.npus) {
    const auto& of_npu = sequences.of(npu);
    for (std::size_t use = 0; use < npu.groups.size(); ++use) {
      const auto& [nodes, contents, order] = of_npu[use];
      if (nodes.empty()) continue;
      const auto& spec = parties.communicators[npu.groups[use].index()];
      digests[spec.host.index()].push_back({spec.id.value(), npu.id.value(), nodes.size(), contents, order});
    }
  }
  std::vector<Digest> mine;
  for (const auto& part : world.exchange(digests)) mine.insert(mine.end(), part.begin(), part.end());
  const auto here = find_disputes(parties, std::move(mine));
  auto disputes = world.all_gather(std::span<const Dispute>(here));
  if (disputes.empty()) return;
  std::ranges::sort(disputes);
  const auto accounts = gather_accounts(parties, disputes, sequences, world);
  if (!world.is_root()) return;
  std::set<MemberOfGroup> told;
  for (const Dispute& dispute : disputes) {
    if (told.contains({dispute.group, dispute.second})) continue;
    const std::string group = trace::describe(*parties.communicators[dispute.group].group);
    const Party a{dispute.first, accounts.at({dispute.group, dispute.first})};
    const Party b{dispute.second, accounts.at({dispute.group, dispute.second})};
    std::vector<Before> circle;
    if (dispute.about_order) circle = find_contradiction(a.account.calls, b.account.calls);
    if (dispute.about_order && circle.empty()) continue;  // the run compares what really happens
    faults.add(dispute.about_order ? contradiction(group, a, b, circle) : disagreement(group, a, b));
    told.emplace(dispute.group, dispute.second);
  }
}

}  // namespace orrery::check
