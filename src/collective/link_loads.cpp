#include "link_loads.hpp"

#include <algorithm>

namespace orrery::collective {
namespace {

using topology::Device;
using topology::GroupLink;

/// In larger groups messages are not told apart, and positions that are alike are not counted one by one.
constexpr std::uint32_t most_told_apart = 256;
constexpr std::uint64_t most_dense = std::uint64_t{1} << 20U;  // links

}  // namespace

std::uint64_t& LinkLoads::Counter::operator[](std::uint64_t link) {
  if (link >= most_dense) return sparse_[link];
  if (link >= dense_.size()) dense_.resize(std::max<std::size_t>(link + 1, 2 * dense_.size()));
  return dense_[link];
}

std::uint64_t LinkLoads::Counter::of(std::uint64_t link) const {
  if (link < most_dense) return link < dense_.size() ? dense_[link] : 0;
  const auto found = sparse_.find(link);
  return found == sparse_.end() ? 0 : found->second;
}

LinkLoads::LinkLoads(const GroupContext& context, const Round& round)
    : topology_(context.delays.topology()),
      axis_(context.axis),
      group_(context.group),
      has_detours_(context.has_detours),
      counts_(axis_.dimensions.size()),
      most_(axis_.dimensions.size(), 1) {
  const std::uint32_t n = axis_.size;
  is_alike_ = n > most_told_apart && axis_.dimensions.size() == 1 && context.is_circulant() && !round.by_xor;
  if (is_alike_) {
    count_alike(round);
    return;
  }
  const auto for_each_message = [&](auto visit) {
    for (std::uint32_t i = 0; i < n; ++i)
      for (std::uint32_t d = round.first; d <= round.last; ++d)
        for (std::size_t k = 0; k < axis_.dimensions.size(); ++k)
          visit(k, i, round.by_xor ? i ^ d : d < n - i ? i + d : i + d - n);
  };
  for_each_message([&](std::size_t k, std::uint32_t from, std::uint32_t to) {
    for_each_link(k, from, to, [&](std::uint64_t link) { most_[k] = std::max(most_[k], ++counts_[k][link]); });
  });
  if (n > most_told_apart || std::ranges::all_of(most_, [](std::uint64_t most) { return most == 1; })) return;
  is_uniform_ = false;  // until all messages have been seen
  bool differs = false;
  for_each_message([&](std::size_t k, std::uint32_t from, std::uint32_t to) {
    differs = differs || (axis_.coordinate(k, from) != axis_.coordinate(k, to) && of(k, from, to) != most_[k]);
  });
  is_uniform_ = !differs;
}

/// Positions that are alike use links of one number equally often.
void LinkLoads::count_alike(const Round& round) {
  const topology::Wiring& wiring = wiring_of(0);
  std::vector<std::uint64_t> of_first(wiring.links_per_position(), 0);
  for (std::uint32_t d = round.first; d <= round.last; ++d)
    for_each_link(0, 0, d, [&](std::uint64_t link) { ++of_first[link % wiring.links_per_position()]; });
  const std::uint64_t most = std::ranges::max(of_first);
  most_[0] = std::max<std::uint64_t>(1, (most * axis_.size + wiring.size() - 1) / wiring.size());
}

NpuId LinkLoads::moved(NpuId npu, std::size_t k, std::uint32_t position) const {
  const std::uint32_t d = axis_.dimensions[k], stride = topology_.stride(d);
  return NpuId(npu.value() + position * stride - topology_.coordinate(npu, d) * stride);
}

/// Returns which line along the axis' k-th dimension a message passes: it has been through the lower dimensions
/// already, and not yet through the higher ones.
std::uint64_t LinkLoads::line_of(std::size_t k, std::uint32_t from, std::uint32_t to) const {
  std::uint64_t line = 0;
  for (std::size_t other = 0; other < axis_.dimensions.size(); ++other)
    if (other != k) line = line * wiring_of(other).size() + axis_.coordinate(other, other < k ? to : from);
  return line;
}

/// Calls visit(link) for each link that a message passes in the axis' k-th dimension, in order, without the core of a
/// switch.
template <class Visit>
void LinkLoads::for_each_link(std::size_t k, std::uint32_t from, std::uint32_t to, Visit visit) const {
  if (has_detours_) return for_each_link_around(k, from, to, visit);
  const std::uint32_t a = axis_.coordinate(k, from), b = axis_.coordinate(k, to);
  if (a == b) return;
  const topology::Wiring& wiring = wiring_of(k);
  const std::uint64_t line = line_of(k, from, to);
  const Device there{Device::Kind::position, b};
  for (Device at{Device::Kind::position, a}; at != there;) {
    const GroupLink link = wiring.towards(at, b);
    if (wiring.role(link) != topology::LinkRole::core)
      visit((line * wiring.size() + link.position) * wiring.links_per_position() + link.number);
    at = wiring.to(link);
  }
}

/// Does so where links of some groups have failed. A way around them goes from position to position.
template <class Visit>
void LinkLoads::for_each_link_around(std::size_t k, std::uint32_t from, std::uint32_t to, Visit visit) const {
  const topology::Wiring& wiring = wiring_of(k);
  const std::uint32_t d = axis_.dimensions[k], last = topology_.coordinate(npu(to), d);
  NpuId at = npu(from);
  for (std::size_t lower = 0; lower < k; ++lower)
    at = moved(at, lower, topology_.coordinate(npu(to), axis_.dimensions[lower]));
  const NpuId there = moved(at, k, last);
  const auto number = [&](NpuId owner, std::uint64_t of_owner) {
    return owner.value() * std::uint64_t{wiring.size() + wiring.links_per_position()} + of_owner;
  };
  if (at != there && topology_.links().has_failed(d, at)) {
    while (at != there) {
      const std::uint32_t next = topology_.links().next_step(d, at, there);
      visit(number(at, next));
      at = moved(at, k, next);
    }
    return;
  }
  const Device end{Device::Kind::position, last};
  for (Device device{Device::Kind::position, topology_.coordinate(at, d)}; device != end;) {
    const GroupLink link = wiring.towards(device, last);
    if (wiring.role(link) != topology::LinkRole::core)
      visit(number(moved(at, k, link.position), wiring.size() + link.number));
    device = wiring.to(link);
  }
}

std::uint64_t LinkLoads::of(std::size_t k, std::uint32_t i, std::uint32_t j) const {
  if (is_uniform_) return most_[k];
  std::uint64_t most = 1;
  for_each_link(k, i, j, [&](std::uint64_t link) { most = std::max(most, counts_[k].of(link)); });
  return most;
}

bool may_share_links(const GroupContext& context) {
  const Axis& axis = context.axis;
  if (!context.rules.share_bandwidth) return false;
  if (axis.dimensions.size() > 1 || context.has_detours) return true;
  const topology::ShapeType& shape = *context.delays.topology().dimension(axis.dimensions[0]).shape;
  return !shape.sends_over_one_link && shape.symmetry != topology::HopSymmetry::permutations;
}

GroupContext with_loads(const GroupContext& context, const Round& round) {
  GroupContext result = context;
  if (!may_share_links(context)) return result;
  auto loads = std::make_shared<const LinkLoads>(context, round);
  for (std::size_t k = 0; k < context.axis.dimensions.size(); ++k)
    if (loads->most(k) > 1) result.loads = loads;
  return result;
}

}  // namespace orrery::collective
