// STUDY.yaml (docs/exploration.md): any file is a study or is refused.
#include <cstddef>
#include <cstdint>

#include "fuzz_input.hpp"
#include "orrery/config/study.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  const auto path = fuzz::write_input(fuzz::text_of(data, size), "study.yaml");
  (void)fuzz::accepts([&] {
    const explore::Study study = config::read_study(path);
    if (study.objectives.empty()) fuzz::fail("a study without an objective");
  });
  return 0;
}
