#include "operators.hpp"

namespace orrery::workload {

std::uint64_t operand_bytes(Precision precision) {
  if (precision == Precision::fp8) return 1;
  return precision == Precision::fp32 ? 4 : 2;
}

std::uint64_t value_bytes(Precision precision) { return precision == Precision::fp32 ? 4 : 2; }

std::uint32_t group_size(const Parallel& parallel, GroupKind group) {
  switch (group) {
    case GroupKind::tensor:
      return parallel[Axis::tp];
    case GroupKind::context:
      return parallel[Axis::cp];
    case GroupKind::expert:
      return parallel[Axis::ep];
    case GroupKind::data:
      return parallel[Axis::cp] * parallel[Axis::ep] * parallel[Axis::dp];
    case GroupKind::expert_data:
      return parallel[Axis::cp] * parallel[Axis::dp];
    case GroupKind::embedding:
      return parallel[Axis::pp] > 1 ? 2 : 1;
  }
  return 1;
}

void add_collective(std::vector<Operator>& operators, const Parallel& parallel, Operator::Kind kind, const char* name,
                    trace::CollectiveKind collective, GroupKind group, std::uint64_t bytes) {
  if (group_size(parallel, group) > 1 && bytes > 0)
    operators.push_back({.kind = kind, .name = name, .bytes = bytes, .collective = collective, .group = group});
}

}  // namespace orrery::workload
