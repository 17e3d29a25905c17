#include "group_context.hpp"

#include <algorithm>
#include <cmath>

#include "link_loads.hpp"

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

bool GroupContext::is_evenly_spaced() const {
  const std::uint32_t size = delays.topology().dimension(axis.dimensions[0]).size;
  if (axis.dimensions.size() > 1 || size % axis.size != 0) return false;
  for (std::uint32_t position = 0; position < axis.size; ++position)
    if (axis.coordinate(0, position) != position * (size / axis.size)) return false;
  return true;
}

Bytes GroupContext::beside_others(std::size_t k, Bytes size, std::uint64_t load) const {
  const topology::Dimension& dimension = delays.topology().dimension(axis.dimensions[k]);
  const bool one_link = dimension.shape->sends_over_one_link && !dimension.shape->is_of_links_only;
  const Bytes bytes = times(size, share * std::max(one_link ? at_once : 1, load));
  const topology::SharedPort* const port = delays.topology().ports().of(axis.dimensions[k]);
  if (port == nullptr || one_link || at_once <= 1) return bytes;
  // Messages over several links leave through one port.
  const double links = port->rate.bytes_per_ns() / dimension.bandwidth_of_links().bytes_per_ns();
  const auto through_port = static_cast<double>(times(size, share * at_once).count()) / links;
  return std::max(bytes, Bytes(static_cast<std::uint64_t>(std::ceil(through_port))));
}

std::uint64_t GroupContext::load(std::size_t k, Pair data) const {
  return loads ? loads->of(k, data.sender, data.receiver) : 1;
}

Ps GroupContext::hop_delay(std::size_t k, std::uint32_t difference, Bytes size) const {
  const std::uint32_t d = axis.dimensions[k];
  const topology::Port port =
      axis.ports.empty() ? topology::Port{} : delays.topology().links().port(d, axis.port(k, group, 0));
  const Bytes bytes = beside_others(k, size, loads ? loads->most(k) : 1);
  return in_range(delays.link_delay(d, delays.topology().hops(d, 0, difference), bytes, port));
}

Ps GroupContext::link(std::uint32_t i, std::uint32_t j, Bytes size) const { return delay(i, j, size, {i, j}); }

Ps GroupContext::clear_to_send(std::uint32_t i, std::uint32_t j) const {
  return rendezvous ? delay(j, i, clear_to_send_bytes, {i, j}) : 0;
}

Ps GroupContext::delay(std::uint32_t from, std::uint32_t to, Bytes size, Pair data) const {
  if (has_detours) {
    const NpuId* npus = axis.npus.data() + std::size_t{group} * axis.size;
    Time total;
    delays.for_each_leg(npus[from], npus[to], [&](std::uint32_t d, std::uint32_t hops, const topology::Port& port) {
      const auto k = static_cast<std::size_t>(std::ranges::find(axis.dimensions, d) - axis.dimensions.begin());
      total += delays.link_delay(d, hops, beside_others(k, size, load(k, data)), port);
    });
    return in_range(total);
  }
  Ps total = 0;
  for (std::size_t k = 0; k < axis.dimensions.size(); ++k) {
    const std::uint32_t a = axis.coordinate(k, from);
    const std::uint32_t b = axis.coordinate(k, to);
    if (a == b) continue;
    const std::uint32_t d = axis.dimensions[k];
    const std::uint32_t hops = delays.topology().hops(d, a, b);
    const Bytes bytes = beside_others(k, size, load(k, data));
    total = plus(total, in_range(delays.link_delay(d, hops, bytes, port(k, from, to))));
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

}  // namespace orrery::collective
