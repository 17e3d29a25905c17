#pragma once

#include <span>
#include <vector>

#include "orrery/base/archive.hpp"
#include "orrery/base/ids.hpp"
#include "orrery/checkpoint/piece.hpp"
#include "orrery/model/rank_model.hpp"
#include "orrery/model/resumed_state.hpp"
#include "orrery/pdes/kernel.hpp"
#include "orrery/pdes/kernel_state.hpp"

namespace orrery::model {

/// What a checkpoint holds of a rank, by logical process (docs/checkpoint.md).
class SavedRank {
 public:
  /// The model must outlive it.
  explicit SavedRank(RankModel& model) : model_(model), run_(model.run()) {}

  /// Lets the model, which has just started or been prepared, keep from now on what `save` needs.
  void keep_history();
  /// Returns the state of the logical processes of this rank where the kernel has stopped. O(state).
  std::vector<checkpoint::Piece> save(const pdes::KernelState& kernel);
  /// Makes the logical processes of this rank, in place of RankModel::start, for `host_of` and `restore`.
  void prepare(pdes::Kernel& kernel);
  /// Lets the model go on from the state of a run with coarser classes.
  void restore(pdes::Kernel& kernel, const ResumedState& resumed);
  /// Returns the rank to which a piece belongs.
  Rank host_of(LpId lp) const;
  /// Lets the model go on from the pieces of this rank at `now`, up to which all events have been handled.
  void restore(pdes::Kernel& kernel, Time now, std::span<const checkpoint::Piece> pieces);

 private:
  void serialize_sums(pdes::KernelState& kernel, Archive& archive);
  void serialize(LpId lp, std::span<const pdes::Event> pending, Archive& archive,
                 const npu::ResumedFrom* resumed_from = nullptr);
  void take_over(LpId lp, LpId resumed_from, std::span<pdes::Event> pending) const;
  RankModel::Parts& parts() { return *model_.parts_; }

  RankModel& model_;
  const npu::RunContext& run_;
};

}  // namespace orrery::model
