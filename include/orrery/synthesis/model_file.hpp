#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "orrery/synthesis/model.hpp"
#include "orrery/synthesis/scale.hpp"

namespace orrery::synthesis {

/// Returns a model as JSON, one object (docs/synthesis.md, *The model file*). Its sizes are obfuscated as those of
/// traces: multiplied by exp(N(0, delta)) and rounded to three digits, or with delta 0 as learned. O(model).
std::string to_json(const Model& model, const Obfuscation& obfuscation);

/// Reads the output of `to_json`. Throws Error (bad_input) that names the file for anything else: no JSON, another
/// format or version, a part that is missing or has another type, an index out of range. O(bytes).
Model parse_model(std::string_view text, const std::string& file);

}  // namespace orrery::synthesis
