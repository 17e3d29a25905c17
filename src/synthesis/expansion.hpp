#pragma once

#include <cstdint>
#include <vector>

#include "orrery/synthesis/model.hpp"

namespace orrery::synthesis {

/// A word of a sequence at another scale: an occurrence of a token, as that occurrence of what was learned.
struct ScaledWord {
  std::uint32_t token = 0;
  std::uint32_t source = 0;
};

/// Returns whether no role begins a micro-batch's second pass before all first passes are over.
bool runs_all_forward(const Model& model);

/// Returns the sequence of a role for another number of micro-batches. Where each token of a micro-batch occurs once
/// (or equally often) in a stretch, this stretch is repeated or left out: this keeps how many micro-batches are on
/// their way. With `all_forward` first and second passes are repeated apart. Throws Error (bad_input) if there is no
/// such stretch. O(words * micro-batches).
std::vector<ScaledWord> scale_sequence(const Role& role, std::uint32_t learned, std::uint32_t micro_batches,
                                       bool all_forward);

/// A tensor that a node of a program lists last.
struct ScaledTensor {
  std::uint32_t maker = 0;  ///< the node that lists it first: an earlier one, or the same
  const HeldTensor* source = nullptr;
};

/// A node of a program.
struct ProgramNode {
  const Slot* slot = nullptr;
  std::vector<std::uint32_t> dependencies = {};  ///< earlier nodes, ascending
  std::vector<ScaledTensor> held = {};
};

struct ScaledProgram {
  std::vector<ProgramNode> nodes = {};
  std::uint64_t dropped_edges = 0;
};

/// Returns the nodes of a role. Loops over layers get `more_layers` iterations more. Throws Error (bad_input) if a loop
/// would have none. O(nodes + dependencies).
ScaledProgram expand(const Role& role, const std::vector<ScaledWord>& sequence, std::int64_t more_layers);

}  // namespace orrery::synthesis
