#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "orrery/npu/program.hpp"
#include "orrery/npu/run_context.hpp"

namespace orrery::npu {

/// Least times to the next node of some kind, by which other ranks may notice an NPU.
struct Distances {
  /// [num_nodes] from the start of a node: 0 if it is of that kind itself, else its compute time and its tail; max() =
  /// never.
  std::vector<Time> leads;
  /// [num_nodes] from the completion of a node.
  std::vector<Time> tails;

  Time lead(NodeId node) const { return leads[node.index()]; }
  Time tail(NodeId node) const { return tails[node.index()]; }
};

/// How far ahead NPUs can be seen that have one structure and agree in which of their partners live on other ranks.
struct Lookahead {
  const Program* program = nullptr;
  Distances sends;  ///< to messages for NPUs on other ranks
  Distances calls;  ///< to collectives and accesses with members on other ranks, and to memory servers there
  std::optional<Distances> relays;  ///< to messages over links, whoever they are for; if messages go over links
};

/// Makes each Lookahead once. A distinct one costs about O(nodes + dependencies), 64 times that at most.
class Lookaheads {
 public:
  /// O(members of all communicators).
  explicit Lookaheads(const RunContext& run);

  /// Returns the lookahead of an NPU, which lives as long as this.
  const Lookahead& of(const NpuSpec& npu);

 private:
  /// Says which of an NPU's partners are on other ranks: first for uses, then peer slots, then the memory server.
  using Pattern = std::vector<bool>;

  Pattern pattern_of(const NpuSpec& npu) const;
  bool is_send(const Program& program, const Pattern& pattern, NodeId node) const;
  bool is_call(const Program& program, const Pattern& pattern, NodeId node) const;
  bool is_relay(const Program& program, NodeId node) const;

  const RunContext& run_;
  std::vector<char> leads_away_;  // [communicators] whether its host, or a participant, is on another rank
  std::map<std::pair<const Program*, Pattern>, std::unique_ptr<const Lookahead>> made_;
};

}  // namespace orrery::npu
