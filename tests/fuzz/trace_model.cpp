// Models that `orrery synthesize` has learned from traces (JSON): any text is a model or is refused, and what is
// written of a model without obfuscation is read again.
#include <cstddef>
#include <cstdint>

#include "fuzz_input.hpp"
#include "orrery/synthesis/model_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  std::string written;
  if (!fuzz::accepts([&] {
        const auto model = synthesis::parse_model(fuzz::text_of(data, size), "model.json");
        written = synthesis::to_json(model, {.delta = 0});
      }))
    return 0;
  try {
    (void)synthesis::parse_model(written, "written.json");
  } catch (const Error& error) {
    fuzz::fail("what was written is refused: " + std::string(error.what()) + "\n" + written);
  }
  return 0;
}
