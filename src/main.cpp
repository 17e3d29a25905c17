#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include "orrery/app/commands.hpp"
#include "orrery/app/job.hpp"
#include "orrery/base/error.hpp"
#include "orrery/config/command_line.hpp"

int main(int argc, char** argv) {
  spdlog::set_default_logger(spdlog::stderr_color_mt("orrery"));
  spdlog::set_pattern("%n: %l: %v");
  std::string command_line;
  for (int i = 0; i < argc; ++i) command_line.append(i == 0 ? "" : " ").append(argv[i]);
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond the limit on the size of files then fails with an error
  try {
    const auto command = orrery::config::parse_command_line({argv, static_cast<std::size_t>(argc)});
    const int code = orrery::app::execute(command, command_line);
    if (std::fflush(stdout) != 0 && code == 0)
      throw orrery::Error(orrery::ErrorCode::output, {.file = "standard output"}, std::strerror(errno));
    return code;
  } catch (...) {
    return orrery::app::report_failure();
  }
}
