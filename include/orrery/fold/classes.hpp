#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace orrery::fold {

/// What tells NPUs apart (docs/folding.md): what each is by itself, the groups in which it meets others, the streams of
/// messages that it exchanges with them.
struct Likeness {
  static constexpr std::uint32_t nobody = ~0U;

  struct Member {
    std::uint32_t npu = 0;
    std::uint32_t use = 0;  ///< by which use of its own the NPU is in the group
  };
  struct Place {
    std::uint32_t group = 0;
    std::uint32_t position = 0;  ///< in the group
  };
  struct Stream {
    std::uint32_t peer = nobody;
    std::uint32_t stream = nobody;  ///< the peer's stream that is the other end; nobody: there is none
  };

  std::vector<std::uint32_t> colours;  ///< [npus] NPUs of different colours are not alike

  std::vector<std::size_t> first_member;  ///< [groups + 1] index into members
  std::vector<Member> members;            ///< of each group, in its order
  std::vector<std::uint32_t> shapes;      ///< [groups] groups of different shapes are not alike
  std::vector<char> together;             ///< [groups] members that arrive together complete together
  /// [members] numbers of places in a group whose first member is given: members of one mark and one place complete
  /// together if those of one mark arrive together. The same for groups of one shape and the same marks. None: every
  /// position is a place.
  std::function<std::vector<std::uint32_t>(std::uint32_t group, Member first, std::span<const std::uint32_t> marks)>
      places_among;

  std::vector<std::size_t> first_place;   ///< [npus + 1] index into places
  std::vector<Place> places;              ///< [uses of each NPU]; NPUs of one colour have as many
  std::vector<std::size_t> first_stream;  ///< [npus + 1] index into streams
  std::vector<Stream> streams;            ///< of each NPU; NPUs of one colour have as many

  std::uint32_t num_npus() const { return static_cast<std::uint32_t>(colours.size()); }
  std::uint32_t num_groups() const { return static_cast<std::uint32_t>(shapes.size()); }
  std::span<const Member> members_of(std::uint32_t group) const { return part(members, first_member, group); }
  std::span<const Place> places_of(std::uint32_t npu) const { return part(places, first_place, npu); }
  std::span<const Stream> streams_of(std::uint32_t npu) const { return part(streams, first_stream, npu); }

 private:
  template <class T>
  static std::span<const T> part(const std::vector<T>& all, const std::vector<std::size_t>& first, std::uint32_t i) {
    return std::span(all).subspan(first[i], first[i + 1] - first[i]);
  }
};

/// NPUs, and groups, that are alike.
struct Classes {
  std::vector<std::uint32_t> of_npu;    ///< [npus] numbered in the order of their lowest NPUs
  std::vector<std::uint32_t> of_group;  ///< [groups]
  std::vector<std::uint32_t> first;     ///< [classes] the lowest NPU
  std::vector<std::uint64_t> sizes;     ///< [classes] NPUs
  /// Classes that there are beyond the colours, by what told them apart from those that they were parted from.
  std::uint64_t by_members = 0;   ///< groups of unlike members
  std::uint64_t by_place = 0;     ///< places in a group whose members are not alike, or do not complete together
  std::uint64_t by_messages = 0;  ///< streams to, or from, NPUs that are not alike

  std::uint32_t count() const { return static_cast<std::uint32_t>(first.size()); }
};

/// The coarsest equitable partition: NPUs of one class have groups of one class (in a group that is not all of one
/// class, or whose members do not complete together, at the same place as far as it matters), and streams to and from
/// the same classes, use by use and stream by stream; groups of one class have the same shape and members of the same
/// classes in the same order. Colour refinement that looks again only at what lies beside a change, and leaves its
/// colour to the largest part (Hopcroft's rule). Cost about O((members + streams) log npus).
Classes classes_of(const Likeness& likeness);

}  // namespace orrery::fold
