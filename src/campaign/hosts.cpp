#include "hosts.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "orrery/base/error.hpp"

namespace orrery::campaign {
namespace {

using Drawn = std::pair<std::uint64_t, std::uint32_t>;  // key, host

/// Sorts by keys that are spread evenly over 64 bits. O(n).
void sort_by_draw(std::vector<Drawn>& drawn) {
  if (drawn.size() < 64) {
    std::sort(drawn.begin(), drawn.end());
    return;
  }
  const auto bits = static_cast<unsigned>(std::bit_width(drawn.size()));
  const auto bucket = [&](const Drawn& d) { return static_cast<std::size_t>(d.first >> (64U - bits)); };
  std::vector<std::uint32_t> begin((std::size_t{1} << bits) + 1, 0);
  for (const Drawn& d : drawn) ++begin[bucket(d) + 1];
  for (std::size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
  std::vector<Drawn> sorted(drawn.size());
  for (const Drawn& d : drawn) sorted[begin[bucket(d)]++] = d;
  for (std::size_t i = 1; i < sorted.size(); ++i)  // nearly in order
    for (std::size_t j = i; j > 0 && sorted[j] < sorted[j - 1]; --j) std::swap(sorted[j], sorted[j - 1]);
  drawn.swap(sorted);
}

}  // namespace

Hosts::Hosts(const Setup& setup, const Draws& draws)
    : numbers_(setup.hosts),
      rules_(setup.repair),
      draws_(draws),
      slots_(numbers_, draws),
      blames_(numbers_.total()),
      pool_(numbers_.total()),
      next_spare_(numbers_.active + numbers_.standby + numbers_.pool) {
  for (std::uint32_t host = 0; host < next_spare_; ++host) pool_.append(host);
}

std::uint32_t Hosts::take_standby() {
  if (standby_.empty()) return Slots::none;
  const std::uint32_t host = standby_.front();
  standby_.pop_front();
  return host;
}

void Hosts::order_by_draw(std::vector<std::uint32_t>& hosts, std::uint64_t selections) const {
  std::vector<Drawn> drawn;
  drawn.reserve(hosts.size());
  for (const std::uint32_t host : hosts) drawn.emplace_back(draws_.bits(stream::selection, selections, host), host);
  sort_by_draw(drawn);
  for (std::size_t i = 0; i < hosts.size(); ++i) hosts[i] = drawn[i].second;
}

std::vector<std::uint32_t> Hosts::candidates(std::uint64_t selections) const {
  const std::uint32_t most = numbers_.active + numbers_.standby;
  const bool by_failures = numbers_.selection == Selection::fewest_failures;
  std::vector<std::uint32_t> hosts;
  for (std::uint32_t h = pool_.first(); h != pool_.end() && (by_failures || hosts.size() < most); h = pool_.after(h))
    hosts.push_back(h);
  order_by_draw(hosts, selections);
  if (!by_failures) return hosts;
  std::stable_sort(hosts.begin(), hosts.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return blames_[a].size() < blames_[b].size(); });
  if (hosts.size() > most) hosts.resize(most);
  return hosts;
}

void Hosts::blame(std::uint32_t host, Nanoseconds now) {
  blames_[host].push_back(now);
  if (pool_.has(host)) pool_.remove(host);
  if (!rules_.any) {
    pool_.append(host);
    return;
  }
  const std::uint64_t first = blames_[host].size() * 8;
  const auto draw = [&](std::uint64_t j) { return draws_.unit(stream::repair, host, first + j); };
  double time = rules_.automatic.quantile(draw(0));
  const bool by_hand = draw(1) < rules_.escalate;
  if (by_hand) time += rules_.manual.quantile(draw(2));
  const bool is_cured = draw(3) >= (by_hand ? rules_.manual_fails : rules_.automatic_fails);
  repairs_.emplace(std::min(longest, now + nanoseconds(time)), ++num_repairs_, host, is_cured);
}

void Hosts::put_last(std::uint32_t host) {
  if (pool_.has(host)) pool_.remove(host);
  pool_.append(host);
}

void Hosts::make_standby(std::uint32_t host) {
  if (standby_.size() < numbers_.standby) standby_.push_back(host);
}

bool Hosts::is_to_retire(std::uint32_t host, Nanoseconds at) const {
  if (rules_.retire_failures == 0) return false;
  const auto recent = std::count_if(blames_[host].begin(), blames_[host].end(),
                                    [&](Nanoseconds blame) { return blame >= at - rules_.retire_within; });
  return recent >= static_cast<std::ptrdiff_t>(rules_.retire_failures);
}

void Hosts::take_back(Nanoseconds now) {
  while (!repairs_.empty() && std::get<0>(repairs_.top()) <= now) {
    const auto [at, number, host, is_cured] = repairs_.top();
    repairs_.pop();
    if (is_cured) slots_.cure(host);
    if (is_to_retire(host, at)) {
      ++num_retired_;
      continue;
    }
    pool_.append(host);
    make_standby(host);
  }
}

}  // namespace orrery::campaign
