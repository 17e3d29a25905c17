#include "registry.hpp"

#include <fmt/format.h>

#include <array>
#include <string>

#include "content.hpp"

namespace orrery::trace {

// Each is in the source of its name.
extern const Reader chakra_reader, chakra_v0_0_1_reader, chakra_v0_0_3_reader, chakra_json_reader, goal_reader,
    kineto_reader, pytorch_reader, text_workload_reader;

const ReadOptions& TraceSink::options() const {
  static const ReadOptions of_a_lone_trace{.alone = true};
  return of_a_lone_trace;
}

std::span<const Reader> readers() {
  static const std::array all = {chakra_reader, chakra_v0_0_1_reader, chakra_v0_0_3_reader, chakra_json_reader,
                                 goal_reader,   kineto_reader,        pytorch_reader,       text_workload_reader};
  return all;
}

const Reader& find_reader(const TraceFile& file, std::span<const Reader> among) {
  const std::string_view beginning = file.beginning();
  for (const Reader& reader : among)
    if (reader.recognises(beginning)) return reader;
  std::string names;
  for (const Reader& reader : among) names += fmt::format("{}{}", names.empty() ? "" : ", ", reader.name);
  const std::string expected = fmt::format("an execution trace in one of the formats {}", names);
  Place place = file.place();
  if (beginning.empty()) throw Error(ErrorCode::bad_input, place, "the file is empty", expected);
  place.byte_offset = 0;
  throw Error(ErrorCode::bad_input, place,
              fmt::format("this is not a trace that Orrery can read: {}", describe_content(beginning)), expected,
              "docs/traces.md describes the formats.");
}

}  // namespace orrery::trace
