#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/communicator/spec.hpp"
#include "orrery/npu/spec.hpp"

namespace orrery::fold {

/// Returns for whom a node of an NPU has waited, in terms of its own peers and groups.
class AwaitedNpus {
 public:
  /// `class_of`: [npus]. `communicators`: those of the run that is not folded. Both outlive it.
  AwaitedNpus(std::span<const std::uint32_t> class_of, std::span<const communicator::CommunicatorSpec> communicators)
      : class_of_(class_of), communicators_(communicators) {}

  /// Returns for whom a node of `npu` waited, where that of its representative waited for `representative`: the peer of
  /// a message, or the first member of that class in the group. `npu.groups` are those of the run that is not folded.
  NpuId of(const npu::NpuSpec& npu, NodeId node, NpuId representative);

 private:
  std::span<const std::uint32_t> class_of_;
  std::span<const communicator::CommunicatorSpec> communicators_;
  std::map<std::pair<GroupId, std::uint32_t>, NpuId> first_members_;  // of groups by class
};

/// Who represented whom in a folding that finer classes have replaced.
struct Origins {
  std::vector<std::uint32_t> class_of;         ///< [npus]
  std::vector<std::uint32_t> representatives;  ///< [classes]
  std::vector<GroupId> communicator_of;        ///< [groups of the run that is not folded]
  std::uint32_t num_communicators = 0;

  NpuId representative_of(NpuId npu) const { return NpuId(representatives[class_of[npu.index()]]); }
};

}  // namespace orrery::fold
