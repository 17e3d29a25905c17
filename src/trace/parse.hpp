#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "name_pool.hpp"
#include "orrery/base/error.hpp"
#include "raw_trace.hpp"

namespace orrery::trace {

/// Which file is read for whom, for messages.
struct Source {
  std::string file;
  std::optional<std::uint32_t> npu;
};

/// Where `node` is. Long names and control characters are shortened to what a message can show.
Place place_of(const Source& source, const RawNode& node, const NamePool& names);
Place place_of(const Source& source);
/// A name as messages show it.
std::string shown(std::string_view name);

/// Reads all messages of a file. Throws Error (bad_input) for a file that cannot be read, is truncated, or is no Chakra
/// trace. Types, attributes and ids are not judged here. Cost O(bytes).
RawTrace parse_file(const std::filesystem::path& path, const Source& source, NamePool& names);

}  // namespace orrery::trace
