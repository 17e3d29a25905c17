#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "orrery/fold/own_npus.hpp"
#include "orrery/fold/signature_graph.hpp"
#include "orrery/parallel/communicator.hpp"

namespace orrery::fold {

/// The groups and streams of the representatives of all ranks, as the run that is not folded has them. The same on all
/// ranks.
class RepresentativeTables {
 public:
  RepresentativeTables() = default;
  /// `representatives`: ascending. `graph` has what is known of those of this rank. Collective. O(uses and streams of
  /// all representatives).
  RepresentativeTables(std::span<const std::uint32_t> representatives, const OwnNpus& npus, const SignatureGraph& graph,
                       parallel::Communicator& world);

  /// Returns the groups of the representative of a class: [program uses].
  std::span<const GroupId> groups_of(std::uint32_t its) const { return range(groups_, first_group_, its); }
  /// Returns its positions in these groups; nothing in a replay.
  std::span<const std::uint32_t> positions_of(std::uint32_t its) const {
    return positions_.empty() ? std::span<const std::uint32_t>() : range(positions_, first_group_, its);
  }
  /// Returns the other ends of its streams.
  std::span<const SignatureGraph::StreamEnd> ends_of(std::uint32_t its) const { return range(ends_, first_end_, its); }
  /// Returns those of all representatives.
  std::span<const GroupId> all_groups() const { return groups_; }
  std::span<const SignatureGraph::StreamEnd> all_ends() const { return ends_; }

 private:
  template <class T>
  static std::span<const T> range(const std::vector<T>& all, const std::vector<std::size_t>& first, std::uint32_t i) {
    return std::span(all).subspan(first[i], first[i + 1] - first[i]);
  }

  std::vector<std::size_t> first_group_ = {0};  // [classes + 1] index into groups_ and positions_
  std::vector<GroupId> groups_;
  std::vector<std::uint32_t> positions_;
  std::vector<std::size_t> first_end_ = {0};  // [classes + 1] index into ends_
  std::vector<SignatureGraph::StreamEnd> ends_;
};

}  // namespace orrery::fold
