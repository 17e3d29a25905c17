#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "orrery/campaign/replication.hpp"
#include "orrery/parallel/communicator.hpp"

namespace orrery::campaign {

/// What several replications say of a number.
struct Estimate {
  double mean = 0;
  double deviation = 0;   ///< standard deviation of a sample
  double half_width = 0;  ///< half-width of the 95 % interval of the mean, by Student's t; 0: there is one replication
  double low = 0, high = 0;  ///< quantiles of 5 and 95 %

  double standard_error(std::size_t count) const;
};
/// Returns the estimate from the values of replications, in order. O(n log n).
Estimate estimate(std::span<const double> values);

/// Simulates replications 0 to count - 1 of a setup: replication r on rank r mod ranks. Returns on every rank all rows,
/// in order. Collective.
std::vector<Row> simulate(const Setup& setup, std::uint32_t count, parallel::Communicator& world);
/// Simulates batches of 64 replications until the half-width of the effective training time ratio is `accuracy` at the
/// most, or `most_replications` are there. Collective.
std::vector<Row> simulate_until(const Setup& setup, double accuracy, parallel::Communicator& world);
inline constexpr std::uint32_t most_replications = 100'032;

/// Returns a number of each replication that was not depleted, in order.
template <class Value>
std::vector<double> values_of(std::span<const Row> rows, Value value) {
  std::vector<double> values;
  for (const Row& row : rows)
    if (!row.depleted) values.push_back(value(row));
  return values;
}

/// A column of the results: its name, unit, meaning and value.
struct Metric {
  std::string_view name, unit, text;
  double (*value)(const Row& row, const Setup& setup);
};
/// Returns the numbers of a replication that summaries and files have.
std::span<const Metric> metrics();
/// Returns the estimates of all metrics.
std::vector<Estimate> estimates(std::span<const Row> rows, const Setup& setup);

/// Returns the effective training time ratio that daly_time gives for the setup; nothing where it is not exact: unless
/// all processes are exponential crashes or hangs, one tier has all checkpoints, and no host is waited for.
bool has_exact_ettr(const Setup& setup);
double exact_ettr(const Setup& setup);
/// Returns the mean time from a failure to the first new work, in seconds.
double mean_restart(const Setup& setup);

}  // namespace orrery::campaign
