#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace orrery::trace {

/// Says whether a file that begins with these bytes is text, or of another kind that its first bytes tell: HDF5, an
/// archive, ...
bool is_known_kind(std::string_view beginning);

/// Says for a message what a file holds that begins with these bytes: "the file is JSON and begins with '{"a": 1'",
/// "the file is an HDF5 file", "the file begins with the bytes 89 48 00".
std::string describe_content(std::string_view beginning);

/// Says what a file of another tool is that begins with these bytes, and where it belongs; nothing if it is of none
/// that is known.
std::optional<std::string> describe_foreign(std::string_view beginning);

}  // namespace orrery::trace
