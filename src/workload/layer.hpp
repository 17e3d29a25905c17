#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "orrery/trace/graph.hpp"
#include "orrery/workload/description.hpp"

namespace orrery::workload {

/// The groups of an NPU: all NPUs that differ from it along some axes only.
enum class GroupKind : std::uint8_t {
  tensor,       ///< tp
  context,      ///< cp
  expert,       ///< ep
  data,         ///< cp, ep, dp: copies of what is no expert
  expert_data,  ///< cp, dp: copies of an expert
  embedding,    ///< first and last stage, which hold the embedding both
};

/// One thing that an NPU does for one micro-batch in one layer. `name` is a literal.
struct Op {
  enum class Kind : std::uint8_t {
    compute,
    collective,
    aside,  ///< a collective that what follows does not wait for, up to the next `join`
    join,   ///< what follows waits for all collectives aside
  };
  Kind kind = Kind::compute;
  const char* name = "";
  std::uint64_t flops = 0;
  std::uint64_t bytes = 0;  ///< moved by a compute node; comm_size of a collective
  Time duration = {};       ///< of a compute node without FLOPs and bytes: what it takes
  trace::CollectiveKind collective{};
  GroupKind group{};
};

/// A layer as one NPU executes it.
struct Layer {
  std::string name;
  std::vector<Op> forward = {}, backward = {};
  std::vector<Op> again = {};       ///< before `backward`: full recomputation
  std::uint64_t dense = 0;          ///< parameters on the NPU, copies in its data group
  std::uint64_t experts = 0;        ///< the same of experts, copies in its expert_data group
  std::uint64_t sharded = 0;        ///< without copies, updated in the backward pass
  std::uint64_t tied = 0;           ///< of `dense`: copies in its embedding group too
  std::uint64_t activations = 0;    ///< bytes kept for the backward pass of a micro-batch
  std::uint64_t recomputed = 0;     ///< bytes that `again` makes and `backward` needs
  std::uint64_t output = 0;         ///< bytes handed to the next layer for a micro-batch
  std::optional<Time> update = {};  ///< what the optimizer takes for it, if its parameters do not say
  bool extra = false;               ///< embedding or output layer: not counted when layers are dealt to stages
};

/// The layers of the whole model, in order, as an NPU of its stage executes each.
std::vector<Layer> layers_of(const Description& description);

/// Parameters of the whole model, all and those that a sample passes.
struct ParameterCount {
  std::uint64_t all = 0, active = 0;
};
ParameterCount parameters_of(const Model& model);

/// Bytes of a value: of operands and results of products, of what is communicated and kept, of gradients.
std::uint64_t operand_bytes(Precision precision);
std::uint64_t value_bytes(Precision precision);

}  // namespace orrery::workload
