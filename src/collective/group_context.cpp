#include "group_context.hpp"

#include <algorithm>

namespace orrery::collective {

bool GroupContext::is_regular() const {
  if (has_detours) return false;
  for (std::size_t k = 0; !axis.ports.empty() && k < axis.dimensions.size(); ++k)
    for (std::uint32_t position = 1; position < axis.size; ++position)
      if (axis.port(k, group, position) != axis.port(k, group, 0)) return false;
  return true;
}

bool GroupContext::hops_follow_distances() const {
  return std::ranges::none_of(axis.dimensions, [&](std::uint32_t d) {
    return delays.topology().dimension(d).shape->symmetry == topology::HopSymmetry::none;
  });
}

Bytes GroupContext::beside_others(std::uint32_t d, Bytes size) const {
  const topology::ShapeType& shape = *delays.topology().dimension(d).shape;
  const bool one_link = shape.sends_over_one_link && !shape.is_of_links_only;
  return times(size, one_link ? share * at_once : share);
}

Ps GroupContext::hop_delay(std::size_t k, std::uint32_t difference, Bytes size) const {
  const std::uint32_t d = axis.dimensions[k];
  const topology::Port port =
      axis.ports.empty() ? topology::Port{} : delays.topology().links().port(d, axis.port(k, group, 0));
  return in_range(delays.link_delay(d, delays.topology().hops(d, 0, difference), beside_others(d, size), port));
}

Ps GroupContext::link(std::uint32_t i, std::uint32_t j, Bytes size) const {
  if (has_detours) {
    const NpuId* npus = axis.npus.data() + std::size_t{group} * axis.size;
    return in_range(delays.path_delay(npus[i], npus[j], times(size, share)));
  }
  Ps total = 0;
  for (std::size_t k = 0; k < axis.dimensions.size(); ++k) {
    const std::uint32_t a = axis.coordinate(k, i);
    const std::uint32_t b = axis.coordinate(k, j);
    if (a == b) continue;
    const std::uint32_t d = axis.dimensions[k];
    const std::uint32_t hops = delays.topology().hops(d, a, b);
    total = plus(total, in_range(delays.link_delay(d, hops, beside_others(d, size), port(k, i, j))));
    if (!delays.rules().charge_every_dimension) break;
  }
  return total;
}

topology::Port GroupContext::port(std::size_t k, std::uint32_t i, std::uint32_t j) const {
  if (axis.ports.empty()) return {};
  const std::uint32_t d = axis.dimensions[k];
  return slower(delays.topology().links().port(d, axis.port(k, group, i)),
                delays.topology().links().port(d, axis.port(k, group, j)));
}

Ps GroupContext::holds(std::size_t k, std::uint32_t i, std::uint32_t j, Bytes size) const {
  return in_range(delays.link_delay(axis.dimensions[k], 0, times(size, share), port(k, i, j)));
}

Ps GroupContext::memory(Bytes size, std::uint64_t passes) const {
  if (!(local_memory.bytes_per_ns() > 0)) return 0;
  return times(in_range(local_memory_delay(size, local_memory, delays.rounding())), passes);
}

Ps GroupContext::clear_to_send(std::uint32_t i, std::uint32_t j) const {
  return rendezvous ? link(j, i, clear_to_send_bytes) : 0;
}

}  // namespace orrery::collective
