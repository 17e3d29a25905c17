#pragma once

#include <optional>
#include <string_view>

#include "fuzz_input.hpp"
#include "orrery/trace/store.hpp"

namespace orrery::fuzz {

/// Reads the bytes as a trace of NPU 0 of 8, and alone, if they are of one of the formats that `wanted` accepts.
/// Returns what LLVMFuzzerTestOneInput returns: -1 for other formats and damaged gzip, which stay out of the corpus.
template <class Wanted>
int read_trace(std::string_view bytes, Wanted wanted) {
  const auto path = write_input(bytes, "trace.0");
  std::optional<std::string_view> format;
  if (!accepts([&] { format = trace::format_of(path); }) || !format || !wanted(*format)) return -1;
  for (const bool alone : {false, true})
    (void)accepts([&] {
      trace::Store store({.num_npus = 8, .alone = alone}, {{"tp", {NpuId(0), NpuId(1)}}});
      const trace::NpuTrace trace = store.read(path, NpuId(0));
      if (trace.labels->ids.size() != trace.graph->num_nodes()) fail("a node has no id");
      if (trace.graph->nodes.back().first_successor != trace.graph->successors.size()) fail("a successor is lost");
    });
  (void)accepts([&] { (void)trace::describe_file(path, {}, false); });
  return 0;
}

}  // namespace orrery::fuzz
