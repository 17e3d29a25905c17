#pragma once

#include <simdjson.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "trace_file.hpp"

namespace orrery::trace {

/// Takes a part of a JSON document. `value` is valid until the call returns; `position` is the byte of the file at
/// which it begins.
using JsonVisitor =
    std::function<void(std::string_view name, const simdjson::dom::element& value, std::uint64_t position)>;

/// Reads a JSON document in pieces: only the part that is visited is in memory, 256 MiB at most.
/// - `element` gets each element of the members of the document that `arrays` names and that are arrays; `name` is that
///   of the member. If the document itself is an array, it gets each of its elements, without a name.
/// - `member` gets each other member of the document; those that are larger than 4 MiB are left out.
/// Both get them in the order of the file. Throws Error (bad_input) with the byte for what is not JSON, for a document
/// that is cut off, and for one that is neither an object nor an array. Cost O(bytes).
void read_json(TraceFile& file, std::span<const std::string_view> arrays, const JsonVisitor& element,
               const JsonVisitor& member);

/// Reads JSON objects that stand one after the other, with nothing but blanks between them, or in one array. Otherwise
/// as read_json.
void read_json_objects(TraceFile& file, const JsonVisitor& element);

}  // namespace orrery::trace
