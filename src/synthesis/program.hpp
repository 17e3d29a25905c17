#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "orrery/synthesis/model.hpp"
#include "orrery/trace/store.hpp"
#include "views.hpp"

namespace orrery::synthesis {

constexpr bool is_message(trace::NodeKind kind) {
  return kind == trace::NodeKind::send || kind == trace::NodeKind::receive;
}

/// A tensor of the local memory, at the node that lists it last.
struct ProgramTensor {
  std::uint32_t maker = 0;  ///< position of the node that lists it first
  TensorUse use;
  std::uint64_t bytes = 0;
};

/// The nodes of a role in canonical order: dependencies first, and of nodes that may come next the one with the lowest
/// id.
struct Program {
  std::uint32_t npu = 0;  ///< the first one of the role
  std::uint64_t num_npus = 0;
  std::vector<std::uint32_t> nodes = {};     ///< [length] NodeId values
  std::vector<std::uint32_t> families = {};  ///< [length]
  std::vector<Sizes> sizes = {};             ///< [length]
  std::vector<std::uint32_t> symbols = {};   ///< [length] equal for nodes of one family with sizes of one cluster
  /// [length] positions of the nodes on which each depends, ascending.
  std::vector<std::vector<std::uint32_t>> dependencies = {};
  std::vector<std::vector<ProgramTensor>> held = {};  ///< [length] tensors that each lists last
};

/// Returns the program of a role, without symbols. New families are added. O(nodes log nodes + dependencies).
Program read_program(const trace::NpuTrace& trace, const Views& views, std::uint32_t npu,
                     std::vector<Family>& families);

/// Gives the nodes of all programs their symbols. Sizes of one family are of one cluster if no gap between them is
/// wider than `gap` decades. O(nodes log nodes).
void give_symbols(std::span<Program> programs, double gap = 0.04);

}  // namespace orrery::synthesis
