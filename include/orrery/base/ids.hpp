#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace orrery {

/// A whole number that names one thing of a kind; ids of different kinds do not mix.
template <class Tag, class Rep>
class Id {
 public:
  using rep = Rep;

  constexpr Id() = default;
  explicit constexpr Id(Rep value) : value_(value) {}

  constexpr Rep value() const { return value_; }
  constexpr std::size_t index() const { return static_cast<std::size_t>(value_); }
  friend constexpr auto operator<=>(Id, Id) = default;
  constexpr Id& operator++() {
    ++value_;
    return *this;
  }

 private:
  Rep value_ = 0;
};

using NpuId = Id<struct NpuTag, std::uint32_t>;
/// A logical process of the kernel. Ids do not depend on the partition.
using LpId = Id<struct LpTag, std::uint32_t>;
/// The position of a node among the nodes of its trace, in the order of the trace's own ids.
using NodeId = Id<struct NodeTag, std::uint32_t>;
/// A process group, numbered alike on all ranks.
using GroupId = Id<struct GroupTag, std::uint32_t>;
/// An MPI rank.
using Rank = Id<struct RankTag, int>;

}  // namespace orrery

template <class Tag, class Rep>
struct std::hash<orrery::Id<Tag, Rep>> {
  std::size_t operator()(orrery::Id<Tag, Rep> id) const noexcept { return std::hash<Rep>{}(id.value()); }
};
