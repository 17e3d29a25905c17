#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <variant>

#include <fmt/format.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include "orrery/app/commands.hpp"
#include "orrery/app/job.hpp"
#include "orrery/base/error.hpp"
#include "orrery/config/command_line.hpp"
#include "orrery/parallel/communicator.hpp"

namespace {

using orrery::Error;
using orrery::ErrorCode;
namespace config = orrery::config;
namespace app = orrery::app;

struct Execute {
  const std::string& command_line;

  int operator()(const config::HelpCommand& help) const {
    fmt::print(help.exit_code == 0 ? stdout : stderr, "{}\n", help.text);
    return help.exit_code;
  }
  int operator()(const config::VersionCommand&) const {
    fmt::print("{}\n", app::version_text());
    return 0;
  }
  int operator()(const config::RunCommand& command) const {
    return app::run_job([&](orrery::parallel::Communicator& world) { app::run(command, command_line, world); });
  }
  int operator()(const config::CheckCommand& command) const { return app::check(command); }
  int operator()(const config::GenerateCommand& command) const { return app::generate(command), 0; }
  int operator()(const config::PartitionCommand& command) const { return app::partition(command), 0; }
  template <class Show>
  int operator()(const Show& command) const {
    return app::show(command), 0;
  }
};

}  // namespace

int main(int argc, char** argv) {
  spdlog::set_default_logger(spdlog::stderr_color_mt("orrery"));
  spdlog::set_pattern("%n: %l: %v");
  std::string command_line;
  for (int i = 0; i < argc; ++i) command_line.append(i == 0 ? "" : " ").append(argv[i]);
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on the size of files is an error of the write
  try {
    const int code =
        std::visit(Execute{command_line}, config::parse_command_line({argv, static_cast<std::size_t>(argc)}));
    if (std::fflush(stdout) != 0 && code == 0)
      throw Error(ErrorCode::output, {.file = "standard output"}, std::strerror(errno));
    return code;
  } catch (...) {
    return app::report_failure();
  }
}
