#include "orrery/results/metric_text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "orrery/base/text.hpp"
#include "orrery/results/metric_registry.hpp"

namespace orrery::results {
namespace {

struct PrintedUnit {
  std::string_view name;
  double size;
};

constexpr std::array<PrintedUnit, 4> printed_times{{{"s", 1}, {"ms", 1e-3}, {"µs", 1e-6}, {"ns", 1e-9}}};
constexpr std::array<PrintedUnit, 6> printed_sizes{
    {{"PB", 1e15}, {"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"B", 1}}};
constexpr std::array<PrintedUnit, 2> printed_prices{{{"M USD", 1e6}, {"USD", 1}}};
constexpr std::array<PrintedUnit, 4> printed_powers{{{"GW", 1e9}, {"MW", 1e6}, {"kW", 1e3}, {"W", 1}}};
constexpr std::array<PrintedUnit, 4> printed_energies{{{"GJ", 1e9}, {"MJ", 1e6}, {"kJ", 1e3}, {"J", 1}}};

std::span<const PrintedUnit> printed_units(std::string_view units) {
  if (units == "s") return printed_times;
  if (units == "byte") return printed_sizes;
  if (units == "USD") return printed_prices;
  if (units == "W") return printed_powers;
  if (units == "J") return printed_energies;
  return {};
}

/// Returns a number to four digits, or with all digits before the point in groups of three.
std::string grouped_number(double value) {
  if (std::abs(value) < 1000 || std::abs(value) >= 1e15) return fmt::format("{:.4g}", value);
  std::string digits = fmt::format("{:.0f}", value);
  const std::size_t first = digits.front() == '-' ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3;) digits.insert(at -= 3, 1, ',');
  return digits;
}

}  // namespace

std::string title_of(std::string_view metric) {
  const MetricInfo* const found = find_metric(metric);
  return std::string(found == nullptr || found->title.empty() ? metric : found->title);
}

std::string metric_text(std::string_view metric, std::string_view units, double value) {
  if (std::isnan(value)) return "-";
  if (const MetricInfo* const found = find_metric(metric); units == "1" && found != nullptr && found->is_share)
    return percent(value);
  const auto known = printed_units(units);
  if (known.empty()) return grouped_number(value);
  const auto fits = [&](const PrintedUnit& unit) { return std::abs(value) >= unit.size; };
  const auto unit = std::ranges::find_if(known, fits);
  const PrintedUnit& chosen = unit == known.end() ? known.back() : *unit;
  return fmt::format("{} {}", grouped_number(value / chosen.size), chosen.name);
}

std::string percent(double share, int decimals) { return fmt::format("{:.{}f} %", 100 * share, decimals); }

std::string memory_text(double used, double size) {
  if (std::isnan(used) || size <= 0) return metric_text("peak_memory", "byte", used);
  const auto like = static_cast<std::uint64_t>(size);
  std::string whole = size_text(like, like);
  std::string part = size_text(static_cast<std::uint64_t>(used), like);
  const std::size_t unit = whole.find(' ');
  if (part.substr(part.find(' ')) == whole.substr(unit)) part.erase(part.find(' '));
  if (const std::size_t zeros = whole.find(".00 "); zeros != std::string::npos) whole.erase(zeros, 3);
  return fmt::format("{} of {}", part, whole);
}

}  // namespace orrery::results
