#include "orrery/topology/wiring.hpp"

#include <source_location>

#include "orrery/base/error.hpp"

namespace orrery::topology {
namespace {

/// Calls visit(link) for each link of the route between two different positions, in order.
template <class Visit>
void for_each_link(const Wiring& wiring, std::uint32_t from, std::uint32_t to, Visit visit) {
  const Device destination{Device::Kind::position, to};
  for (Device at{Device::Kind::position, from}; !(at == destination);) {
    const GroupLink link = wiring.towards(at, to);
    visit(link);
    at = wiring.to(link);
  }
}

/// Calls visit(link) for each link that is there, until it returns false.
template <class Visit>
void for_each_link(const Wiring& wiring, Visit visit) {
  const std::uint32_t per_position = wiring.links_per_position();
  for (std::uint32_t position = 0; position < wiring.size(); ++position)
    for (std::uint32_t number = 0; number < per_position; ++number)
      if (const GroupLink link{position, number}; wiring.exists(link) && !visit(link)) return;
}

bool leaves_position(const Wiring& wiring, GroupLink link) { return wiring.from(link).kind == Device::Kind::position; }

}  // namespace

bool Wiring::exists(GroupLink) const { return true; }

std::vector<GroupLink> Wiring::alternatives(GroupLink, std::uint32_t) const { return {}; }

LinkRole Wiring::role(GroupLink) const { return LinkRole::plain; }

std::optional<ValidationError> Wiring::validation_error(const FailedLinks&, const GroupNpus&) const { return {}; }

std::uint32_t Wiring::next_around(const FailedLinks&, std::uint32_t, std::uint32_t) const {
  ensure_failed("a way around failed links in a shape that has none", std::source_location::current());
}

std::uint32_t Wiring::hops_around(const FailedLinks& failed, std::uint32_t from, std::uint32_t to) const {
  std::uint32_t count = 0;
  for (; from != to; ++count) from = next_around(failed, from, to);
  return count;
}

std::uint32_t Wiring::hops(std::uint32_t from, std::uint32_t to) const {
  std::uint32_t count = 0;
  for_each_link(*this, from, to, [&](GroupLink link) { count += role(link) == LinkRole::core ? 0 : 1; });
  return count;
}

/// A message that leaves a position is at a switch or at another position after one hop.
std::uint32_t Wiring::fewest_hops() const {
  bool joins_positions = false;
  for_each_link(*this, [&](GroupLink link) {
    joins_positions = leaves_position(*this, link) && to(link).kind == Device::Kind::position;
    return !joins_positions;
  });
  return joins_positions ? 1 : 2;
}

std::uint32_t Wiring::most_hops() const {
  std::uint32_t most = 0;
  for (std::uint32_t from = 0; from < size_; ++from)
    for (std::uint32_t to = 0; to < size_; ++to)
      if (from != to) most = std::max(most, hops(from, to));
  return most;
}

std::uint64_t Wiring::num_injection_links() const {
  std::uint64_t count = 0;
  for_each_link(*this, [&](GroupLink link) {
    count += leaves_position(*this, link) ? 1 : 0;
    return true;
  });
  return count;
}

GroupLink Wiring::last_link(std::uint32_t from, std::uint32_t to) const {
  GroupLink last;
  for_each_link(*this, from, to, [&](GroupLink link) { last = link; });
  return last;
}

std::unique_ptr<const Wiring> make_wiring(const Dimension& dimension) { return dimension.shape->make(dimension); }

}  // namespace orrery::topology
