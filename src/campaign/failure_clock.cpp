#include "failure_clock.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

namespace orrery::campaign {
namespace {

constexpr Nanoseconds renewed = -1;  // the unit has no life yet

bool is_exposed_now(const Process& process, bool is_running) {
  return is_running || process.exposure == Exposure::allocated;
}

}  // namespace

FailureClock::FailureClock(const Setup& setup, const Draws& draws, const Slots& slots)
    : setup_(setup), draws_(draws), slots_(slots), counts_(setup.processes.size(), 0) {
  for (std::uint32_t f = 0; f < setup.processes.size(); ++f) {
    const Process& process = setup.processes[f];
    budgets_.push_back(0);
    rates_.push_back(0);
    draw_budget(f);
    position_.push_back(-1);
    if (process.weibull_shape == 0 || process.rate == 0) continue;
    position_.back() = static_cast<std::int32_t>(lives_.size());
    Lives& lives = lives_.emplace_back();
    lives.process = f;
    lives.units_per_host = process.per == Per::npu ? setup.npus_per_host : 1;
    lives.at.assign(std::size_t{setup.hosts.total()} * lives.units_per_host, renewed);
    lives.drawn.assign(lives.at.size(), 0);
  }
}

void FailureClock::draw_budget(std::uint32_t process) {
  budgets_[process] = -std::log(draws_.unit(process, counts_[process], 0));
}

Nanoseconds FailureClock::draw_life(Lives& lives, std::uint32_t unit) {
  const Process& process = setup_.processes[lives.process];
  double mean = static_cast<double>(day) * 1e-9 / process.rate;
  if (slots_.is_bad(unit / lives.units_per_host) && process.counts_bad) mean /= setup_.hosts.bad_factor;
  const double u = draws_.unit(stream::lives + lives.process, unit, lives.drawn[unit]++);
  const Spread spread{.kind = SpreadKind::weibull, .mean = mean, .shape = process.weibull_shape};
  return nanoseconds(spread.quantile(u));
}

void FailureClock::entered(std::uint32_t host) {
  for (Lives& lives : lives_)
    for (std::uint32_t unit = host * lives.units_per_host; unit < (host + 1) * lives.units_per_host; ++unit) {
      if (lives.at[unit] == renewed) lives.at[unit] = draw_life(lives, unit);
      lives.at[unit] += lives.clock;
      lives.ends.emplace(lives.at[unit], unit);
    }
}

void FailureClock::left(std::uint32_t host, std::int32_t failed) {
  const std::int32_t position = lives_of(failed);
  for (Lives& lives : lives_)
    for (std::uint32_t unit = host * lives.units_per_host; unit < (host + 1) * lives.units_per_host; ++unit) {
      const bool is_over =
          &lives - lives_.data() == position && (lives.units_per_host == 1 || unit == lives.failed_unit);
      lives.at[unit] = is_over ? renewed : std::max<Nanoseconds>(0, lives.at[unit] - lives.clock);
    }
}

void FailureClock::renew(std::int32_t process, const std::vector<std::uint32_t>& hosts) {
  const std::int32_t position = lives_of(process);
  if (position < 0) return;
  Lives& lives = lives_[static_cast<std::size_t>(position)];
  for (const std::uint32_t host : hosts) {
    const std::uint32_t unit = lives.units_per_host == 1 ? host : lives.failed_unit;
    lives.at[unit] = lives.clock + draw_life(lives, unit);
    lives.ends.emplace(lives.at[unit], unit);
  }
}

double FailureClock::rate(const Process& process, bool is_running) const {
  if (process.rate == 0 || !is_exposed_now(process, is_running)) return 0;
  const double of_unit = process.rate / static_cast<double>(day);
  if (process.per == Per::job) return of_unit;
  if (process.per == Per::group) return of_unit * slots_.num_groups();
  const double bad = slots_.num_bad();
  const double weight = slots_.size() - bad + bad * (process.counts_bad ? setup_.hosts.bad_factor : 1);
  return of_unit * weight * (process.per == Per::npu ? setup_.npus_per_host : 1);
}

std::vector<std::uint32_t> FailureClock::victim(std::uint32_t process) {
  const Process& p = setup_.processes[process];
  const std::uint64_t n = counts_[process];
  if (p.per == Per::job) return {};
  if (p.per == Per::group)
    return slots_.hosts_of_group(static_cast<std::uint32_t>(draws_.unit(process, n, 1) * slots_.num_groups()));
  const double factor = setup_.hosts.bad_factor;
  const bool differ = p.counts_bad && slots_.num_bad() > 0 && factor != 1;
  const auto& hosts = slots_.hosts();
  for (std::uint64_t word = 1;; word += 2) {
    const auto slot = static_cast<std::size_t>(draws_.unit(process, n, word) * static_cast<double>(hosts.size()));
    const std::uint32_t host = hosts[slot];
    if (!differ || draws_.unit(process, n, word + 1) * std::max(1.0, factor) < (slots_.is_bad(host) ? factor : 1))
      return {host};
  }
}

void FailureClock::drop_stale(Lives& lives) const {
  std::vector<Lives::End> ends;
  for (const std::uint32_t host : slots_.hosts())
    for (std::uint32_t unit = host * lives.units_per_host; unit < (host + 1) * lives.units_per_host; ++unit)
      ends.emplace_back(lives.at[unit], unit);
  lives.ends = decltype(lives.ends)(std::greater<>(), std::move(ends));
}

bool FailureClock::strikes(const Recorded& failure) const {
  return failure.host < 0 || slots_.has(static_cast<std::uint32_t>(failure.host));
}

void FailureClock::pass(Nanoseconds elapsed, bool is_running) {
  for (std::size_t f = 0; f < budgets_.size(); ++f) budgets_[f] -= rates_[f] * static_cast<double>(elapsed);
  for (Lives& lives : lives_)
    if (is_exposed_now(setup_.processes[lives.process], is_running)) lives.clock += elapsed;
}

Strike FailureClock::advance(Nanoseconds now, Nanoseconds most, bool is_running) {
  Strike strike{.elapsed = most, .process = -1, .hosts = {}};
  for (std::size_t f = 0; f < budgets_.size(); ++f) {
    rates_[f] = position_[f] < 0 ? rate(setup_.processes[f], is_running) : 0;
    if (rates_[f] <= 0 || budgets_[f] >= rates_[f] * static_cast<double>(strike.elapsed)) continue;
    const auto until = static_cast<Nanoseconds>(std::ceil(std::max(0.0, budgets_[f] / rates_[f])));
    if (until < strike.elapsed) strike = {until, static_cast<std::int32_t>(f), {}};
  }
  for (Lives& lives : lives_) {
    if (!is_exposed_now(setup_.processes[lives.process], is_running)) continue;
    while (!lives.ends.empty() && (lives.at[lives.ends.top().second] != lives.ends.top().first ||
                                   !slots_.has(lives.ends.top().second / lives.units_per_host)))
      lives.ends.pop();
    if (lives.ends.size() > 4 * lives.at.size() + 64) drop_stale(lives);
    if (!lives.ends.empty() && lives.ends.top().first - lives.clock < strike.elapsed)
      strike = {lives.ends.top().first - lives.clock, static_cast<std::int32_t>(lives.process), {}};
  }
  const auto& recorded = setup_.recorded;
  bool is_recorded = false;
  for (; next_recorded_ < recorded.size() && recorded[next_recorded_].time - now < strike.elapsed; ++next_recorded_) {
    const Recorded& failure = recorded[next_recorded_];
    if (failure.time < now || !strikes(failure)) {
      ++unseen_;
      continue;
    }
    strike = {failure.time - now, static_cast<std::int32_t>(failure.process), {}};
    if (failure.host >= 0) strike.hosts = {static_cast<std::uint32_t>(failure.host)};
    is_recorded = true;
    ++next_recorded_;
    break;
  }
  pass(strike.elapsed, is_running);
  if (strike.process < 0 || is_recorded) return strike;
  const auto f = static_cast<std::uint32_t>(strike.process);
  if (position_[f] >= 0) {
    Lives& lives = lives_[static_cast<std::size_t>(position_[f])];
    lives.failed_unit = lives.ends.top().second;
    lives.ends.pop();
    strike.hosts = {lives.failed_unit / lives.units_per_host};
    return strike;
  }
  strike.hosts = victim(f);
  ++counts_[f];
  draw_budget(f);
  return strike;
}

}  // namespace orrery::campaign
