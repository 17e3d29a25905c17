#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>

#include "orrery/base/error.hpp"
#include "orrery/base/text.hpp"
#include "orrery/cli/command_line.hpp"
#include "orrery/cli/commands.hpp"
#include "orrery/cli/job.hpp"

int main(int argc, char** argv) {
  orrery::cli::start_log();
  std::string command_line;
  for (int i = 0; i < argc; ++i) command_line.append(i == 0 ? "" : " ").append(orrery::as_typed(argv[i]));
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond the limit on the size of files then fails with an error
  try {
    const auto command = orrery::cli::parse_command_line({argv, static_cast<std::size_t>(argc)});
    const int code = orrery::cli::execute(command, command_line);
    if (std::fflush(stdout) != 0 && code == 0)
      throw orrery::Error(orrery::ErrorCode::output, {.file = "standard output"}, std::strerror(errno));
    return code;
  } catch (...) {
    return orrery::cli::report_failure();
  }
}
