#pragma once

#include <string>
#include <string_view>

namespace orrery::results {

/// Returns the name of a metric of a study in words: "step time". Other names stay as they are.
std::string title_of(std::string_view metric);

/// Returns a value of a metric with its unit, to four digits: "31.2 ms", "74.47 GB", "41.2 %", "1,215,241"; "-" for
/// NaN. `units` are those of its column: "s", "byte", "USD", "W", "J", "1" or "1/s".
std::string metric_text(std::string_view metric, std::string_view units, double value);

/// Returns "41.2 %".
std::string percent(double share, int decimals = 1);

/// Returns a use of a memory of that size: "74.47 of 80 GB". Without a size it returns the use alone.
std::string memory_text(double used, double size);

}  // namespace orrery::results
