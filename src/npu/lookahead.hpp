#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "orrery/npu/program.hpp"
#include "orrery/npu/run_context.hpp"

namespace orrery::npu {

/// Times to the next node of a kind that another rank may notice.
struct Distances {
  /// [num_nodes] least time from the start of a node to such a thing: 0 if that is the node itself, else its compute
  /// time and its tail; max() = never.
  std::vector<Time> leads;
  /// [num_nodes] the same from the completion of a node.
  std::vector<Time> tails;

  Time lead(NodeId node) const { return leads[node.index()]; }
  Time tail(NodeId node) const { return tails[node.index()]; }
};

/// How far ahead NPUs of one structure can be seen that are alike in which of their partners live on other ranks.
struct Lookahead {
  const Program* program = nullptr;
  Distances sends;  ///< to messages for NPUs on other ranks
  Distances calls;  ///< to collectives and accesses with members on other ranks, and to memory servers there
  std::optional<Distances> relays;  ///< to messages over links, whoever they are for; where all go over links
};

/// Makes each Lookahead once. Cost about O(nodes + dependencies), 64 times that at most, for each distinct one.
class Lookaheads {
 public:
  /// O(members of all communicators).
  explicit Lookaheads(const RunContext& run);

  const Lookahead& of(const NpuSpec& npu);

 private:
  /// Which of an NPU's partners are on other ranks: uses, then peer slots, then the memory server.
  using Pattern = std::vector<bool>;

  Pattern pattern_of(const NpuSpec& npu) const;
  bool is_send(const Program& program, const Pattern& pattern, NodeId node) const;
  bool is_call(const Program& program, const Pattern& pattern, NodeId node) const;
  bool is_relay(const Program& program, NodeId node) const;

  const RunContext& run_;
  std::vector<char> leads_away_;  // [communicators] its host, or a member, is on another rank
  std::map<std::pair<const Program*, Pattern>, std::unique_ptr<const Lookahead>> made_;
};

}  // namespace orrery::npu
