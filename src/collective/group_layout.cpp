#include "group_layout.hpp"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "orrery/base/error.hpp"
#include "orrery/topology/symmetry.hpp"

namespace orrery::collective {
namespace {

using topology::Topology;

/// The members' coordinates in one dimension of a grid.
struct Side {
  std::uint32_t dimension = 0;
  std::vector<std::uint32_t> coordinates;  ///< ascending, distinct
};

bool is_iota(std::span<const std::uint32_t> values) {
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] != i) return false;
  return true;
}

/// Returns whether the delays of a group in one dimension depend on the difference of positions only.
bool evenly_spaced(const Topology& topology, const Axis& axis) {
  if (axis.size == 2) return true;
  return axis.dimensions.size() == 1 && is_circulant(topology.dimension(axis.dimensions[0]), axis.coordinates);
}

/// Returns the coordinates, ascending and distinct. O(members log members), or O(members + size of the dimension) if
/// that is less.
std::vector<std::uint32_t> coordinates_of(const Topology& topology, std::span<const NpuId> members, std::uint32_t d) {
  std::vector<std::uint32_t> coordinates;
  if (members.size() < topology.dimension(d).size) {
    for (const NpuId npu : members) coordinates.push_back(topology.coordinate(npu, d));
    std::ranges::sort(coordinates);
    coordinates.erase(std::unique(coordinates.begin(), coordinates.end()), coordinates.end());
    return coordinates;
  }
  std::vector<bool> seen(topology.dimension(d).size);
  for (const NpuId npu : members) seen[topology.coordinate(npu, d)] = true;
  for (std::uint32_t c = 0; c < seen.size(); ++c)
    if (seen[c]) coordinates.push_back(c);
  return coordinates;
}

std::vector<Side> sides_of(const Topology& topology, std::span<const NpuId> members) {
  std::vector<Side> sides;
  for (std::uint32_t d = 0; d < topology.num_dimensions(); ++d)
    if (Side side{d, coordinates_of(topology, members, d)}; side.coordinates.size() > 1)
      sides.push_back(std::move(side));
  return sides;
}

/// Returns the member in every cell of the grid, first side fastest; nothing if the members do not fill a grid.
std::vector<std::uint32_t> cells_of(const Topology& topology, std::span<const NpuId> members,
                                    const std::vector<Side>& sides) {
  std::uint64_t num_cells = 1;
  for (const Side& side : sides) {
    num_cells *= side.coordinates.size();
    if (num_cells > members.size()) return {};
  }
  constexpr std::uint32_t nobody = ~std::uint32_t{0};
  std::vector<std::uint32_t> cells(num_cells, nobody);
  for (std::size_t i = 0; i < members.size(); ++i) {
    std::size_t cell = 0;
    std::size_t stride = 1;
    for (const Side& side : sides) {
      const auto at = std::ranges::lower_bound(side.coordinates, topology.coordinate(members[i], side.dimension));
      cell += static_cast<std::size_t>(at - side.coordinates.begin()) * stride;
      stride *= side.coordinates.size();
    }
    ensure(cells[cell] == nobody, "a communicator names a member twice");
    cells[cell] = static_cast<std::uint32_t>(i);
  }
  return num_cells == members.size() ? cells : std::vector<std::uint32_t>{};
}

/// Sets which links of the axis are not as their dimensions say. O(members * dimensions).
void set_links(const Topology& topology, std::span<const NpuId> members, Axis& axis) {
  const topology::Links& links = topology.links();
  if (links.empty()) return;
  const auto has_failed = [&](std::uint32_t d) {
    // A message over several dimensions may pass groups of others on its way.
    if (axis.dimensions.size() > 1) return links.has_failed(d);
    return std::ranges::any_of(members, [&](NpuId npu) { return links.has_failed(d, npu); });
  };
  if (std::ranges::any_of(axis.dimensions, has_failed))
    for (const std::uint32_t member : axis.members) axis.npus.push_back(members[member]);
  for (const std::uint32_t d : axis.dimensions)
    for (const std::uint32_t member : axis.members) axis.ports.push_back(links.kind_of_port(d, members[member]));
  if (std::ranges::all_of(axis.ports, [](std::uint16_t kind) { return kind == 0; })) axis.ports = {};
}

/// Returns how positions with these coordinates, ascending, lie along a Ring or Mesh; none if the dimension is neither.
/// Some neighbours on a ring may be so far apart that messages between them go the other way round: then the positions
/// are a row, which begins behind this gap.
std::optional<TorusSide> torus_side(const topology::Dimension& dimension, std::span<const std::uint32_t> coordinates) {
  using topology::HopSymmetry;
  const HopSymmetry symmetry = dimension.shape->symmetry;
  const bool is_mesh = symmetry == HopSymmetry::translations, is_ring = symmetry == HopSymmetry::rotations;
  if (dimension.shape->pattern != topology::TrafficPattern::neighbours || (!is_mesh && !is_ring)) return {};
  const auto n = static_cast<std::uint32_t>(coordinates.size());
  TorusSide side{n, dimension.bandwidth_of_links().bytes_per_ns()};
  if (is_mesh || n == 2) {
    side.end = n - 1;
    return side;
  }
  for (std::uint32_t i = 0; i < n; ++i) {
    const std::uint32_t gap =
        i + 1 < n ? coordinates[i + 1] - coordinates[i] : coordinates[0] + dimension.size - coordinates[n - 1];
    if (2 * gap >= dimension.size) side.end = i;
  }
  return side;
}

