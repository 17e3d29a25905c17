#include "orrery/topology/switch_links.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string>

#include <fmt/format.h>

#include "orrery/base/error.hpp"
#include "orrery/base/text.hpp"

namespace orrery::topology {
namespace {

constexpr std::uint16_t unreached = std::numeric_limits<std::uint16_t>::max();

bool joins_switches(const Wiring& wiring, GroupLink link) {
  return wiring.exists(link) && wiring.from(link).kind == Device::Kind::network_switch &&
         wiring.to(link).kind == Device::Kind::network_switch;
}

/// Calls visit(link) for each link between switches.
template <class Visit>
void for_each_switch_link(const Wiring& wiring, Visit visit) {
  for (std::uint32_t position = 0; position < wiring.size(); ++position)
    for (std::uint32_t number = 0; number < wiring.links_per_position(); ++number)
      if (const GroupLink link{position, number}; joins_switches(wiring, link)) visit(link);
}

/// Returns the switch to which a position sends.
std::uint32_t home_of(const Wiring& wiring, std::uint32_t position) {
  return wiring.to(wiring.first_link(position, position == 0 ? 1 : 0)).number;
}

std::uint32_t num_switches(const Wiring& wiring) {
  std::uint32_t count = 0;
  for (const SwitchTier& tier : wiring.switch_tiers()) count += tier.count;
  return count;
}

/// Returns the kind of a switch as users name it: the two sides of an oversubscribed switch are one switch.
std::string_view kind_of(const SwitchTier& tier) { return tier.name.substr(0, tier.name.find(' ')); }

/// Returns the number behind the last space of a name; none if there is no number.
std::optional<std::uint32_t> number_in(std::string_view name) {
  const std::size_t space = name.rfind(' ');
  if (space == std::string_view::npos) return {};
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(name.data() + space + 1, name.data() + name.size(), number);
  return error == std::errc() && end == name.data() + name.size() ? std::optional(number) : std::nullopt;
}

}  // namespace

SwitchPlace switch_named(const Wiring& wiring, std::uint32_t groups, std::string_view name) {
  const std::vector<SwitchTier> tiers = wiring.switch_tiers();
  const auto number = number_in(name);
  SwitchPlace place;
  std::vector<std::string> expected;
  std::uint32_t before = 0;
  for (const SwitchTier& tier : tiers) {
    const std::string_view kind = kind_of(tier);
    if (number && name.substr(0, name.rfind(' ')) == kind && *number / tier.count < groups) {
      place.group = *number / tier.count;
      place.numbers.push_back(before + *number % tier.count);
    }
    before += tier.count;
    std::string range = fmt::format("'{} 0' to '{} {}'", kind, kind, std::uint64_t{tier.count} * groups - 1);
    if (std::ranges::find(expected, range) == expected.end()) expected.push_back(std::move(range));
  }
  if (!place.numbers.empty()) return place;
  throw Error(ErrorCode::bad_input, {}, fmt::format("found the switch '{}'", name),
              tiers.empty() ? std::string("a dimension with switches") : fmt::format("{}", fmt::join(expected, ", ")));
}

SwitchLinks::SwitchLinks(std::shared_ptr<const Wiring> wiring, std::uint32_t links)
    : wiring_(std::move(wiring)), side_by_side_(links) {}

std::vector<GroupLink> SwitchLinks::between(const Wiring& wiring, std::span<const SwitchPlace> switches) {
  const auto is_of = [](const SwitchPlace& place, Device device) {
    return std::ranges::find(place.numbers, device.number) != place.numbers.end();
  };
  std::vector<GroupLink> links;
  for_each_switch_link(wiring, [&](GroupLink link) {
    const Device from = wiring.from(link), to = wiring.to(link);
    const SwitchPlace &one = switches.front(), &other = switches.back();
    const bool is_meant = switches.size() == 1
                              ? is_of(one, from) || is_of(one, to)
                              : (is_of(one, from) && is_of(other, to)) || (is_of(other, from) && is_of(one, to));
    if (is_meant) links.push_back(link);
  });
  return links;
}

void SwitchLinks::change(std::span<const GroupLink> links, const Port& factors) {
  for (const GroupLink link : links) {
    Port& port = changed_[key(link)];
    port = {port.bandwidth * factors.bandwidth, port.latency * factors.latency};
  }
}

void SwitchLinks::fail(std::span<const GroupLink> links) {
  for (const GroupLink link : links) {
    std::uint32_t& lost = lost_[key(link)];
    const double left = side_by_side_ - lost;
    if (++lost >= side_by_side_)
      failed_.insert(key(link));
    else
      changed_[key(link)].bandwidth *= (left - 1) / left;
  }
  require_joined();
}

/// Throws Error (bad_input) if a message between some positions has no way.
void SwitchLinks::require_joined() const {
  if (failed_.empty()) return;
  std::vector<std::vector<std::uint32_t>> next(num_switches(*wiring_));
  for_each_switch_link(*wiring_, [&](GroupLink link) {
    if (!has_failed(link)) next[wiring_->from(link).number].push_back(wiring_->to(link).number);
  });
  std::vector<bool> is_reached(next.size(), false);
  std::vector<std::uint32_t> reached{home_of(*wiring_, 0)};
  is_reached[reached.front()] = true;
  for (std::size_t i = 0; i < reached.size(); ++i)
    for (const std::uint32_t to : next[reached[i]])
      if (!is_reached[to]) {
        is_reached[to] = true;
        reached.push_back(to);
      }
  for (std::uint32_t position = 0; position < wiring_->size(); ++position)
    if (!is_reached[home_of(*wiring_, position)])
      throw Error(ErrorCode::bad_input, {},
                  fmt::format("no working link leads from position 0 of the group to position {}", position),
                  "failures that leave a way between all NPUs",
                  "Make the links slow, or leave the NPUs out of the system.");
}

Port SwitchLinks::port(GroupLink link) const {
  const auto found = changed_.find(key(link));
  return found == changed_.end() ? Port{} : found->second;
}

bool SwitchLinks::has_failed(GroupLink link) const { return failed_.contains(key(link)); }

double SwitchLinks::least_latency() const {
  double least = 1;
  for (const auto& [link, port] : changed_) least = std::min(least, port.latency);
  return least;
}

SwitchDetours::SwitchDetours(const Wiring& wiring, const SwitchLinks& links)
    : wiring_(wiring), links_(links), leaving_(num_switches(wiring)), distance_(leaving_.size()) {
  for_each_switch_link(wiring, [&](GroupLink link) {
    if (!links.has_failed(link)) leaving_[wiring.from(link).number].push_back({link, wiring.to(link).number});
  });
  for (std::uint32_t position = 0; position < wiring.size(); ++position)
    if (const std::uint32_t home = home_of(wiring, position); distance_[home].empty()) add_distances_to(home);
}

/// Counts the links from each switch to one of them. Links work in both directions or in none.
void SwitchDetours::add_distances_to(std::uint32_t home) {
  std::vector<std::uint16_t>& distance = distance_[home];
  distance.assign(leaving_.size(), unreached);
  distance[home] = 0;
  std::vector<std::uint32_t> reached{home};
  for (std::size_t i = 0; i < reached.size(); ++i)
    for (const Leaving& way : leaving_[reached[i]])
      if (distance[way.to] == unreached) {
        distance[way.to] = static_cast<std::uint16_t>(distance[reached[i]] + 1);
        reached.push_back(way.to);
      }
}

bool SwitchDetours::works_regularly(Device at, std::uint32_t position) const {
  while (at.kind == Device::Kind::network_switch) {
    const GroupLink link = wiring_.towards(at, position);
    if (wiring_.from(link) != at || links_.has_failed(link)) return false;  // a regular route does not come here
    at = wiring_.to(link);
  }
  return true;
}

// The last part of a regular route that works is one too, and a link of a shortest route leads nearer. So no message
// goes round in a circle. The position chooses among the shortest routes, as it does among the regular ones.
GroupLink SwitchDetours::towards(Device at, std::uint32_t position) const {
  if (works_regularly(at, position)) return wiring_.towards(at, position);
  const std::vector<std::uint16_t>& distance = distance_[home_of(wiring_, position)];
  std::vector<GroupLink> nearer;
  for (const Leaving& way : leaving_[at.number])
    if (distance[way.to] + 1 == distance[at.number]) nearer.push_back(way.link);
  ensure(!nearer.empty(), "links that work lead from each switch towards each position");
  return nearer[position % nearer.size()];
}

}  // namespace orrery::topology
