#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/config/configuration.hpp"

namespace orrery::config {

/// Returns a warning for each setting without which keys have no effect that `file`, or an option, gives another value
/// than their default. Cost O(keys given * conditions).
std::vector<std::string> warnings_of_idle_keys(const Configuration& configuration, std::string_view file);
/// Returns those about the rules of packets, for lists of flows.
std::vector<std::string> warnings_of_idle_packet_keys(const Configuration& configuration, std::string_view file);

// Parts of such warnings, for other lists of conditions.

/// Returns the paths that `file`, or an option, gives another value than their default, and their keys, which lack the
/// numbers of items of lists. The paths are views of those of `configuration`.
std::map<std::string_view, std::string> changed_keys_of(const Configuration& configuration, std::string_view file);
/// Says whether `key` is among `keys`, of which one with a dot at its end stands for all below it.
bool is_among(const std::vector<std::string_view>& keys, std::string_view key);
/// Returns the warning about paths that have no effect. `otherwise` says where: "without x: y".
std::string warning_of_idle_paths(const std::vector<std::string_view>& paths, std::string_view otherwise);

}  // namespace orrery::config