/// Returns the groups along sides of the grid in a row, which together are tori: `first` is the first of them.
Axis joint_axis(const Topology& topology, std::span<const NpuId> members, std::span<const Axis> axes, std::size_t first,
                std::size_t count, const std::vector<std::uint32_t>& cells) {
  Axis joint;
  std::size_t stride = 1;
  for (std::size_t a = 0; a < first; ++a) stride *= axes[a].size;
  joint.size = 1;
  for (const Axis& axis : axes.subspan(first, count)) joint.size *= axis.size;
  std::uint32_t inner = 1;
  for (const Axis& axis : axes.subspan(first, count)) {
    joint.dimensions.push_back(axis.dimensions[0]);
    joint.torus.push_back(axis.torus[0]);
    for (std::uint32_t i = 0; i < joint.size; ++i) joint.coordinates.push_back(axis.coordinates[i / inner % axis.size]);
    inner *= axis.size;
  }
  for (std::size_t high = 0; high < cells.size(); high += stride * joint.size)
    for (std::size_t low = 0; low < stride; ++low)
      for (std::size_t i = 0; i < joint.size; ++i) joint.members.push_back(cells[high + low + i * stride]);
  joint.in_order = is_iota(joint.members);
  set_links(topology, members, joint);
  return joint;
}

/// Returns the groups along side `s` of the grid.
Axis grid_axis(const Topology& topology, std::span<const NpuId> members, const std::vector<Side>& sides, std::size_t s,
               const std::vector<std::uint32_t>& cells) {
  Axis axis;
  axis.size = static_cast<std::uint32_t>(sides[s].coordinates.size());
  axis.dimensions = {sides[s].dimension};
  append_normal_form(topology.dimension(sides[s].dimension), sides[s].coordinates, axis.coordinates);
  std::size_t stride = 1;
  for (std::size_t k = 0; k < s; ++k) stride *= sides[k].coordinates.size();
  axis.members.reserve(cells.size());
  for (std::size_t high = 0; high < cells.size(); high += stride * axis.size)
    for (std::size_t low = 0; low < stride; ++low)
      for (std::size_t i = 0; i < axis.size; ++i) axis.members.push_back(cells[high + low + i * stride]);
  axis.in_order = is_iota(axis.members);
  axis.circulant = axis.transitive = evenly_spaced(topology, axis);
  set_links(topology, members, axis);
  if (axis.npus.empty())
    if (const auto side = torus_side(topology.dimension(sides[s].dimension), sides[s].coordinates))
      axis.torus = {*side};
  return axis;
}

/// Returns the axes in a row, two or more, that together are tori.
std::vector<JointAxes> joint_axes(const Topology& topology, std::span<const NpuId> members, std::span<const Axis> axes,
                                  const std::vector<std::uint32_t>& cells) {
  std::vector<JointAxes> result;
  for (std::uint32_t first = 0, end = 0; first < axes.size(); first = end + 1) {
    for (end = first; end < axes.size() && !axes[end].torus.empty();) ++end;
    if (end - first > 1)
      result.push_back({first, end - first, joint_axis(topology, members, axes, first, end - first, cells)});
  }
  return result;
}

/// Returns all members as one group in the order listed, or in the order of their ids.
Axis whole_axis(const network::DelayModel& delays, std::span<const NpuId> members, bool by_ids) {
  const Topology& topology = delays.topology();
  Axis axis;
  axis.size = static_cast<std::uint32_t>(members.size());
  axis.members.resize(members.size());
  std::iota(axis.members.begin(), axis.members.end(), 0U);
  if (by_ids) std::ranges::sort(axis.members, {}, [&](std::uint32_t member) { return members[member]; });
  const auto npu_at = [&](std::size_t position) { return members[axis.members[position]]; };
  std::vector<std::uint32_t> coordinates(members.size());
  for (std::uint32_t d = 0; d < topology.num_dimensions(); ++d) {
    for (std::size_t i = 0; i < members.size(); ++i) coordinates[i] = topology.coordinate(npu_at(i), d);
    if (std::ranges::all_of(coordinates, [&](std::uint32_t c) { return c == coordinates[0]; })) continue;
    axis.dimensions.push_back(d);
    append_normal_form(topology.dimension(d), coordinates, axis.coordinates);
  }
  axis.in_order = is_iota(axis.members);
  bool world_in_order = members.size() == topology.num_npus();
  for (std::size_t i = 0; world_in_order && i < members.size(); ++i) world_in_order = npu_at(i).index() == i;
  const bool is_regular = world_in_order && std::ranges::all_of(axis.dimensions, [&](std::uint32_t d) {
                            return is_circulant(topology.dimension(d));
                          });
  // Ids in order are mixed-radix numbers: the lowest digit in which i and j differ, and by how much, follow from
  // (i - j) mod N alone, because nothing is borrowed below that digit.
  axis.circulant = evenly_spaced(topology, axis) || (is_regular && !delays.rules().charge_every_dimension);
  axis.transitive = axis.circulant || is_regular;
  set_links(topology, members, axis);
  return axis;
}

