#include "orrery/campaign/campaign.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "orrery/base/error.hpp"
#include "orrery/campaign/formulas.hpp"
#include "orrery/results/repetitions.hpp"

namespace orrery::campaign {
namespace {

constexpr std::uint32_t batch = 64;

/// Visits the numbers of a row, which all rows of a setup have in the same order.
template <class AnyRow, class Visit>
void visit_numbers(AnyRow& row, Visit visit) {
  visit(row.time);
  for (auto& time : row.times) visit(time);
  for (auto& time : row.by_process) visit(time);
  for (auto& count : row.failures_of) visit(count);
  for (auto* const count : {&row.failures, &row.selections, &row.spares, &row.retired, &row.restarts, &row.unseen})
    visit(*count);
  visit(row.allocated);
  visit(row.depleted);
}

void pack(const Row& row, std::vector<std::uint64_t>& words) {
  visit_numbers(row, [&](const auto& number) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(number)>, double>)
      words.push_back(std::bit_cast<std::uint64_t>(number));
    else
      words.push_back(static_cast<std::uint64_t>(number));
  });
}

void unpack(Row& row, const std::uint64_t*& word) {
  visit_numbers(row, [&](auto& number) {
    using Number = std::remove_cvref_t<decltype(number)>;
    if constexpr (std::is_same_v<Number, double>)
      number = std::bit_cast<double>(*word++);
    else
      number = static_cast<Number>(*word++);
  });
}

/// Simulates replications first to first + count - 1 and adds their rows. Collective.
void simulate_batch(const Setup& setup, std::uint32_t first, std::uint32_t count, parallel::Communicator& world,
                    std::vector<Row>& rows) {
  const auto ranks = static_cast<std::uint32_t>(world.size());
  std::vector<std::uint64_t> mine;
  world.agree([&] {
    for (std::uint32_t r = first; r < first + count; ++r)
      if (r % ranks == static_cast<std::uint32_t>(world.rank().value())) pack(replicate(setup, r), mine);
  });
  std::vector<std::size_t> sizes;
  const auto all = world.all_gather(std::span<const std::uint64_t>(mine), &sizes);
  std::vector<const std::uint64_t*> next;
  const std::uint64_t* begin = all.data();
  for (const std::size_t size : sizes) {
    next.push_back(begin);
    begin += size;
  }
  for (std::uint32_t r = first; r < first + count; ++r) {
    Row& row = rows.emplace_back();
    row.by_process.resize(setup.processes.size() * num_states);
    row.failures_of.resize(setup.processes.size());
    unpack(row, next[r % ranks]);
  }
}

double share_of(const Row& row, State state) { return row.time == 0 ? 0 : seconds(row.in(state)) / seconds(row.time); }
template <State state>
double share(const Row& row, const Setup&) {
  return share_of(row, state);
}

constexpr Metric all_metrics[] = {
    {"time", "s", "wall time", [](const Row& row, const Setup&) { return seconds(row.time); }},
    {"ettr", "1", "effective training time ratio: useful over wall time",
     [](const Row& row, const Setup&) { return row.ettr(); }},
    {"goodput", "1", "useful over allocated host time",
     [](const Row& row, const Setup& setup) { return row.goodput(setup.hosts.active); }},
    {"useful", "1", "share of the wall time", share<State::useful>},
    {"lost", "1", "share of the wall time", share<State::lost>},
    {"stall", "1", "share of the wall time", share<State::stall>},
    {"detect", "1", "share of the wall time", share<State::detect>},
    {"wait", "1", "share of the wall time", share<State::wait>},
    {"select", "1", "share of the wall time", share<State::select>},
    {"restart", "1", "share of the wall time", share<State::restart>},
    {"slow", "1", "share of the wall time", share<State::slow>},
    {"pause", "1", "share of the wall time", share<State::pause>},
    {"failures", "1", "failures", [](const Row& row, const Setup&) { return static_cast<double>(row.failures); }},
    {"selections", "1", "selections of hosts",
     [](const Row& row, const Setup&) { return static_cast<double>(row.selections); }},
    {"spares", "1", "spare hosts taken", [](const Row& row, const Setup&) { return static_cast<double>(row.spares); }},
    {"retired", "1", "hosts taken out for ever",
     [](const Row& row, const Setup&) { return static_cast<double>(row.retired); }},
    {"restarts", "1", "restarts after lost work",
     [](const Row& row, const Setup&) { return static_cast<double>(row.restarts); }},
    {"unseen", "1", "recorded failures of hosts that were not exposed",
     [](const Row& row, const Setup&) { return static_cast<double>(row.unseen); }},
    {"allocated", "s", "time of active and standby hosts", [](const Row& row, const Setup&) { return row.allocated; }},
    {"lost_npu_hours", "h", "NPU-hours of the job that were not useful",
     [](const Row& row, const Setup& setup) {
       return seconds(row.time - row.in(State::useful)) / 3600 * setup.hosts.active * setup.npus_per_host;
     }},
};

}  // namespace

