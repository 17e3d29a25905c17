#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

namespace orrery::fold {

/// How members of groups complete that were taken to complete together, and do not (docs/folding.md).
struct Divergences {
  std::vector<std::uint32_t> of_group;             ///< [groups] index into `labels`; empty: no group diverges
  std::vector<std::vector<std::uint32_t>> labels;  ///< [members of a group] each; the first one is empty: none is known

  std::uint32_t of(std::uint32_t group) const { return group < of_group.size() ? of_group[group] : 0; }
};

/// Items 0, 1, ... in contiguous blocks, one for each rank.
struct Blocks {
  std::vector<std::uint32_t> bounds;  ///< [ranks + 1]; empty: all are of one rank
  std::size_t here = 0;               ///< this rank

  /// Returns the rank of an item. O(log ranks).
  std::size_t rank_of(std::uint32_t item) const {
    if (bounds.empty()) return 0;
    return static_cast<std::size_t>(std::upper_bound(bounds.begin(), bounds.end(), item) - bounds.begin()) - 1;
  }
  /// Returns the first item of this rank.
  std::uint32_t first() const { return bounds.empty() ? 0 : bounds[here]; }
  /// Returns the number of items of this rank, of so many in all.
  std::uint32_t count(std::uint32_t all) const { return bounds.empty() ? all : bounds[here + 1] - bounds[here]; }
};

/// What tells NPUs apart (docs/folding.md): the signature that each has by itself, the groups that it is in, and the
/// streams of messages that it exchanges with others. The NPUs that share a memory are a group too, after those of the
/// communicators: the last one of each NPU that accesses it. The graph may be spread over ranks: then each has the uses
/// and streams of its own NPUs, and the members of its own groups.
struct SignatureGraph {
  static constexpr std::uint32_t none = ~0U;

  struct Member {
    std::uint32_t npu = 0;
    std::uint32_t use = 0;  ///< the NPU's use of the group; an NPU has several groups, one for each use
  };
  struct Membership {
    std::uint32_t group = 0;
    std::uint32_t position = 0;  ///< position in the group
  };
  /// The other end of a stream.
  struct StreamEnd {
    std::uint32_t peer = none;
    std::uint32_t stream = none;  ///< which of the peer's streams it is; none: the peer has no such stream
  };
  /// Returns a number for each member of a group of any rank: [members]. `labels`: [members]. If members of equal
  /// labels arrive together, then members of equal label and number complete together. Groups of one layout and equal
  /// labels have equal numbers.
  using PositionsAmong =
      std::function<std::vector<std::uint32_t>(std::uint32_t group, std::span<const std::uint32_t> labels)>;

  Blocks npu_blocks, group_blocks;  ///< which rank has which of them

  std::vector<std::uint32_t> signature_of_npu;  ///< [npus] NPUs of different signatures are not equivalent

  std::vector<std::size_t> first_member;  ///< [groups of this rank + 1] index into members
  std::vector<Member> members;            ///< members of each group, in its order
  std::vector<std::uint32_t> layouts;     ///< [groups] groups of different layouts are not equivalent
  std::vector<char> completes_together;   ///< [groups] members that arrive together complete together
  PositionsAmong positions_among;         ///< none: every position has its own number
  /// Members of equal class and use are taken to complete together, in groups whose members do if they arrive together,
  /// but where `divergences` says otherwise.
  bool assumes_completing_together = false;
  Divergences divergences;

  std::vector<std::size_t> first_membership;  ///< [NPUs of this rank + 1] index into memberships
  std::vector<Membership> memberships;        ///< [uses] of each NPU; NPUs of one signature have as many
  std::vector<std::size_t> first_stream;      ///< [NPUs of this rank + 1] index into streams
  std::vector<StreamEnd> streams;             ///< streams of each NPU; NPUs of one signature have equally many

  std::uint32_t num_npus() const { return static_cast<std::uint32_t>(signature_of_npu.size()); }
  std::uint32_t num_groups() const { return static_cast<std::uint32_t>(layouts.size()); }
  // Of groups and NPUs of this rank:
  std::span<const Member> members_of(std::uint32_t group) const {
    return range(members, first_member, group - group_blocks.first());
  }
  std::span<const Membership> memberships_of(std::uint32_t npu) const {
    return range(memberships, first_membership, npu - npu_blocks.first());
  }
  std::span<const StreamEnd> streams_of(std::uint32_t npu) const {
    return range(streams, first_stream, npu - npu_blocks.first());
  }

  /// Frees all that is known of single NPUs and groups. What is assumed of them stays.
  void forget_items() {
    SignatureGraph rest;
    rest.assumes_completing_together = assumes_completing_together;
    rest.divergences = std::move(divergences);
    *this = std::move(rest);
  }

 private:
  template <class T>
  static std::span<const T> range(const std::vector<T>& all, const std::vector<std::size_t>& first, std::uint32_t i) {
    return std::span(all).subspan(first[i], first[i + 1] - first[i]);
  }
};

}  // namespace orrery::fold