/// Returns the axis with the positions of each group in opposite order: what follows the order goes round the other
/// way.
Axis back(Axis axis) {
  const auto turn = [&](auto& values) {
    for (std::size_t at = 0; at < values.size(); at += axis.size)
      std::reverse(values.begin() + static_cast<std::ptrdiff_t>(at),
                   values.begin() + static_cast<std::ptrdiff_t>(at + axis.size));
  };
  turn(axis.coordinates);
  turn(axis.members);
  turn(axis.ports);
  turn(axis.npus);
  axis.in_order = false;
  return axis;
}

void check_distinct(std::span<const NpuId> members) {
  std::vector<NpuId> sorted(members.begin(), members.end());
  std::ranges::sort(sorted);
  ensure(std::ranges::adjacent_find(sorted) == sorted.end(), "a communicator names a member twice");
}

std::size_t mix(std::size_t seed, std::size_t value) { return (seed ^ value) * 0x9E3779B97F4A7C15U + (seed >> 29); }

std::size_t hash(const Axis& axis, std::size_t seed) {
  seed = mix(seed, axis.size);
  for (const std::uint32_t d : axis.dimensions) seed = mix(seed, d);
  for (const std::uint32_t c : axis.coordinates) seed = mix(seed, c);
  for (const std::uint32_t m : axis.members) seed = mix(seed, m);
  for (const std::uint16_t kind : axis.ports) seed = mix(seed, kind);
  for (const NpuId npu : axis.npus) seed = mix(seed, npu.index());
  return seed;
}

}  // namespace

GroupLayout build_layout(const network::DelayModel& delays, const GroupLayoutRequest& request) {
  const Topology& topology = delays.topology();
  for (const NpuId npu : request.members) ensure(npu.value() < topology.num_npus(), "a member that is no NPU");
  GroupLayout layout;
  layout.num_members = static_cast<std::uint32_t>(request.members.size());
  if (layout.num_members == 1) return layout;
  layout.subgroup = !request.sub_grid && layout.num_members < topology.num_npus();
  layout.always_ring = layout.subgroup && request.subgroup_is_ring;
  if (!layout.always_ring) {
    const std::vector<Side> sides = sides_of(topology, request.members);
    const std::vector<std::uint32_t> cells = cells_of(topology, request.members, sides);
    ensure(!request.sub_grid || !cells.empty(), "members by involved dimensions are not a grid");
    for (std::size_t s = 0; !cells.empty() && s < sides.size(); ++s)
      layout.axes.push_back(grid_axis(topology, request.members, sides, s, cells));
    if (request.all_axes) layout.joint = joint_axes(topology, request.members, layout.axes, cells);
  }
  if (layout.axes.empty() || request.needs_whole) {
    check_distinct(request.members);
    layout.whole = whole_axis(delays, request.members, request.world_by_ids && !layout.subgroup);
  }
  if (request.two_directions) {
    for (const Axis& axis : layout.axes) layout.axes_back.push_back(back(axis));
    if (layout.whole) layout.whole_back = back(*layout.whole);
  }
  return layout;
}

std::size_t hash(const GroupLayout& layout) {
  std::size_t seed = mix(layout.num_members, static_cast<std::size_t>(layout.subgroup) * 2 + layout.always_ring);
  if (layout.sharing > 0) seed = mix(seed, layout.sharing);
  for (const Axis& axis : layout.axes) seed = hash(axis, seed);
  if (layout.whole) seed = hash(*layout.whole, mix(seed, 1));
  if (layout.custom) seed = mix(seed, std::hash<std::shared_ptr<const CustomCollective>>{}(layout.custom));
  return seed;
}

std::vector<NpuId> members_of_sub_grid(const topology::Topology& topology, NpuId npu, std::uint64_t dimensions) {
  std::vector<std::uint32_t> ids{npu.value()};
  for (std::uint32_t d = 0; d < topology.num_dimensions(); ++d) {
    if ((dimensions >> d & 1U) == 0) continue;
    const std::uint32_t stride = topology.stride(d);
    const std::size_t known = ids.size();
    std::vector<std::uint32_t> grown;
    for (std::uint32_t c = 0; c < topology.dimension(d).size; ++c)
      for (std::size_t i = 0; i < known; ++i)
        grown.push_back(ids[i] - topology.coordinate(NpuId(ids[i]), d) * stride + c * stride);
    ids = std::move(grown);
  }
  std::vector<NpuId> members;
  for (const std::uint32_t id : ids) members.emplace_back(id);
  return members;
}

}  // namespace orrery::collective
