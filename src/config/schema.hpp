#pragma once

#include <string>

namespace orrery::config {

/// Returns the JSON schema (draft 7) of CONFIG.yaml, made from the descriptors of all keys: names, words, defaults and
/// meanings, as editors show them. What depends on other keys is left to `orrery check`.
std::string json_schema();

}  // namespace orrery::config
