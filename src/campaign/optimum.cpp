#include "orrery/campaign/optimum.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "orrery/base/error.hpp"
#include "orrery/campaign/formulas.hpp"

namespace orrery::campaign {
namespace {

using Objective = double (*)(const Row& row, const Setup& setup);

/// Simulates settings with common draws and compares them. Collective.
class Comparison {
 public:
  Comparison(std::uint32_t replications, Objective objective, parallel::Communicator& world)
      : replications_(replications), objective_(objective), world_(world) {}

  void add(Setup setup) {
    const auto rows = simulate(setup, replications_, world_);
    std::vector<double> values, ettr, goodput;
    for (const Row& row : rows) {  // depleted ones too, so that the pairs stay
      values.push_back(objective_(row, setup));
      ettr.push_back(row.ettr());
      goodput.push_back(row.goodput(setup.hosts.active));
    }
    tried_.push_back({std::move(setup), estimate(ettr), estimate(goodput), {}, false, false});
    values_.push_back(std::move(values));
  }

  std::size_t best() const {
    std::size_t best = 0;
    for (std::size_t i = 1; i < tried_.size(); ++i)
      if (mean(i) > mean(best)) best = i;
    return best;
  }

  /// Returns the settings in the order that `key` gives.
  template <class Key>
  Search finish(Key key) {
    const std::size_t at = best();
    for (std::size_t i = 0; i < tried_.size(); ++i) {
      std::vector<double> differences;
      for (std::size_t r = 0; r < values_[i].size(); ++r) differences.push_back(values_[i][r] - values_[at][r]);
      tried_[i].difference = estimate(differences);
      tried_[i].is_best = i == at;
      tried_[i].is_as_good = std::abs(tried_[i].difference.mean) <= tried_[i].difference.half_width || i == at;
    }
    Search search{std::move(tried_), false};
    std::ranges::sort(search.tried, {}, key);
    search.is_at_edge = search.tried.front().is_best || search.tried.back().is_best;
    return search;
  }

 private:
  double mean(std::size_t i) const {
    double sum = 0;
    for (const double value : values_[i]) sum += value;
    return sum;
  }

  std::uint32_t replications_;
  Objective objective_;
  parallel::Communicator& world_;
  std::vector<Tried> tried_;
  std::vector<std::vector<double>> values_;
};

/// Returns the setup with another interval of the first tier, as far as its checkpoints are durable in time.
bool set_interval(Setup& setup, Nanoseconds interval) {
  for (Tier& tier : setup.tiers) {
    const Nanoseconds multiple = std::max<Nanoseconds>(1, (tier.interval + interval / 2) / interval);
    tier.interval = &tier == &setup.tiers.front() ? interval : multiple * interval;
    if (tier.durable > tier.interval + tier.stall) return false;
  }
  for (std::size_t i = 1; i < setup.tiers.size(); ++i)
    if (setup.tiers[i].interval % setup.tiers[i - 1].interval != 0)
      setup.tiers[i].interval =
          (setup.tiers[i].interval / setup.tiers[i - 1].interval + 1) * setup.tiers[i - 1].interval;
  return true;
}

}  // namespace

const Tried& Search::best() const {
  const auto found = std::ranges::find(tried, true, &Tried::is_best);
  ensure(found != tried.end(), "a search has a best setting");
  return *found;
}

Search search_intervals(const Setup& setup, Nanoseconds step, std::uint32_t replications,
                        parallel::Communicator& world) {
  constexpr int steps_of_factor_8 = 12;
  if (setup.tiers.empty())
    throw Error(ErrorCode::bad_input, {.key = "campaign.checkpoint"}, "there are no checkpoints", "a tier to optimise");
  const double rate = setup.failure_rate(), stall = seconds(setup.tiers.front().stall);
  const double middle =
      rate > 0 && stall > 0 ? optimum_interval(1 / rate, stall) : seconds(setup.tiers.front().interval);
  std::set<Nanoseconds> intervals;
  for (int i = -steps_of_factor_8; i <= steps_of_factor_8; ++i) {
    const double steps = std::round(middle * std::exp2(i / 4.0) / seconds(step));
    intervals.insert(static_cast<Nanoseconds>(std::max(1.0, steps)) * step);
  }
  Comparison comparison(
      replications, [](const Row& row, const Setup&) { return row.ettr(); }, world);
  std::size_t num_valid = 0;
  for (const Nanoseconds interval : intervals) {
    Setup other = setup;
    if (!set_interval(other, interval)) continue;
    ++num_valid;
    comparison.add(std::move(other));
  }
  if (num_valid == 0)
    throw Error(ErrorCode::bad_input, {.key = "campaign.checkpoint.0"},
                "no interval around the optimum gives a checkpoint the time to be durable", "a faster checkpoint");
  return comparison.finish([](const Tried& tried) { return tried.setup.tiers.front().interval; });
}

Search search_standbys(const Setup& setup, std::uint32_t replications, parallel::Communicator& world) {
  Comparison comparison(
      replications, [](const Row& row, const Setup& s) { return row.goodput(s.hosts.active); }, world);
  std::set<std::uint32_t> known;
  std::vector<std::uint32_t> order;
  const auto add = [&](std::uint32_t standby) {
    if (!known.insert(standby).second) return;
    Setup other = setup;
    other.hosts.standby = standby;
    order.push_back(standby);
    comparison.add(std::move(other));
  };
  add(0);
  const std::uint32_t most = std::max(64U, 4 * setup.hosts.standby);
  for (std::uint32_t standby = 1; standby <= most; standby *= 2) {
    add(standby);
    if (order[comparison.best()] * 8 <= standby) break;  // far beyond the best
  }
  const std::uint32_t best = order[comparison.best()];
  for (const std::uint32_t standby : {best * 3 / 4, best * 5 / 4, best * 3 / 2}) add(standby);
  if (best > 0) add(best - 1);
  add(best + 1);
  return comparison.finish([](const Tried& tried) { return tried.setup.hosts.standby; });
}

}  // namespace orrery::campaign
