// A recording of PyTorch's profiler with the PyTorch execution trace that belongs to it, separated by a line `===`: any
// two files are a trace or are refused.
#include <cstddef>
#include <cstdint>
#include <utility>

#include "fuzz_input.hpp"
#include "orrery/trace/store.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  std::string_view rest = fuzz::text_of(data, size);
  const auto recording = fuzz::write_input(fuzz::take_file(rest), "recording.json");
  const auto companion =
      fuzz::write_input(rest, "recording.et.json");  // its name says that it belongs to the recording
  for (const auto& [alone, is_named] : {std::pair(false, false), std::pair(true, false), std::pair(true, true)})
    (void)fuzz::accepts([&] {
      trace::ReadOptions options{.num_npus = 8, .alone = alone};
      if (is_named) options.recording.execution_traces = companion;
      trace::Store store(options, {});
      (void)store.read(recording, NpuId(0));
    });
  return 0;
}
