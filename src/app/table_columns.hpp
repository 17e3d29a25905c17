#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "orrery/results/table_file.hpp"

namespace orrery::app {

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

}  // namespace orrery::app
