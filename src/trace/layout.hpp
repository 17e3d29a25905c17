#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "message_source.hpp"
#include "raw_trace.hpp"

namespace orrery::trace {

/// The layout of a file and whether its first message is GlobalMetadata.
struct FileFormat {
  Layout layout = Layout::today;
  bool has_metadata = false;
};

/// Reads `source` until a message tells the layout, and rewinds it. Usually that is one of the first few messages; a
/// file without any attribute is read to its end and is of today's layout.
FileFormat detect_format(MessageSource& source);

/// True if a first message with these bytes is GlobalMetadata: only fields 1 and 2, both length-delimited.
bool is_metadata(std::span<const std::uint8_t> message);

}  // namespace orrery::trace
