#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "orrery/base/archive.hpp"
#include "orrery/base/ids.hpp"
#include "orrery/base/quantity.hpp"
#include "orrery/memory/memory_server.hpp"
#include "orrery/memory/options.hpp"

namespace orrery::memory {

/// Memory groups, out-node switches and the fabrics of the nodes as three stages that pieces of data pass one after the
/// other. Each stage serves first come, first served (docs/memory.md). All data are striped over all groups and
/// switches, so the groups are one server, the links of a node are one, and the fabric to an NPU is one. A piece is the
/// part of a chunk of every group that concerns one NPU. Accesses of one moment take turns: a piece of each makes a
/// round, and a round passes a stage as a whole. Whole trains of rounds are computed at once.
class HierarchicalPool {
 public:
  struct Access {
    std::span<const NpuId> npus;  ///< one NPU, or the members of a collective
    Bytes size;                   ///< bytes that each of them gets or gives, positive
    PathCollective collective = PathCollective::none;
    std::span<Time> done;  ///< [npus] filled in: when the access of each is over; max() if it does not fit
  };
  /// What has passed a stage.
  struct StageUse {
    std::uint32_t servers = 0;  ///< side by side
    Bytes bytes;
    Time busy;  ///< busy time of its servers, added up
  };

  HierarchicalPool(const RemoteMemoryOptions& options, std::uint32_t num_npus, Rounding rounding);

  /// Serves all accesses that begin at `now`, in any order. Calls must come in the order of their times.
  /// O(NPUs of the accesses * (log + distinct numbers of rounds)); no allocation once it has grown.
  void serve(Time now, std::span<const Access> accesses);

  /// Returns the time of one NPU's access while there is no other. O(1).
  Time alone(Bytes size) const;
  Bytes piece() const { return piece_; }
  /// Returns the use of the groups, the links and the fabrics.
  std::array<StageUse, 3> stages() const;
  void serialize(Archive& archive) {
    archive(groups_.volume, links_.volume, fabric_.volume, groups_free_, links_free_, fabric_free_);
  }

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
    std::uint32_t position = 0;  ///< position in the access
  };
  struct Stage {
    Bandwidth bandwidth;  ///< bandwidth of a server
    Time latency;
    Bytes volume = {};  ///< bytes that have passed all servers together

    /// Returns when rounds of so many bytes have passed a server that is free at `free`. They come evenly, as `in`
    /// says.
    Passage pass(const Passage& in, Time free, Bytes per_round, std::uint64_t rounds) const;
  };
  /// The accesses that are being served. Its arrays are kept for the next ones.
  struct Batch {
    std::vector<Cut> cuts;               ///< [accesses]
    std::vector<std::uint64_t> lengths;  ///< distinct numbers of rounds, ascending
    std::vector<Run> runs;
    std::vector<Visit> visits;                           ///< visits by NPU, then access
    std::vector<std::uint32_t> counted_at;               ///< [accesses] the last node at whose links they were
    std::vector<Bytes> per_round;                        ///< [runs] at the links of the node in hand
    std::vector<Passage> through_groups, through_links;  ///< [runs] the second for the node in hand
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
  Batch batch_;
};

}  // namespace orrery::memory
