#include "parse.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "layout.hpp"
#include "message_source.hpp"
#include "node_parser.hpp"

namespace orrery::trace {
namespace {

constexpr std::size_t longest_shown_name = 80;

/// After so many nodes their number is estimated, so that a large trace does not grow step by step.
constexpr std::size_t nodes_of_estimate = 4096;
/// How far the estimate is believed: a few strangely small messages at the start must not reserve a fortune.
constexpr double most_growth = 256;

using Parser = bool (*)(Input&, RawNode&, RawTrace&, NamePool&);

Parser parser_of(Layout layout) {
  switch (layout) {
    case Layout::today:
      return parse_node;
    case Layout::v0_0_1:
      return parse_node_v0_0_1;
    case Layout::v0_0_2:
    case Layout::v0_0_3:
      return parse_node_v0_0_3;
  }
  ensure(false, "unknown layout");
  return nullptr;
}

void reserve(RawTrace& trace, double remaining_per_given) {
  const double growth = 1.02 * (1 + std::min(remaining_per_given, most_growth));
  const auto grown = [growth](std::size_t count) {
    return static_cast<std::size_t>(growth * static_cast<double>(count));
  };
  trace.nodes.reserve(grown(trace.nodes.size()));
  trace.ctrl.reserve(grown(trace.ctrl.size()));
  trace.data.reserve(grown(trace.data.size()));
  trace.tensors.reserve(grown(trace.tensors.size()));
}

}  // namespace

std::string shown(std::string_view name) {
  std::string text(name.substr(0, longest_shown_name));
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  if (name.size() > longest_shown_name) text += "...";
  return text;
}

Place place_of(const Source& source) { return {.file = source.file, .npu = source.npu}; }

Place place_of(const Source& source, const RawNode& node, const NamePool& names) {
  Place place = place_of(source);
  place.node = node.id;
  place.byte_offset = node.offset;
  if (node.name != no_name) place.node_name = shown(names[node.name]);
  return place;
}

RawTrace parse_file(const std::filesystem::path& path, const Source& source, NamePool& names) {
  MessageSource messages(path, place_of(source));
  const FileFormat format = detect_format(messages);
  RawTrace trace;
  names.start_file();
  trace.layout = format.layout;
  const Parser parse = parser_of(format.layout);
  bool any = false, any_content = false;
  while (const auto message = messages.next()) {
    const bool metadata = !any && format.has_metadata;
    any = true;
    any_content = any_content || !message->bytes.empty();
    if (metadata) continue;
    if (trace.nodes.size() == nodes_of_estimate) reserve(trace, messages.remaining_per_given());
    RawNode& node = trace.nodes.emplace_back();
    node.offset = message->offset;
    node.first_ctrl = trace.ctrl.size();
    node.first_data = trace.data.size();
    node.first_tensor = trace.tensors.size();
    Input input = input_over(message->bytes);
    if (parse(input, node, trace, names)) continue;
    Place place = place_of(source);
    place.byte_offset = message->offset + static_cast<std::uint64_t>(input.CurrentPosition());
    throw Error(ErrorCode::bad_input, place,
                fmt::format("message {} (at byte {}) is not a Chakra node", trace.nodes.size(), message->offset),
                "a Chakra execution trace",
                trace.nodes.size() > 1 ? "" : "This is the first node: the file may be no trace at all.");
  }
  if (!any) throw Error(ErrorCode::bad_input, place_of(source), "the file is empty", "a Chakra execution trace");
  if (!any_content && !trace.nodes.empty())
    throw Error(ErrorCode::bad_input, place_of(source), "the file holds zero bytes only", "a Chakra execution trace");
  ensure(trace.nodes.size() < no_name, "more than 2^32 nodes in one trace");
  return trace;
}

}  // namespace orrery::trace
