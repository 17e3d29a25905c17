#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "orrery/topology/component_graph.hpp"

namespace orrery::graphfile {

/// A file that has devices which another one uses.
struct InfragraphFile {
  std::string text, name;
};

/// Reads a description of InfraGraph 2.4 or of an older schema, as YAML or JSON: an infrastructure, alone or with its
/// annotations, or one device. The files `devices` have further devices. Keys that are not known are told in `notes`.
/// Throws Error (bad_input) with the place in the file: what is no such description; devices, components, instances
/// and links that do not exist; slices that leave the components that there are; lists of different lengths that are
/// joined one to one; a rate in transfers per second in schema 2.4, which has no width; more than 2^22 components or
/// links. Cost O((components + links) * (log components + devices)).
topology::ComponentGraph read_infragraph(const std::filesystem::path& file,
                                         std::span<const std::filesystem::path> devices = {});
/// Reads the same from a text. `file` names it in messages.
topology::ComponentGraph parse_infragraph(std::string_view text, const std::string& file,
                                          std::span<const InfragraphFile> devices = {});

}  // namespace orrery::graphfile