double Estimate::standard_error(std::size_t count) const {
  return count == 0 ? 0 : deviation / std::sqrt(static_cast<double>(count));
}

Estimate estimate(std::span<const double> values) {
  Estimate result;
  if (values.empty()) return result;
  const auto count = static_cast<double>(values.size());
  for (const double value : values) result.mean += value;
  result.mean /= count;
  double squares = 0;
  for (const double value : values) squares += (value - result.mean) * (value - result.mean);
  if (values.size() > 1) {
    result.deviation = std::sqrt(squares / (count - 1));
    result.half_width = results::student_t(values.size() - 1, 0.95) * result.deviation / std::sqrt(count);
  }
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const auto at = [&](double share) {
    return sorted[static_cast<std::size_t>(std::clamp(std::ceil(share * count) - 1, 0.0, count - 1))];
  };
  result.low = at(0.05);
  result.high = at(0.95);
  return result;
}

std::vector<Row> simulate(const Setup& setup, std::uint32_t count, parallel::Communicator& world) {
  std::vector<Row> rows;
  rows.reserve(count);
  simulate_batch(setup, 0, count, world, rows);
  return rows;
}

std::vector<Row> simulate_until(const Setup& setup, double accuracy, parallel::Communicator& world) {
  std::vector<Row> rows;
  while (rows.size() < most_replications) {
    simulate_batch(setup, static_cast<std::uint32_t>(rows.size()), batch, world, rows);
    const auto found = estimate(values_of(rows, [](const Row& row) { return row.ettr(); }));
    if (found.half_width <= accuracy) break;
  }
  return rows;
}

std::span<const Metric> metrics() { return all_metrics; }

std::vector<Estimate> estimates(std::span<const Row> rows, const Setup& setup) {
  std::vector<Estimate> found;
  for (const Metric& metric : metrics())
    found.push_back(estimate(values_of(rows, [&](const Row& row) { return metric.value(row, setup); })));
  return found;
}

bool has_exact_ettr(const Setup& setup) {
  const bool are_crashes = std::ranges::all_of(setup.processes, [](const Process& process) {
    return process.weibull_shape == 0 && process.exposure == Exposure::allocated &&
           (process.symptom == Symptom::crash || process.symptom == Symptom::hang);
  });
  return are_crashes && setup.failure_rate() > 0 && setup.tiers.size() == 1 && setup.recorded.empty() &&
         setup.elastic.hosts_per_replica == 0 && setup.hosts.bad_fraction == 0;
}

double mean_restart(const Setup& setup) {
  const double all = setup.failure_rate();
  double detect = 0, replace = 0;
  for (const Process& process : setup.processes) {
    const double share = setup.failure_rate(process) / all;
    detect += share * process.detect.average();
    if (process.repairs && process.per != Per::job)
      replace += share * seconds(setup.hosts.standby > 0 ? setup.restart.swap : setup.restart.select);
  }
  return detect + replace + setup.restart.start.average() +
         (setup.tiers.empty() ? 0 : seconds(setup.tiers.front().read));
}

double exact_ettr(const Setup& setup) {
  const Tier& tier = setup.tiers.front();
  const double mtbf = 1 / setup.failure_rate();
  // Detection is time without exposure, which does not fail; it is added to each failure.
  double detect = 0;
  for (const Process& process : setup.processes)
    detect += setup.failure_rate(process) * mtbf * process.detect.average();
  const double interval = seconds(tier.interval), restart = mean_restart(setup) - detect;
  const double exposed = daly_time(mtbf, interval, seconds(tier.stall), restart, interval);
  return interval / (exposed * (1 + detect / mtbf));
}

}  // namespace orrery::campaign
