#pragma once

#include <span>

#include "reader.hpp"

namespace orrery::trace {

/// Returns all readers, in the order in which they are asked whether they recognise a file.
std::span<const Reader> readers();

/// Returns the reader that recognises a file. Throws Error (bad_input) that says what the file is and which formats are
/// known, if none does, and for an empty file.
const Reader& find_reader(const TraceFile& file, std::span<const Reader> among = readers());

}  // namespace orrery::trace
