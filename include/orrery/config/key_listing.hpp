#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace orrery::config {

/// How `orrery show keys` prints.
enum class KeyForm : std::uint8_t {
  text,
  markdown,  ///< the tables of the documents, each between the comments that mark its place
  json,
  schema,  ///< JSON schema of CONFIG.yaml, for editors
};

/// Returns the descriptors of the keys of CONFIG.yaml, of ASTRA-sim's keys and of their flags: type, unit, default,
/// range, meaning, example, flag. `below`: only those whose path is this or begins with this and a dot; empty: all.
/// Throws Error (usage) with the nearest known key if there are none.
std::string list_keys(KeyForm form, std::string_view below = {});

}  // namespace orrery::config
