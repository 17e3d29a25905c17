#pragma once

#include "reader.hpp"
#include "wire.hpp"

namespace orrery::trace {

/// Reads the Node message in `input` into `node`, and its dependencies and tensors into `trace`. The names of the node
/// and of its tensors are added to the batch of the trace and stand as indices there. Returns false for bytes that are
/// not a Node of the layout; the input then stands at the fault.
using ParseNode = bool (*)(Input& input, ParsedNode& node, ParsedTrace& trace);

/// Reads a Chakra file of any layout: metadata, if the first message is that, and nodes to the end. Throws Error
/// (bad_input) for a file that is truncated or holds anything else. Cost O(bytes).
void read_chakra_file(TraceFile& file, TraceSink& sink, const TypeNumbering& numbering, ParseNode parse);

}  // namespace orrery::trace
