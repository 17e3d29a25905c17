#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "orrery/base/quantity.hpp"
#include "orrery/base/time.hpp"

namespace orrery::serving {
struct Metrics;
}

namespace orrery::results {

struct Metrics;

/// What a metric of a training step is computed from.
struct StepFigures {
  const Metrics& metrics;
  Bytes peak_memory;  ///< largest use of the local memory of an NPU
};

/// Direction in which a metric is usually improved.
enum class Better : std::uint8_t { less, more };

/// A figure of a training step, of a campaign, of a cluster over time, or of requests that are served.
struct MetricInfo {
  /// Kind of simulation that the metric is a figure of. `bound`: of none, but of what is known before.
  enum class Origin : std::uint8_t { step, campaign, cluster, serving, bound };

  std::string_view name = {};         ///< name in studies; empty: they know it by its path only
  std::string_view column = {};       ///< dataset in /metrics of results.h5; empty: none
  std::string_view units = {};        ///< SI units, or "1"
  std::string_view title = {};        ///< name in tables; empty: `name`
  std::string_view description = {};  ///< meaning, in studies
  const char* label = nullptr;        ///< long name of the dataset
  const char* text = nullptr;         ///< meaning of the dataset
  Better better = Better::less;
  bool is_share = false;      ///< share of 1 that tables print in percent
  bool needs_prices = false;  ///< it follows from `cost`
  Origin origin = Origin::step;
  std::uint8_t place = 0;  ///< position among the metrics of a table, from 1; 0: after all that have one
  /// The value of a training step; nothing where it is not known. Times have `time` instead, which is exact.
  std::optional<double> (*of_step)(const StepFigures& step) = nullptr;
  Time (*time)(const Metrics& metrics) = nullptr;
  double (*of_serving)(const serving::Metrics& metrics) = nullptr;  ///< the value of requests that are served
};

/// Returns all metrics, those that constraints and objectives may name first.
std::span<const MetricInfo> metric_registry();
/// Returns the metrics that constraints and objectives may name, but for paths.
std::span<const MetricInfo> study_metrics();
/// Returns the metric of a name; null if there is none.
const MetricInfo* find_metric(std::string_view name);

/// Returns the value of a metric of a training step in its units; NaN where it is not known.
double value_of(const MetricInfo& metric, const StepFigures& step);

}  // namespace orrery::results
