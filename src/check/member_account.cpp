#include "member_account.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "orrery/base/text.hpp"
#include "orrery/parallel/packing.hpp"

namespace orrery::check {
namespace {

/// Returns the nodes of an NPU in a group; empty if it has none there.
std::vector<std::uint32_t> nodes_of(const npu::NpuSpec& npu, std::uint32_t group, Sequences& sequences) {
  const auto use = static_cast<std::size_t>(std::ranges::find(npu.groups, GroupId(group)) - npu.groups.begin());
  return use < npu.groups.size() ? sequences.of(npu)[use].nodes : std::vector<std::uint32_t>();
}

void put_account(parallel::Packer& packer, const Subject& subject, const npu::NpuSpec& npu, MemberOfGroup member,
                 bool with_graph, Sequences& sequences) {
  const auto& graph = *npu.trace->graph;
  const auto nodes = nodes_of(npu, member.first, sequences);
  packer.put(member.first);
  packer.put(member.second);
  packer.put_text(subject.store.file(*npu.trace));
  packer.put_all(std::span<const std::uint32_t>(nodes));
  for (const auto i : nodes) {
    packer.put(npu.trace->id_of(NodeId(i)));
    packer.put(graph.nodes[i].size);
    packer.put(graph.nodes[i].kind);
    packer.put(graph.nodes[i].collective);
    packer.put(sequences.label_of(graph.nodes[i]));
    packer.put_text(subject.store.name_of(*npu.trace, NodeId(i)));
  }
  std::vector<std::uint32_t> first_successor;
  if (with_graph)
    for (const auto& node : graph.nodes) first_successor.push_back(node.first_successor);
  packer.put_all(std::span<const std::uint32_t>(first_successor));
  packer.put_all(with_graph ? std::span(graph.successors) : std::span<const std::uint32_t>());
}

MemberAccount get_account(parallel::Unpacker& unpacker, std::uint32_t npu) {
  MemberAccount account;
  account.npu = npu;
  account.file = unpacker.get_text();
  account.calls.nodes = unpacker.get_all<std::uint32_t>();
  for (std::size_t i = 0; i < account.calls.nodes.size(); ++i) {
    auto& node = account.nodes.emplace_back();
    node.id = unpacker.get<std::uint64_t>();
    node.size = unpacker.get<std::uint64_t>();
    node.node = unpacker.get<trace::NodeKind>();
    node.kind = unpacker.get<trace::CollectiveKind>();
    node.label = unpacker.get<std::uint64_t>();
    node.name = unpacker.get_text();
    account.calls.labels.push_back(node.label);
  }
  account.calls.first_successor = unpacker.get_all<std::uint32_t>();
  account.calls.successors = unpacker.get_all<std::uint32_t>();
  return account;
}

}  // namespace

std::string MemberAccount::Node::text() const {
  return fmt::format("node {} '{}' ({} of {})", id, name, trace::name(node, kind), counted(size, "byte"));
}

Place MemberAccount::place(const Node* node) const {
  Place place{.file = file, .npu = npu};
  if (node == nullptr) return place;
  place.node = node->id;
  place.node_name = node->name;
  return place;
}

std::map<MemberOfGroup, MemberAccount> gather_accounts(const Subject& subject,
                                                       const std::map<MemberOfGroup, bool>& wanted,
                                                       Sequences& sequences, parallel::Communicator& world) {
  parallel::Packer packer;
  for (const auto& [member, with_graph] : wanted) {
    const auto npu = std::ranges::find(subject.run.npus, NpuId(member.second), &npu::NpuSpec::id);
    if (npu != subject.run.npus.end()) put_account(packer, subject, *npu, member, with_graph, sequences);
  }
  const std::vector<std::byte> bytes = packer.take();
  const auto gathered = world.gather(std::span<const std::byte>(bytes), Rank(0));
  std::map<MemberOfGroup, MemberAccount> accounts;
  for (parallel::Unpacker unpacker(gathered); !unpacker.empty();) {
    const auto group = unpacker.get<std::uint32_t>();
    const auto npu = unpacker.get<std::uint32_t>();
    accounts[{group, npu}] = get_account(unpacker, npu);
  }
  return accounts;
}

}  // namespace orrery::check
