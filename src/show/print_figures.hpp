#pragma once

#include <nlohmann/json.hpp>

namespace orrery::show {

/// Prints figures on standard output: as JSON, or as text with one "key: value" line for each, where nested keys are
/// joined by dots.
void print_figures(const nlohmann::ordered_json& figures, bool as_json);

}  // namespace orrery::show
