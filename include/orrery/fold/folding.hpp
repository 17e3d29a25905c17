#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "orrery/fold/classes.hpp"
#include "orrery/model/rank_model.hpp"

namespace orrery::fold {

/// What an NPU is by itself, and why it may not be folded.
struct Characters {
  std::vector<std::uint32_t> colours;  ///< [npus]
  std::uint64_t num_structures = 0;    ///< distinct programs
  std::uint64_t num_noisy = 0;         ///< NPUs whose compute times are drawn for each of them
  std::uint64_t num_sharing = 0;       ///< NPUs that share a memory server, first come, first served
  std::uint64_t by_speeds = 0;         ///< colours beyond structures and these, by the NPUs' compute speeds
  std::uint64_t by_routes = 0;         ///< colours beyond all these, by the ways of their messages
};

/// The streams of each structure.
using StreamsOf = std::map<const npu::Program*, npu::MessageStreams>;
StreamsOf streams_of_programs(std::span<const npu::NpuSpec> npus);

/// What tells the NPUs of a run apart. `setting.npus` are all NPUs, in order; it is not folded. Without communication
/// if the run is one of replay. `setting` outlives its places_among. O(members + streams log streams of an NPU).
Likeness likeness_of(const npu::RunContext& setting, const StreamsOf& streams, Characters& characters);

/// A run in which NPUs that are alike are simulated once (docs/folding.md): which are, who stands for them, and how the
/// results of these few become those of all. The same on all ranks. The NPUs and communicators that it is made of
/// outlive it.
class Folding {
 public:
  /// `setting`: as for likeness_of. The classes are dealt to the ranks in blocks.
  Folding(const npu::RunContext& setting, Rank here, int num_ranks);

  const Classes& classes() const { return classes_; }
  std::span<const npu::NpuSpec> npus() const { return npus_; }                                      ///< of this rank
  std::span<const communicator::CommunicatorSpec> communicators() const { return communicators_; }  ///< of all
  std::span<const Rank> host_of_npu() const { return host_of_npu_; }  ///< [npus] of its class

  /// [npus] whether what it does with others has to be checked: those that stand for a class, and all whom they meet.
  std::vector<char> witnesses() const;

  /// Of all NPUs of the classes of this rank, from the records of those that stand for them.
  std::vector<npu::NpuRecord> expand(std::span<const npu::NpuRecord> records) const;
  /// Of all groups, as the run that is not folded numbers them.
  std::vector<communicator::CollectiveRecord> expand(std::span<const communicator::CollectiveRecord> records) const;
  /// By NPU, then time.
  std::vector<memory::UsageRecord> expand(std::span<const memory::UsageRecord> records) const;
  /// By NPU, start, node.
  std::vector<npu::TimelineRecord> expand(std::span<const npu::TimelineRecord> records) const;

  /// "65536 NPUs in 8 classes: 8 structures": how many classes there are and what told them apart.
  std::string description() const;

 private:
  void deal(int num_ranks);
  void fold_communicators();
  template <class Record, class Visit>
  void for_each_npu(std::span<const Record> records, Visit visit) const;
  npu::FoldedNpu folded(const npu::NpuSpec& npu);
  std::uint32_t class_of(NpuId npu) const { return classes_.of_npu[npu.index()]; }
  NpuId standing_for(NpuId npu) const { return NpuId(classes_.first[class_of(npu)]); }

  std::span<const npu::NpuSpec> all_npus_;
  std::span<const communicator::CommunicatorSpec> all_communicators_;
  bool replay_only_ = false;
  StreamsOf streams_;
  Characters characters_;
  Likeness likeness_;
  Classes classes_;
  std::vector<Rank> host_of_npu_;
  std::deque<npu::FoldedNpu> folded_;
  std::deque<communicator::Representatives> representatives_;
  std::vector<npu::NpuSpec> npus_;
  std::vector<communicator::CommunicatorSpec> communicators_;
  std::map<std::uint32_t, std::uint32_t> communicator_of_class_;  // of groups
  std::vector<std::vector<GroupId>> groups_of_;                   // [communicators] that it stands for
};

}  // namespace orrery::fold
