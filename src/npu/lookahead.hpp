#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "orrery/npu/program.hpp"
#include "orrery/npu/run_context.hpp"
#include "orrery/pdes/model.hpp"

namespace orrery::npu {

/// Least times to the next node of some kind, by which other ranks, or other cells, may notice an NPU.
struct Distances {
  /// [num_nodes] from the start of a node: 0 if it is of that kind itself, else its compute time and its tail; max() =
  /// never.
  std::vector<Time> leads;
  /// [num_nodes] from the completion of a node.
  std::vector<Time> tails;

  Time lead(NodeId node) const { return leads[node.index()]; }
  Time tail(NodeId node) const { return tails[node.index()]; }
};

/// How far ahead NPUs can be seen that have one structure and agree in which of their partners live on other ranks, and
/// in other cells.
struct Lookahead {
  const Program* program = nullptr;
  Distances sends;  ///< to messages for NPUs on other ranks
  Distances calls;  ///< to collectives and accesses with members on other ranks, and to memory servers there
  std::optional<Distances> relays;  ///< to messages over links that may be of other ranks; if messages go over links
  std::optional<Distances> leaves;  ///< to messages over links that may be of other cells; if there are several cells

  /// Returns how far messages over links of a node reach, as far as it is known: a node with one that may leave a cell,
  /// or the rank, has a lead of zero.
  pdes::Scope scope_of(NodeId node) const {
    if (leaves && leaves->lead(node) > Time::zero()) return pdes::Scope::cell;
    return relays && relays->lead(node) > Time::zero() ? pdes::Scope::rank : pdes::Scope::anywhere;
  }
};

/// Makes each Lookahead once. A distinct one costs about O(nodes + dependencies), 64 times that at most.
class Lookaheads {
 public:
  /// O(members of all communicators).
  explicit Lookaheads(const RunContext& run);

  /// Returns the lookahead of an NPU, which lives as long as this.
  const Lookahead& of(const NpuSpec& npu);

 private:
  /// Says which of an NPU's partners are on other ranks, or are reached by links there: first for uses, then peer
  /// slots, then the memory server. Or says the same of cells, without the server.
  using Pattern = std::vector<bool>;

  Pattern pattern_of(const NpuSpec& npu) const;
  Pattern pattern_of_cells(const NpuSpec& npu) const;
  bool is_send(const Program& program, const Pattern& pattern, NodeId node) const;
  bool is_call(const Program& program, const Pattern& pattern, NodeId node) const;
  bool is_relay(const Program& program, const Pattern& pattern, NodeId node) const;
  bool passes_other_ranks(std::span<const NpuId> members) const;
  bool passes_other_cells(std::span<const NpuId> members) const;

  const RunContext& run_;
  std::vector<char> leads_away_;  // [communicators] whether its host, a participant or a link between them is elsewhere
  std::vector<char> leaves_cell_;  // [communicators] likewise; empty if there is one cell
  std::map<std::tuple<const Program*, Pattern, Pattern>, std::unique_ptr<const Lookahead>> made_;
};

}  // namespace orrery::npu
