#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/base/quantity.hpp"
#include "orrery/memory/options.hpp"

namespace orrery::memory {

/// What the switches on the path do for the NPUs that access together.
enum class PathCollective : std::uint8_t {
  none,
  all_gather,      ///< a load: they multicast what is read once
  reduce_scatter,  ///< a store: they add up what the NPUs send; the sum is written once
  all_reduce,      ///< the same, and the sum comes back to every NPU
};

/// Memory groups, out-node switches and the fabrics of the nodes as three stages that pieces pass one after the other,
/// each first come, first served (docs/memory.md). All data are striped over all groups and switches, so the groups are
/// one server; the links of a node are one, and the fabric to an NPU is one. A piece is what concerns one NPU of a
/// chunk of every group. Accesses of one moment go in turn, a piece of each in a round, and a round passes a stage
/// whole. Whole trains of rounds are computed at once.
class HierarchicalPool {
 public:
  struct Access {
    std::span<const NpuId> npus;  ///< one; of a collective its members
    Bytes size;                   ///< what each of them gets or gives, positive
    PathCollective collective = PathCollective::none;
    std::span<Time> done;  ///< [npus] when each is through: filled in; max() if it does not fit
  };
  /// What has passed a stage.
  struct StageUse {
    std::uint32_t servers = 0;  ///< side by side
    Bytes bytes;
    Time busy;  ///< of its servers, added up
  };

  HierarchicalPool(const RemoteMemoryOptions& options, std::uint32_t num_npus, Rounding rounding);

  /// All accesses that begin at `now`, in any order; calls must come in the order of their times.
  /// O(NPUs of the accesses * (log + distinct numbers of rounds)); no allocation once it has grown.
  void serve(Time now, std::span<const Access> accesses);

  /// Of one NPU's access while there is no other. O(1).
  Time alone(Bytes size) const;
  Bytes piece() const { return piece_; }
  /// Groups, links, fabrics.
  std::array<StageUse, 3> stages() const;

 private:
  /// When the first and the last of some rounds are there.
  struct Passage {
    Time first, last;
    Passage after(Time latency) const { return {first + latency, last + latency}; }
  };
  /// Rounds in which the same accesses send as much each.
  struct Run {
    std::uint64_t last_round = 0;
    std::uint64_t rounds = 0;
  };
  /// How an access is cut into pieces.
  struct Cut {
    std::uint64_t rounds = 0;
    Bytes last;  ///< the last piece; the others are whole
  };
  /// An NPU of an access.
  struct Visit {
    NpuId npu;
    std::uint32_t access = 0;
    std::uint32_t position = 0;  ///< in the access
  };
  struct Stage {
    Bandwidth bandwidth;  ///< of a server
    Time latency;
    Bytes volume = {};  ///< that has passed, all servers together

    /// Rounds of so many bytes that come evenly, as `in` says, to a server that is free at `free`.
    Passage pass(const Passage& in, Time free, Bytes per_round, std::uint64_t rounds) const;
  };

  Cut cut(Bytes size) const;
  Bytes piece_in(const Cut& cut, const Run& run) const;
  void make_runs();
  void sort_visits(std::span<const Access> accesses);
  void pass_groups(Time now, std::span<const Access> accesses);
  void pass_links(std::span<const Access> accesses, std::span<const Visit> of_node);
  void pass_fabric(Time now, std::span<const Access> accesses, std::span<const Visit> of_npu);
  Time rounded(Time duration) const;

  Stage groups_, links_, fabric_;
  std::uint32_t npus_per_node_;
  Bytes piece_;
  Rounding rounding_;
  Time groups_free_;
  std::vector<Time> links_free_;   // [nodes]
  std::vector<Time> fabric_free_;  // [num_npus]
  // Of the accesses that are being served.
  std::vector<Cut> cuts_;               // [accesses]
  std::vector<std::uint64_t> lengths_;  // distinct numbers of rounds, ascending
  std::vector<Run> runs_;
  std::vector<Visit> visits_;                            // by NPU, then access
  std::vector<std::uint32_t> counted_at_;                // [accesses] the last node at whose links they were
  std::vector<Bytes> per_round_;                         // [runs] of the server in hand
  std::vector<Passage> through_groups_, through_links_;  // [runs] the second of the node in hand
};

}  // namespace orrery::memory
