#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "orrery/trace/builder.hpp"

namespace orrery::workload {

/// A tensor that a node makes.
struct Made {
  std::string name;
  std::uint64_t bytes = 0;
  std::optional<NodeId> maker = {};
};

/// Lists a tensor with its maker and with the node that needs it last, so that local memory has it from the beginning
/// of the one to the end of the other. Nothing of 0 bytes, of no node, or where it is not needed later.
inline void hand_over(trace::Builder& builder, const Made& tensor, std::optional<NodeId> last) {
  if (tensor.bytes == 0 || !tensor.maker || !last || *last <= *tensor.maker) return;
  const std::uint32_t number = builder.tensor(tensor.name, Bytes(tensor.bytes));
  builder.list(*tensor.maker, number, false, true);
  builder.list(*last, number, true, false);
}

/// Lists what is there throughout the step with one of its nodes.
inline void keep(trace::Builder& builder, const std::string& name, std::uint64_t bytes, NodeId node) {
  if (bytes > 0) builder.list(node, builder.tensor(name, Bytes(bytes)), true, true);
}

}  // namespace orrery::workload
