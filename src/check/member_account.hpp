#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "collective_sequence.hpp"
#include "common_order.hpp"
#include "orrery/base/error.hpp"
#include "orrery/check/checks.hpp"

namespace orrery::check {

/// What one NPU does in one group, with all that messages need.
struct MemberAccount {
  struct Node {
    std::uint64_t id = 0, size = 0;
    trace::NodeKind node{};
    trace::CollectiveKind kind{};
    std::string name;
    std::uint64_t label = 0;  ///< Sequences::label_of

    std::string text() const;
  };
  std::uint32_t npu = 0;
  std::string file;
  std::vector<Node> nodes;
  Calls calls;  ///< with a graph only where the order matters

  /// Returns the place of a node; of the trace if the node is null.
  Place place(const Node* node) const;
};

using MemberOfGroup = std::pair<std::uint32_t, std::uint32_t>;  // group, NPU

/// Gathers accounts from the ranks of their NPUs. `wanted` is the same on all ranks and says for each member whether
/// the graph is needed. Returns them on rank 0 and nothing elsewhere. Collective. O(nodes) for each member.
std::map<MemberOfGroup, MemberAccount> gather_accounts(const Subject& subject,
                                                       const std::map<MemberOfGroup, bool>& wanted,
                                                       Sequences& sequences, parallel::Communicator& world);

}  // namespace orrery::check
