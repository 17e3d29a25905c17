#include "orrery/campaign/spread.hpp"

#include <algorithm>
#include <cmath>

#include "orrery/base/distribution.hpp"
#include "orrery/base/error.hpp"

namespace orrery::campaign {
namespace {

/// Returns the mean of a Pareto distribution with bounds.
double bounded_pareto_mean(double least, double most, double shape) {
  const double ratio = least / most;
  if (shape == 1) return least / (1 - ratio) * std::log(1 / ratio);
  return shape / (shape - 1) * (least - most * std::pow(ratio, shape)) / (1 - std::pow(ratio, shape));
}

}  // namespace

Nanoseconds nanoseconds(double seconds) {
  const double exact = seconds * 1e9;
  if (!(exact < static_cast<double>(longest))) return longest;
  const double nearest = std::round(exact);
  return static_cast<Nanoseconds>(std::abs(exact - nearest) <= 1e-12 * exact ? nearest : std::ceil(exact));
}

double Spread::quantile(double u, double second_u) const {
  switch (kind) {
    case SpreadKind::fixed:
      return mean;
    case SpreadKind::exponential:
      return -mean * std::log(u);
    case SpreadKind::uniform:
      return least + u * (most - least);
    case SpreadKind::weibull:
      return mean / std::tgamma(1 + 1 / shape) * std::pow(-std::log(u), 1 / shape);
    case SpreadKind::lognormal:
      return median * std::exp(std::sqrt(2 * std::log(mean / median)) * normal_quantile(u));
    case SpreadKind::pareto:
      return least / std::pow(1 - u * (1 - std::pow(least / most, shape)), 1 / shape);
    case SpreadKind::values:
      return values[static_cast<std::size_t>(u * static_cast<double>(values.size()))];
    case SpreadKind::mixture:
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (u < weights[i] || i + 1 == values.size()) return -values[i] * std::log(second_u);
        u -= weights[i];
      }
      break;
  }
  ensure(false, "a distribution has a kind");
  return 0;
}

double Spread::average() const {
  double sum = 0;
  switch (kind) {
    case SpreadKind::uniform:
      return (least + most) / 2;
    case SpreadKind::pareto:
      return bounded_pareto_mean(least, most, shape);
    case SpreadKind::values:
      for (const double value : values) sum += value;
      return sum / static_cast<double>(values.size());
    case SpreadKind::mixture:
      for (std::size_t i = 0; i < values.size(); ++i) sum += values[i] * weights[i];
      return sum;
    default:
      return mean;
  }
}

}  // namespace orrery::campaign
