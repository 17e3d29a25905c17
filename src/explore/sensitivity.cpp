#include "orrery/explore/sensitivity.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "orrery/explore/expression.hpp"

namespace orrery::explore {
namespace {

constexpr std::size_t most_classes = 10;

/// Returns the class of each trial: one for each value, or of many numbers one for each tenth of the trials.
std::vector<std::size_t> classes_of(std::span<const std::string> values, std::span<const std::size_t> trials) {
  std::map<std::string_view, std::size_t> number_of;
  std::vector<std::size_t> classes;
  bool are_numbers = true;
  for (const std::size_t trial : trials) {
    const auto [entry, is_new] = number_of.try_emplace(values[trial], number_of.size());
    are_numbers &= !is_new || !std::isnan(as_real(value_of(values[trial])));
    classes.push_back(entry->second);
  }
  if (!are_numbers || number_of.size() <= most_classes) return classes;
  std::vector<std::pair<double, std::size_t>> sorted;
  for (std::size_t i = 0; i < trials.size(); ++i) sorted.emplace_back(as_real(value_of(values[trials[i]])), i);
  std::ranges::sort(sorted);
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const bool is_equal = i > 0 && sorted[i].first == sorted[i - 1].first;
    classes[sorted[i].second] = is_equal ? classes[sorted[i - 1].second] : i * most_classes / sorted.size();
  }
  return classes;
}

}  // namespace

double main_effect(std::span<const std::string> values, std::span<const double> metric) {
  std::vector<std::size_t> trials;
  double sum = 0;
  for (std::size_t i = 0; i < metric.size(); ++i) {
    if (std::isnan(metric[i])) continue;
    trials.push_back(i);
    sum += metric[i];
  }
  const double mean = sum / static_cast<double>(trials.size());
  const auto classes = classes_of(values, trials);
  struct OfClass {
    double count = 0, deviation = 0;
  };
  std::map<std::size_t, OfClass> by_class;
  double whole = 0;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    const double deviation = metric[trials[i]] - mean;
    whole += deviation * deviation;
    OfClass& of_class = by_class[classes[i]];
    ++of_class.count;
    of_class.deviation += deviation;
  }
  // What is left of a metric that does not vary is rounding.
  if (trials.size() < 2 || whole <= 1e-24 * mean * mean * static_cast<double>(trials.size()))
    return std::numeric_limits<double>::quiet_NaN();
  double between = 0;
  for (const auto& [number, of_class] : by_class) between += of_class.deviation * of_class.deviation / of_class.count;
  return between / whole;
}

}  // namespace orrery::explore
