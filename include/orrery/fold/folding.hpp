#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "orrery/communicator/record.hpp"
#include "orrery/communicator/spec.hpp"
#include "orrery/fold/equivalence.hpp"
#include "orrery/fold/origins.hpp"
#include "orrery/fold/own_npus.hpp"
#include "orrery/fold/representative_tables.hpp"
#include "orrery/fold/signatures.hpp"
#include "orrery/memory/record.hpp"
#include "orrery/npu/record.hpp"
#include "orrery/npu/run_context.hpp"
#include "orrery/npu/spec.hpp"
#include "orrery/parallel/communicator.hpp"

namespace orrery::fold {

/// What is taken for granted until a run shows that it does not hold (docs/folding.md, *Assumptions*).
struct Assumptions {
  Divergences divergences;      ///< divergences that runs have shown so far
  std::uint32_t num_wrong = 0;  ///< runs that have shown some
};

/// How many classes a run had up to a time at which they were split.
struct EarlierClasses {
  std::uint32_t count = 0;
  Time end;
};

/// Which ranks simulate the classes.
struct Assignment {
  /// [npus] which rank would host each NPU in a run that is not folded. Each class goes to the one of the ranks of its
  /// members that has the least to do so far. Empty: classes go to ranks in blocks.
  std::vector<Rank> rank_of_npu = {};
};

/// Reads NPUs of other ranks, ascending, and returns them without their groups. They outlive the folding.
using ReadNpus = std::function<std::vector<npu::NpuSpec>(std::span<const NpuId>)>;

/// A run in which one NPU of each equivalence class is simulated (docs/folding.md): the classes, their representatives,
/// and how the results of these become those of all NPUs. All ranks know all classes; of the NPUs, each has read those
/// that `context.hosting` gives it and those that it simulates. The NPUs and communicators that it is made of outlive
/// it.
class Folding {
 public:
  /// `context`: as for signatures_of. Calls `read` for the representatives that this rank simulates and other ranks
  /// have. Collective.
  Folding(const npu::RunContext& context, const Assignment& assignment, const ReadNpus& read,
          parallel::Communicator& world, Assumptions assumptions = {});
  Folding(const Folding&) = delete;
  Folding& operator=(const Folding&) = delete;

  const EquivalenceClasses& classes() const { return classes_; }
  /// Returns the representatives that this rank simulates.
  std::span<const npu::NpuSpec> npus() const { return npus_; }
  /// Returns the communicators that are simulated, on all ranks.
  std::span<const communicator::CommunicatorSpec> communicators() const { return communicators_; }
  /// Returns the assumptions after a run with these divergences. `found`: of all ranks.
  Assumptions assumptions_after(std::span<const communicator::Divergence> found) const;
  /// Returns who represents whom. The run must not be a replay. O(NPUs + groups).
  Origins origins() const;
  /// Returns whether the classes of NPUs and groups are those of `origins`, or parts of them. O(NPUs + groups).
  bool refines(const Origins& origins) const;
  /// Returns the successor of each communicator of `origins`, which these classes refine: [communicators there].
  std::vector<std::vector<GroupId>> successors(const Origins& origins) const;
  /// Returns the rank that hosts the class of each NPU: [npus].
  std::span<const Rank> host_of_npu() const { return host_of_npu_; }

  /// Returns the groups of a representative of any rank, as the run that is not folded numbers them: [program uses].
  std::span<const GroupId> groups_of(NpuId representative) const { return tables_.groups_of(class_of(representative)); }

  /// Returns the NPUs of this rank whose messages and collectives have to be compared with those of others: the
  /// representatives, and all NPUs that they exchange messages with or share a group with. Cost O(members of their
  /// groups + NPUs).
  std::vector<npu::NpuSpec> npus_to_compare() const;

  /// Returns the records of collectives for all groups, as the run that is not folded numbers these. Cost O(records
  /// returned).
  std::vector<communicator::CollectiveRecord> expand(std::span<const communicator::CollectiveRecord> records) const;

  // Records of all NPUs of this rank, from those of the representatives that each rank has simulated. Collective. Cost
  // O(records returned).

  /// Returns them by NPU, then time.
  std::vector<memory::UsageRecord> expand(std::span<const memory::UsageRecord> records,
                                          parallel::Communicator& world) const;
  /// Returns them by NPU, start and node.
  std::vector<npu::TimelineRecord> expand(std::span<const npu::TimelineRecord> records,
                                          parallel::Communicator& world) const;

  /// Returns the number of classes and the causes that separate them: "folded: 65536 NPUs in 8 classes: 8 structures".
  /// `earlier`: from how many classes they have been split, in order of time.
  std::string description(std::span<const EarlierClasses> earlier = {}) const;

 private:
  void deal(const Assignment& assignment, int num_ranks);
  std::vector<GroupId> choose_groups();
  std::vector<std::uint32_t> uses_of_members(std::span<const GroupId> chosen, parallel::Communicator& world) const;
  void choose_communicators(parallel::Communicator& world);
  void host_representatives(const ReadNpus& read, parallel::Communicator& world);
  npu::FoldedNpu folded_npu(const npu::NpuSpec& npu) const;
  template <class Record>
  std::vector<Record> exchanged(std::span<const Record> records, parallel::Communicator& world) const;
  template <class Record, class Visit>
  void for_each_npu(std::span<const Record> records, Visit visit) const;
  std::uint32_t class_of(NpuId npu) const { return classes_.of_npu[npu.index()]; }
  NpuId representative_of(NpuId npu) const { return NpuId(classes_.representatives[class_of(npu)]); }
  std::uint32_t num_npus() const { return static_cast<std::uint32_t>(classes_.of_npu.size()); }

  OwnNpus own_npus_;
  std::span<const communicator::CommunicatorSpec> all_communicators_;
  bool replay_only_ = false;
  StreamsOf streams_;
  std::uint32_t num_wrong_;
  Signatures signatures_;
  EquivalenceClasses classes_;
  RepresentativeTables tables_;
  std::vector<Rank> host_of_npu_;
  std::deque<npu::FoldedNpu> folded_npus_;
  std::deque<communicator::Representatives> representatives_;  // [communicators] by class
  std::vector<npu::NpuSpec> npus_;
  std::vector<communicator::CommunicatorSpec> communicators_;
  std::map<std::uint32_t, std::uint32_t> communicator_of_class_;  // of groups
  std::vector<std::vector<GroupId>> groups_of_;                   // [communicators] that each stands for
};

}  // namespace orrery::fold
