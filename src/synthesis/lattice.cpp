#include "lattice.hpp"

#include <algorithm>
#include <cstdlib>
#include <set>

namespace orrery::synthesis {
namespace {

/// Equal distances: `size` members, `stride` apart.
struct Progression {
  std::uint32_t stride = 1, size = 1;
};

/// Takes a set apart into progressions, innermost first; empty if it is no such set.
std::vector<Progression> progressions(std::vector<std::uint32_t> members) {
  std::vector<Progression> result;
  while (members.size() > 1) {
    const std::uint32_t stride = members[1] - members[0];
    std::size_t run = 2;
    while (run < members.size() && members[run] - members[run - 1] == stride) ++run;
    if (members.size() % run != 0) return {};
    std::vector<std::uint32_t> firsts;
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (i % run == 0) firsts.push_back(members[i]);
      if (members[i] != firsts.back() + (i % run) * stride) return {};
    }
    result.push_back({stride, static_cast<std::uint32_t>(run)});
    members = std::move(firsts);
  }
  return result;
}

/// The products of sizes from the innermost axis on, each of which divides the next one.
class Chain {
 public:
  explicit Chain(std::uint32_t num_npus) : products_{1, num_npus} {}

  /// Adds numbers, all of them or none.
  void add(std::initializer_list<std::uint64_t> numbers) {
    std::set<std::uint64_t> more = products_;
    for (const auto number : numbers) {
      if (number == 0 || number > *products_.rbegin()) return;
      more.insert(number);
    }
    std::uint64_t before = 1;
    for (const auto product : more) {
      if (product % before != 0) return;
      before = product;
    }
    products_ = std::move(more);
  }

  std::vector<Axis> axes() const {
    std::vector<Axis> result;
    std::uint64_t before = 0;
    for (const auto product : products_) {
      if (before > 0)
        result.push_back(
            {.size = static_cast<std::uint32_t>(product / before), .stride = static_cast<std::uint32_t>(before)});
      before = product;
    }
    if (result.empty()) result.push_back({});
    return result;
  }

 private:
  std::set<std::uint64_t> products_;
};

std::uint32_t coordinate(const Axis& axis, std::uint32_t npu) { return npu / axis.stride % axis.size; }

/// Returns the extent of these coordinates along an axis: [members], not sorted.
Extent extent_of(const Axis& axis, std::uint32_t own, const std::set<std::uint32_t>& found) {
  if (found.size() == axis.size && axis.size > 1) return {Extent::Kind::all};
  if (found.size() == 1 && *found.begin() == own) return {Extent::Kind::own};
  Extent extent{Extent::Kind::listed};
  for (const auto c : found)
    extent.positions.push_back(2 * c < axis.size ? static_cast<std::int32_t>(c)
                                                 : static_cast<std::int32_t>(c) - static_cast<std::int32_t>(axis.size));
  return extent;
}

}  // namespace

std::vector<Axis> find_axes(std::uint32_t num_npus, std::vector<WeightedMembers> groups,
                            std::vector<WeightedDistance> distances) {
  Chain chain(num_npus);
  struct Clue {
    double weight;
    std::uint64_t least, most;
  };
  std::vector<Clue> clues;
  for (const WeightedMembers& group : groups)
    for (const Progression& found : progressions(group.members))
      if (group.members.front() / found.stride % found.size == 0)
        clues.push_back({group.weight, found.stride, std::uint64_t{found.stride} * found.size});
  for (const WeightedDistance& found : distances) clues.push_back({found.weight, found.distance, found.distance});
  std::ranges::stable_sort(clues, [](const Clue& a, const Clue& b) {
    return a.weight != b.weight ? a.weight > b.weight : a.least != b.least ? a.least < b.least : a.most < b.most;
  });
  for (const Clue& clue : clues) chain.add({clue.least, clue.most});
  return chain.axes();
}

GroupCoordinates coordinates_of_group(std::span<const Axis> axes, std::span<const NpuId> members) {
  GroupCoordinates group;
  std::uint64_t product = 1;
  for (const Axis& axis : axes) {
    std::set<std::uint32_t>& found = group.along.emplace_back();
    for (const NpuId member : members) found.insert(coordinate(axis, member.value()));
    for (std::uint32_t c = 0; members.empty() && c < axis.size; ++c) found.insert(c);
    product *= found.size();
  }
  group.is_product = members.empty() || product == members.size();
  return group;
}

GroupShape shape_of(std::span<const Axis> axes, std::uint32_t npu, const GroupCoordinates& group) {
  GroupShape shape;
  for (std::size_t a = 0; a < axes.size(); ++a)
    shape.extents.push_back(extent_of(axes[a], coordinate(axes[a], npu), group.along[a]));
  return shape;
}

Offsets offsets_to(std::span<const Axis> axes, std::uint32_t npu, std::uint32_t peer) {
  Offsets offsets;
  for (const Axis& axis : axes) {
    const auto size = static_cast<std::int32_t>(axis.size);
    const std::int32_t raw =
        static_cast<std::int32_t>(coordinate(axis, peer)) - static_cast<std::int32_t>(coordinate(axis, npu));
    offsets.push_back(2 * std::abs(raw) <= size ? raw : raw > 0 ? raw - size : raw + size);
  }
  return offsets;
}

std::vector<std::uint32_t> coordinates_of(const Extent& extent, std::uint32_t own, std::uint32_t size) {
  std::vector<std::uint32_t> result;
  if (extent.kind == Extent::Kind::own) result.push_back(own);
  if (extent.kind == Extent::Kind::all)
    for (std::uint32_t c = 0; c < size; ++c) result.push_back(c);
  for (const std::int32_t position : extent.positions) {
    const std::int64_t c = position < 0 ? std::int64_t{size} + position : position;
    if (c >= 0 && c < size) result.push_back(static_cast<std::uint32_t>(c));
  }
  std::ranges::sort(result);
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

}  // namespace orrery::synthesis
