// CONFIG.yaml: any text is a configuration or is refused. What a configuration names is looked for beside the example
// configurations. A configuration that was read is written with all its defaults, and reading this gives an equal one.
// Lines after a line `===` are settings as --set takes them.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

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

/// Runs what reads the file with settings, which may be no settings: an Error of the code usage.
template <class Read>
void accept_settings(Read read) {
  try {
    read();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_input && error.code() != ErrorCode::usage) fuzz::fail(error.what());
  }
}

/// Reads the file with settings, as commands do.
void read_as_commands(std::string_view text, std::string_view settings) {
  config::Inputs inputs{.file = fuzz::write_input(text, "config.yaml")};
  while (!settings.empty() && inputs.overrides.size() < 8) {
    const std::size_t end = settings.find('\n');
    inputs.overrides.emplace_back(settings.substr(0, end));
    settings.remove_prefix(end == std::string_view::npos ? settings.size() : end + 1);
  }
  for (const bool system_only : {false, true}) {
    inputs.system_only = system_only;
    accept_settings([&] { (void)config::read(inputs); });
    accept_settings([&] { (void)config::faults_of_keys(inputs); });
  }
  accept_settings([&] { (void)config::read_workload(inputs.file, inputs.overrides); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest = fuzz::text_of(data, size);
  const std::string_view text = fuzz::take_file(rest);
  read(text, false);
  read(text, true);
  read_as_commands(text, rest);
  return 0;
}
