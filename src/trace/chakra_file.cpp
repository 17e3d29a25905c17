#include "chakra_file.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "chakra_layout.hpp"
#include "message_source.hpp"

namespace orrery::trace {
namespace {

/// After so many nodes their number is estimated, so that a large trace does not grow step by step.
constexpr std::size_t nodes_of_estimate = 4096;
/// A file with more nodes that cannot be is damaged: what follows is not read.
constexpr std::size_t most_impossible = 20;
/// The estimate is limited to this factor, so that a few very small messages at the start do not reserve much memory.
constexpr double most_growth = 256;

void reserve(ParsedTrace& trace, double remaining_per_given) {
  const double growth = 1.02 * (1 + std::min(remaining_per_given, most_growth));
  const auto grown = [growth](std::size_t count) {
    return static_cast<std::size_t>(growth * static_cast<double>(count));
  };
  trace.nodes.reserve(grown(trace.nodes.size()));
  trace.ctrl.reserve(grown(trace.ctrl.size()));
  trace.data.reserve(grown(trace.data.size()));
  trace.tensors.reserve(grown(trace.tensors.size()));
}

/// Interns the names that were read since the last call: those of the nodes from `first` on.
void intern_names(ParsedTrace& trace, std::size_t first) {
  const auto numbers = trace.batch.intern(trace.names);
  const auto nodes = std::span(trace.nodes).subspan(first);
  if (nodes.empty()) return;
  for (ParsedNode& node : nodes) node.name = numbers[node.name];
  for (ParsedTensor& tensor : std::span(trace.tensors).subspan(nodes.front().first_tensor))
    if (tensor.name != no_name) tensor.name = numbers[tensor.name];
}

[[noreturn]] void fail_at_message(const TraceFile& file, std::size_t number, std::uint64_t offset, int at) {
  Place place = file.place();
  place.byte_offset = offset + static_cast<std::uint64_t>(at);
  throw Error(ErrorCode::bad_input, place, fmt::format("message {} (at byte {}) is not a Chakra node", number, offset),
              "a Chakra execution trace", number > 1 ? "" : "This is the first node: the file may be no trace at all.");
}

/// Returns whether the last node cannot be in a trace: its type is not known, or it has the id of the node before it.
/// A message without bytes is a node with id 0.
bool is_impossible(const ParsedTrace& trace) {
  const ParsedNode& node = trace.nodes.back();
  return !trace.numbering->node_type(node.type) ||
         (trace.nodes.size() > 1 && trace.nodes[trace.nodes.size() - 2].id == node.id);
}

/// Throws Error (bad_input) at a node that cannot be, after many others.
[[noreturn]] void fail_at_node(TraceFile& file, MessageSource& messages, const ParsedTrace& trace, bool has_content) {
  while (!has_content)
    if (const auto message = messages.next())
      has_content = !message->bytes.empty();
    else
      throw Error(ErrorCode::bad_input, file.place(), "the file holds zero bytes only", "a Chakra execution trace");
  const ParsedNode& node = trace.nodes.back();
  Place place = file.place();
  place.byte_offset = node.position;
  throw Error(ErrorCode::bad_input, place,
              fmt::format("node {} has the id {} and the type {}: like {} nodes before it, its id is used twice or its "
                          "type is not known",
                          trace.nodes.size(), node.id, node.type, most_impossible),
              "a Chakra execution trace", "A part of the file may be damaged, or filled with zero bytes.");
}

}  // namespace

void read_chakra_file(TraceFile& file, TraceSink& sink, const TypeNumbering& numbering, ParseNode parse) {
  MessageSource messages(file);
  ParsedTrace& trace = sink.begin();
  trace.numbering = &numbering;
  bool is_first = true, has_content = false;
  std::size_t first_of_batch = 0, num_impossible = 0;
  while (const auto message = messages.next()) {
    has_content = has_content || !message->bytes.empty();
    const bool metadata = is_first && is_metadata(message->bytes);
    is_first = false;
    if (metadata) {
      trace.precision = precision_in(message->bytes);
      continue;
    }
    if (trace.nodes.size() == nodes_of_estimate) reserve(trace, messages.remaining_per_given());
    ParsedNode& node = trace.add_node(message->offset);
    Input input = input_over(message->bytes);
    if (!parse(input, node, trace)) fail_at_message(file, trace.nodes.size(), message->offset, input.CurrentPosition());
    if (is_impossible(trace) && ++num_impossible > most_impossible) fail_at_node(file, messages, trace, has_content);
    if (trace.batch.is_full() || !messages.holds_next())
      intern_names(trace, std::exchange(first_of_batch, trace.nodes.size()));
  }
  intern_names(trace, first_of_batch);
  if (!has_content && !trace.nodes.empty())
    throw Error(ErrorCode::bad_input, file.place(), "the file holds zero bytes only", "a Chakra execution trace");
  ensure(trace.nodes.size() < no_name, "more than 2^32 nodes in one trace");
}

}  // namespace orrery::trace
