#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "orrery/network/model.hpp"
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
  std::optional<Distances> relays;  ///< to messages over links that may be of other ranks; if messages go over links

  /// Returns whether all messages over links of a node are known to stay on this rank: a node with one that may not has
  /// a lead of zero.
  bool stays_here(NodeId node) const { return relays && relays->lead(node) > Time::zero(); }
};

/// Makes each Lookahead once. A distinct one costs about O(nodes + dependencies), 64 times that at most.
class Lookaheads {
 public:
  /// `links`: the links of this rank, which outlive it; null if messages go over no links. O(members of all
  /// communicators).
  Lookaheads(const RunContext& run, const network::MessageNetwork* links);

  /// Returns the lookahead of an NPU, which lives as long as this.
  const Lookahead& of(const NpuSpec& npu);

 private:
  /// Says which of an NPU's partners are on other ranks, or are reached by links there: first for uses, then peer
  /// slots, then the memory server.
  using Pattern = std::vector<bool>;

  Pattern pattern_of(const NpuSpec& npu) const;
  bool is_send(const Program& program, const Pattern& pattern, NodeId node) const;
  bool is_call(const Program& program, const Pattern& pattern, NodeId node) const;
  bool is_relay(const Program& program, const Pattern& pattern, NodeId node) const;
  bool passes_others(std::span<const NpuId> members) const { return links_ && !links_->keeps_here(members); }

  const RunContext& run_;
  const network::MessageNetwork* links_;  // null if messages pass none, or none of another rank
  std::vector<char> leads_away_;  // [communicators] whether its host, a participant or a link between them is elsewhere
  std::map<std::pair<const Program*, Pattern>, std::unique_ptr<const Lookahead>> made_;
};

}  // namespace orrery::npu
