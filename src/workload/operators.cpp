#include "operators.hpp"

#include <cmath>

namespace orrery::workload {

double operand_size(Precision precision) {
  switch (precision) {
    case Precision::fp8:
      return 1;
    case Precision::mxfp8:
      return 1 + 1.0 / 32;
    case Precision::nvfp4:
      return 0.5 + 1.0 / 16;
    case Precision::bf16:
      return 2;
    case Precision::fp32:
      break;
  }
  return 4;
}

std::uint64_t operand_bytes(Precision precision, std::uint64_t values) {
  if (precision != Precision::mxfp8 && precision != Precision::nvfp4)
    return static_cast<std::uint64_t>(operand_size(precision)) * values;
  return static_cast<std::uint64_t>(std::ceil(operand_size(precision) * static_cast<double>(values)));
}

std::uint64_t value_bytes(Precision precision) { return precision == Precision::fp32 ? 4 : 2; }

std::uint32_t group_size(const Parallel& parallel, GroupKind group) {
  const std::uint32_t directions = parallel.is_mirrored() ? 2 : 1;
  switch (group) {
    case GroupKind::tensor:
      return parallel[Axis::tp];
    case GroupKind::context:
      return parallel[Axis::cp];
    case GroupKind::expert:
      return parallel.num_expert_ranks();
    case GroupKind::data:
    case GroupKind::data_sums:
      return directions * parallel[Axis::cp] * parallel[Axis::ep] * parallel.shards_along_dp();
    case GroupKind::expert_data:
    case GroupKind::expert_data_sums:
      return directions * parallel[Axis::cp] * parallel.shards_along_dp();
    case GroupKind::embedding:
      return has_ends_apart(parallel) ? 2 : 1;
    case GroupKind::all:
      return parallel.num_npus();
    case GroupKind::replicas:
      return parallel.sharding.replicas;
  }
  return 1;
}

bool has_ends_apart(const Parallel& parallel) {
  return parallel[Axis::pp] > 1 && !parallel.is_folded() && !parallel.is_mirrored();
}

std::vector<Operator> inputs_part(const std::vector<Operator>& backward) {
  std::vector<Operator> part;
  for (const Operator& op : backward) part.push_back(op.has_weights ? Operators::split(op, 0.5).first : op);
  return part;
}

std::vector<Operator> weights_part(const std::vector<Operator>& backward) {
  std::vector<Operator> part;
  for (const Operator& op : backward)
    if (op.has_weights) part.push_back(Operators::split(op, 0.5).second);
  return part;
}

std::uint64_t weights_of_products(std::span<const Layer* const> layers) {
  double weights = 0;
  for (const Layer* layer : layers)
    for (const Operator& op : layer->forward)
      if (op.has_weights) weights += op.share * static_cast<double>(op.shape.k * op.shape.n * op.shape.copies);
  return static_cast<std::uint64_t>(weights);
}

void add_collective(std::vector<Operator>& operators, const Parallel& parallel, Operator::Kind kind, const char* name,
                    trace::CollectiveKind collective, GroupKind group, std::uint64_t bytes) {
  if (group_size(parallel, group) > 1 && bytes > 0)
    operators.push_back({.kind = kind, .name = name, .bytes = bytes, .collective = collective, .group = group});
}

}  // namespace orrery::workload
