#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "orrery/trace/builder.hpp"

namespace orrery::workload {

/// A tensor and the node that makes it.
struct MadeTensor {
  std::string name;
  std::uint64_t bytes = 0;
  std::optional<NodeId> maker = {};
};

/// Lists a tensor with its maker and with the node that needs it last, so that local memory holds it from the start of
/// the one to the end of the other. Lists nothing for a tensor of 0 bytes, without a maker, or that no later node
/// needs. Several tensors may have one name, as those of a layer that is repeated.
inline void list_until(trace::Builder& builder, const MadeTensor& tensor, std::optional<NodeId> last) {
  if (tensor.bytes == 0 || !tensor.maker || !last || *last <= *tensor.maker) return;
  const std::uint32_t number = builder.new_tensor(tensor.name, Bytes(tensor.bytes));
  builder.list(*tensor.maker, number, false, true);
  builder.list(*last, number, true, false);
}

/// Lists with one node a tensor that local memory holds throughout the step.
inline void list_throughout(trace::Builder& builder, const std::string& name, std::uint64_t bytes, NodeId node) {
  if (bytes > 0) builder.list(node, builder.tensor(name, Bytes(bytes)), true, true);
}

}  // namespace orrery::workload
