#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace orrery::fold {

/// How members of groups complete that were taken to complete together, and do not (docs/folding.md).
struct Divergences {
  std::vector<std::uint32_t> of_group;             ///< [groups] index into `labels`; empty: no group diverges
  std::vector<std::vector<std::uint32_t>> labels;  ///< [members of a group] each; the first one is empty: none is known

  std::uint32_t of(std::uint32_t group) const { return group < of_group.size() ? of_group[group] : 0; }
};

/// What tells NPUs apart (docs/folding.md): the signature that each has by itself, the groups that it is in, and the
/// streams of messages that it exchanges with others. The NPUs that share a memory are a group too, after those of the
/// communicators: the last one of each NPU that accesses it.
struct SignatureGraph {
  static constexpr std::uint32_t none = ~0U;

  struct Member {
    std::uint32_t npu = 0;
    std::uint32_t use = 0;  ///< the NPU's use of the group; an NPU has several groups, one for each use
  };
  struct Membership {
    std::uint32_t group = 0;
    std::uint32_t position = 0;  ///< in the group
  };
  /// The other end of a stream.
  struct StreamEnd {
    std::uint32_t peer = none;
    std::uint32_t stream = none;  ///< which of the peer's streams it is; none: the peer has no such stream
  };
  /// Returns a number for each member of a group whose first member is given: [members]. `labels`: [members]. If
  /// members of equal labels arrive together, then members of equal label and number complete together. Groups of one
  /// layout and equal labels have equal numbers.
  using PositionsAmong = std::function<std::vector<std::uint32_t>(std::uint32_t group, Member first,
                                                                  std::span<const std::uint32_t> labels)>;

  std::vector<std::uint32_t> signature_of_npu;  ///< [npus] NPUs of different signatures are not equivalent

  std::vector<std::size_t> first_member;  ///< [groups + 1] index into members
  std::vector<Member> members;            ///< of each group, in its order
  std::vector<std::uint32_t> layouts;     ///< [groups] groups of different layouts are not equivalent
  std::vector<char> completes_together;   ///< [groups] members that arrive together complete together
  PositionsAmong positions_among;         ///< none: every position has its own number
  /// Members of equal class and use are taken to complete together, in groups whose members do if they arrive together,
  /// but where `divergences` says otherwise.
  bool assumes_completing_together = false;
  Divergences divergences;

  std::vector<std::size_t> first_membership;  ///< [npus + 1] index into memberships
  std::vector<Membership> memberships;        ///< [uses] of each NPU; NPUs of one signature have as many
  std::vector<std::size_t> first_stream;      ///< [npus + 1] index into streams
  std::vector<StreamEnd> streams;             ///< of each NPU; NPUs of one signature have as many

  std::uint32_t num_npus() const { return static_cast<std::uint32_t>(signature_of_npu.size()); }
  std::uint32_t num_groups() const { return static_cast<std::uint32_t>(layouts.size()); }
  std::span<const Member> members_of(std::uint32_t group) const { return range(members, first_member, group); }
  std::span<const Membership> memberships_of(std::uint32_t npu) const {
    return range(memberships, first_membership, npu);
  }
  std::span<const StreamEnd> streams_of(std::uint32_t npu) const { return range(streams, first_stream, npu); }

 private:
  template <class T>
  static std::span<const T> range(const std::vector<T>& all, const std::vector<std::size_t>& first, std::uint32_t i) {
    return std::span(all).subspan(first[i], first[i + 1] - first[i]);
  }
};

}  // namespace orrery::fold
