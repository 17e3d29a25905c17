// CONFIG.yaml: any text is a configuration or is refused. What a configuration names is looked for beside the example
// configurations. A configuration that was read is written with all its defaults, and reading this gives an equal one.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "fuzz_input.hpp"
#include "orrery/config/configuration.hpp"
#include "orrery/config/read.hpp"

namespace {
using namespace orrery;

constexpr const char* folder = ORRERY_SOURCE_DIR "/configs";

void read(std::string_view text, bool system_only) {
  std::optional<config::Configuration> read;
  if (!fuzz::accepts([&] { read = config::parse(text, "config.yaml", folder, system_only); })) return;
  const std::string written = read->to_yaml();
  try {
    if (!(config::parse(written, "written.yaml", folder, system_only) == *read))
      fuzz::fail("another configuration than the one that was written:\n" + written);
  } catch (const Error& error) {
    fuzz::fail("what was written is refused: " + std::string(error.what()) + "\n" + written);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  read(fuzz::text_of(data, size), false);
  read(fuzz::text_of(data, size), true);
  return 0;
}
