#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "orrery/campaign/campaign.hpp"
#include "orrery/results/table_file.hpp"

namespace orrery::study {

/// Return a column of numbers, of whole numbers or of texts, with value(item) for each item of a range.
template <class Range, class Value>
results::TableColumn numbers(std::string name, std::string units, std::string text, const Range& range, Value value) {
  std::vector<double> values;
  for (const auto& item : range) values.push_back(static_cast<double>(std::invoke(value, item)));
  return {std::move(name), std::move(units), std::move(text), std::move(values)};
}
template <class Range, class Value>
results::TableColumn counts(std::string name, std::string units, std::string text, const Range& range, Value value) {
  std::vector<std::int64_t> values;
  for (const auto& item : range) values.push_back(static_cast<std::int64_t>(std::invoke(value, item)));
  return {std::move(name), std::move(units), std::move(text), std::move(values)};
}
template <class Range, class Value>
results::TableColumn texts(std::string name, std::string text, const Range& range, Value value) {
  std::vector<std::string> values;
  for (const auto& item : range) values.emplace_back(std::invoke(value, item));
  return {std::move(name), "1", std::move(text), std::move(values)};
}

/// Returns the columns of a summary: what each metric is, and its estimate over the replications.
template <class Metric>
std::vector<results::TableColumn> summary_columns(std::span<const Metric> metrics,
                                                  const std::vector<campaign::Estimate>& all) {
  std::vector<results::TableColumn> columns;
  columns.push_back(texts("metric", "name", metrics, &Metric::name));
  columns.push_back(texts("unit", "unit of its numbers", metrics, &Metric::unit));
  columns.push_back(texts("description", "what it is", metrics, &Metric::text));
  columns.push_back(numbers("mean", "1", "mean", all, &campaign::Estimate::mean));
  columns.push_back(numbers("deviation", "1", "standard deviation", all, &campaign::Estimate::deviation));
  columns.push_back(
      numbers("half_width", "1", "half-width of the 95 % interval of the mean", all, &campaign::Estimate::half_width));
  return columns;
}

}  // namespace orrery::study
