#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "orrery/npu/spec.hpp"
#include "orrery/trace/graph.hpp"

namespace orrery::check {

/// The collectives, and accesses to memory, of one NPU in one communicator.
struct Sequence {
  std::vector<std::uint32_t> nodes;  ///< nodes in an order that the dependencies allow
  std::uint64_t contents = 0;        ///< digest of kinds and sizes in any order
  std::uint64_t order = 0;           ///< digest of kinds and sizes in the order of `nodes`
};

/// The sequences of NPUs, computed once for NPUs that share a program and use it in the same communicators.
class Sequences {
 public:
  /// `may_be_uneven`: members of an all-to-all need not agree on its size.
  explicit Sequences(bool may_be_uneven) : may_be_uneven_(may_be_uneven) {}

  /// Returns a number that is equal for nodes of a group on which members agree: of the same kind and size.
  std::uint64_t label_of(const trace::Node& node) const;
  /// Returns one sequence for each use of the NPU's program: [uses]. A communicator that has several uses has its
  /// whole sequence at the first one, also nodes that name other dimensions. O(nodes) for a new combination.
  const std::vector<Sequence>& of(const npu::NpuSpec& npu);

 private:
  void append(Sequence& sequence, const trace::Graph& graph, std::uint32_t node) const;

  bool may_be_uneven_;
  std::map<std::pair<const npu::Program*, std::vector<std::uint32_t>>, std::vector<Sequence>> known_;
};

}  // namespace orrery::check
