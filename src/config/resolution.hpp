#pragma once

#include <string>
#include <vector>

#include "orrery/base/faults.hpp"
#include "orrery/config/configuration.hpp"
#include "orrery/config/read.hpp"
#include "value.hpp"

namespace orrery::config {

/// A configuration whose keys have been read one by one, and the values that they were read from.
struct KeysRead {
  Value root;
  Configuration configuration;
};

/// Reads the keys of a text, with all that it refers to and the settings of --set.
KeysRead read_keys_of(std::string text, const Origin& origin, const std::vector<std::string>& overrides,
                      bool system_only, Faults& faults);

/// Returns the values of a CONFIG.yaml with all that it refers to. Every text goes to the inputs of `configuration`.
Value read_root(const Inputs& inputs, Configuration& configuration, Faults& faults);

/// Gives the keys that options name the values of these.
void apply_flags(const std::vector<FlagValue>& flags, Configuration& result, Faults& faults);

/// Looks at the whole after its keys have been read: applies flags, makes the choices that were left to Orrery, notes
/// settings without effect, and validates it.
void resolve_whole(const Inputs& inputs, Configuration& configuration, Faults& faults);

}  // namespace orrery::config
