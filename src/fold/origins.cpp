#include "orrery/fold/origins.hpp"

#include "orrery/fold/folding.hpp"

namespace orrery::fold {

NpuId AwaitedNpus::of(const npu::NpuSpec& npu, NodeId node, NpuId representative) {
  const trace::Node& its = npu.program->graph->nodes[node.index()];
  if (its.kind == trace::NodeKind::send || its.kind == trace::NodeKind::receive) return npu.trace->peers[its.slot];
  if (its.kind != trace::NodeKind::collective) return representative;
  const GroupId group = npu.groups[npu.program->use_of_node(node)];
  const std::uint32_t its_class = class_of_[representative.index()];
  const auto [found, is_new] = first_members_.try_emplace({group, its_class}, representative);
  if (!is_new) return found->second;
  const communicator::CommunicatorSpec& spec = communicators_[group.index()];
  const std::uint32_t members = spec.num_members(static_cast<std::uint32_t>(class_of_.size()));
  for (std::uint32_t i = 0; i < members; ++i)
    if (class_of_[spec.member(i).index()] == its_class) return found->second = spec.member(i);
  return representative;
}

Origins Folding::origins() const {
  Origins result{classes_.of_npu, classes_.representatives, {}, static_cast<std::uint32_t>(communicators_.size())};
  result.communicator_of.resize(all_communicators_.size());
  for (std::uint32_t i = 0; i < groups_of_.size(); ++i)
    for (const GroupId group : groups_of_[i]) result.communicator_of[group.index()] = GroupId(i);
  return result;
}

bool Folding::refines(const Origins& origins) const {
  for (std::uint32_t npu = 0; npu < num_npus(); ++npu)
    if (origins.class_of[npu] != origins.class_of[representative_of(NpuId(npu)).index()]) return false;
  for (const auto& groups : groups_of_)
    for (const GroupId group : groups)
      if (origins.communicator_of[group.index()] != origins.communicator_of[groups.front().index()]) return false;
  return true;
}

std::vector<std::vector<GroupId>> Folding::successors(const Origins& origins) const {
  std::vector<std::vector<GroupId>> result(origins.num_communicators);
  for (std::uint32_t i = 0; i < groups_of_.size(); ++i)
    result[origins.communicator_of[groups_of_[i].front().index()].index()].push_back(GroupId(i));
  return result;
}

}  // namespace orrery::fold
