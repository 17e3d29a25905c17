// The command line: each line of the input is an argument. Any arguments are a command or are refused.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fuzz_input.hpp"
#include "orrery/cli/command_line.hpp"
#include "orrery/config/npu_list.hpp"
#include "orrery/show/options.hpp"

namespace {
using namespace orrery;

/// Reads the lists of NPUs that `show timeline` takes, and writes them again.
void read_npu_list(const std::string& text) {
  (void)fuzz::accepts([&] {
    const auto ranges = config::parse_npu_list(text, 1000, {.key = "--npus"});
    if (config::parse_npu_list(config::to_text(ranges), 1000, {}) != ranges) fuzz::fail("another list of NPUs");
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::string> lines{"orrery"};
  std::string text(fuzz::text_of(data, size));
  std::replace(text.begin(), text.end(), '\0', ' ');
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  std::vector<const char*> arguments;
  for (const std::string& line : lines) arguments.push_back(line.c_str());
  (void)fuzz::accepts(
      [&] {
        const cli::Command command = cli::parse_command_line(arguments);
        const auto* const timeline = command.options<show::ShowTimelineCommand>();
        if (timeline != nullptr && timeline->npus) read_npu_list(*timeline->npus);
      },
      ErrorCode::usage);
  return 0;
}
