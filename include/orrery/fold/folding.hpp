#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "orrery/communicator/record.hpp"
#include "orrery/communicator/spec.hpp"
#include "orrery/fold/equivalence.hpp"
#include "orrery/fold/origins.hpp"
#include "orrery/fold/signatures.hpp"
#include "orrery/memory/record.hpp"
#include "orrery/npu/record.hpp"
#include "orrery/npu/run_context.hpp"
#include "orrery/npu/spec.hpp"

namespace orrery::fold {

/// What is taken for granted until a run shows that it does not hold (docs/folding.md, *Assumptions*).
struct Assumptions {
  Divergences divergences;      ///< what runs have shown so far
  std::uint32_t num_wrong = 0;  ///< runs that have shown some
};

/// How many classes a run had up to a time at which they were split.
struct EarlierClasses {
  std::uint32_t count = 0;
  Time end;
};

/// Which ranks simulate the classes.
struct Dealing {
  Rank here;  ///< this rank
  int num_ranks = 1;
  /// [npus] which rank would host each NPU in a run that is not folded. Each class goes to the one of the ranks of its
  /// members that has the least to do so far. Empty: classes go to ranks in blocks.
  std::vector<Rank> rank_of_npu = {};
};

/// A run in which one NPU of each equivalence class is simulated (docs/folding.md): the classes, their representatives,
/// and how the results of these become those of all NPUs. It is the same on all ranks. The NPUs and communicators that
/// it is made of outlive it.
class Folding {
 public:
  /// `context`: as for signatures_of.
  Folding(const npu::RunContext& context, const Dealing& dealing, Assumptions assumptions = {});
  Folding(const Folding&) = delete;
  Folding& operator=(const Folding&) = delete;

  const EquivalenceClasses& classes() const { return classes_; }
  /// Returns the representatives that this rank simulates.
  std::span<const npu::NpuSpec> npus() const { return npus_; }
  /// Returns the communicators that are simulated, on all ranks.
  std::span<const communicator::CommunicatorSpec> communicators() const { return communicators_; }
  /// Returns what to assume after a run with these divergences. `found`: of all ranks.
  Assumptions assumptions_after(std::span<const communicator::Divergence> found) const;
  /// Returns who represents whom. The run must not be a replay. O(NPUs + groups).
  Origins origins() const;
  /// Returns whether the classes of NPUs and groups are those of `origins`, or parts of them. O(NPUs + groups).
  bool refines(const Origins& origins) const;
  /// Returns what each communicator of `origins` has become, which these classes refine: [communicators there].
  std::vector<std::vector<GroupId>> successors(const Origins& origins) const;
  /// Returns the rank that hosts the class of each NPU: [npus].
  std::span<const Rank> host_of_npu() const { return host_of_npu_; }

  /// Returns the NPUs whose messages and collectives have to be compared with those of others: the representatives, and
  /// all NPUs that they exchange messages with or share a group with. Cost O(members of their groups + NPUs).
  std::vector<npu::NpuSpec> npus_to_compare() const;

  // Records of all NPUs of the classes of this rank, from those of the representatives. Cost O(records returned).

  /// Returns them by NPU.
  std::vector<npu::NpuRecord> expand(std::span<const npu::NpuRecord> records) const;
  /// Returns them for all groups, as the run that is not folded numbers these.
  std::vector<communicator::CollectiveRecord> expand(std::span<const communicator::CollectiveRecord> records) const;
  /// Returns them by NPU, then time.
  std::vector<memory::UsageRecord> expand(std::span<const memory::UsageRecord> records) const;
  /// Returns them by NPU, start and node.
  std::vector<npu::TimelineRecord> expand(std::span<const npu::TimelineRecord> records) const;

  /// Says how many classes there are and what told them apart: "folded: 65536 NPUs in 8 classes: 8 structures".
  /// `earlier`: from how many classes they have been split, in order of time.
  std::string description(std::span<const EarlierClasses> earlier = {}) const;

 private:
  void deal(const Dealing& dealing);
  void choose_communicators();
  npu::FoldedNpu folded_npu(const npu::NpuSpec& npu) const;
  template <class Record, class Visit>
  void for_each_npu(std::span<const Record> records, Visit visit) const;
  std::uint32_t class_of(NpuId npu) const { return classes_.of_npu[npu.index()]; }
  NpuId representative_of(NpuId npu) const { return NpuId(classes_.representatives[class_of(npu)]); }

  std::span<const npu::NpuSpec> all_npus_;
  std::span<const communicator::CommunicatorSpec> all_communicators_;
  bool replay_only_ = false;
  StreamsOf streams_;
  std::uint32_t num_wrong_;
  Signatures signatures_;
  EquivalenceClasses classes_;
  std::vector<Rank> host_of_npu_;
  std::deque<npu::FoldedNpu> folded_npus_;
  std::deque<communicator::Representatives> representatives_;  // [communicators] by class
  std::vector<npu::NpuSpec> npus_;
  std::vector<communicator::CommunicatorSpec> communicators_;
  std::map<std::uint32_t, std::uint32_t> communicator_of_class_;  // of groups
  std::vector<std::vector<GroupId>> groups_of_;                   // [communicators] that each stands for
};

}  // namespace orrery::fold
