#pragma once

#include "value.hpp"

namespace orrery::config {

/// Says whether a mapping is a model of Hugging Face Transformers, the content of a config.json.
bool is_hugging_face(const Value& mapping);

/// Returns the keys of workload.model for a config.json of Hugging Face Transformers, each with its place in that file.
/// Notes of the result say what the file leaves open and what is not simulated. Throws Error (bad_input), once, for a
/// type of models that is not known and for fields that are missing. Cost O(fields).
Value model_of_hugging_face(const Value& config);

}  // namespace orrery::config
