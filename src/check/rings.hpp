#pragma once

#include <map>
#include <set>
#include <utility>

#include "preflight.hpp"

namespace orrery::check {

/// Warns of collectives that go round a ring that nobody asked for: of groups that fill no grid of the dimensions, and
/// in dimensions whose size rules out the algorithm that suits their shape. There is one warning of each sort, however
/// many groups cause it.
class UnaskedRings {
 public:
  UnaskedRings(const Subject& subject, Notices& notices) : subject_(subject), notices_(notices) {}

  /// Looks at the collectives of a kind in a communicator, which can carry them out. Call it for the first member.
  void look_at(const communicator::CommunicatorSpec& spec, const collective::GroupLayout& layout, collective::Kind kind,
               NpuId first_member);

 private:
  void note_flat(const communicator::CommunicatorSpec& spec, collective::Kind kind, NpuId first_member);
  void note_default(const collective::PhaseFigures& phase, collective::Kind kind, NpuId first_member);
  /// Returns whether the configuration names an algorithm for the kind.
  bool is_given(collective::Kind kind) const;

  const Subject& subject_;
  Notices& notices_;
  std::map<std::pair<const collective::GroupLayout*, collective::Kind>, collective::CollectiveFigures> known_;
  std::set<GroupId> flat_;                                ///< those that are noted
  std::set<std::pair<GroupId, std::uint32_t>> defaults_;  ///< with their dimensions
};

}  // namespace orrery::check
