#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include <fmt/format.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include "orrery/base/error.hpp"
#include "orrery/base/host.hpp"
#include "orrery/config/command_line.hpp"
#include "orrery/parallel/environment.hpp"
#include "orrery/sim/commands.hpp"

namespace {

using orrery::Error;
using orrery::ErrorCode;
namespace config = orrery::config;
namespace sim = orrery::sim;

constexpr unsigned seconds_to_abort = 5;

int report(const Error& error) {
  spdlog::error("{}", error.what());
  return static_cast<int>(error.code());
}

int report(const std::bad_alloc&, std::string_view who = "this process") {
  spdlog::error(
      "{} on {} ran out of memory. Use more ranks on more machines, or raise the limit of memory (docs/user-guide.md, "
      "Out of memory).",
      who, orrery::host_name());
  return static_cast<int>(ErrorCode::internal);
}

int report(const std::exception& error) {
  spdlog::error("{}. This is a fault of Orrery or of the machine, please report it.", error.what());
  return static_cast<int>(ErrorCode::internal);
}

/// A failure that all ranks know of ends in order; any other ends the whole job at once.
int run(const config::RunCommand& command, const std::string& command_line) {
  orrery::parallel::Environment environment;
  auto& world = environment.world();
  int code = 0;
  bool in_order = true;
  try {
    sim::run(command, command_line, world);
  } catch (const orrery::parallel::FailedElsewhere& failure) {
    code = failure.exit_code;
  } catch (const Error& error) {
    code = report(error);
  } catch (const std::bad_alloc& error) {
    code = report(error, fmt::format("rank {} of {}", world.rank().value(), world.size()));
    in_order = false;  // to end MPI needs memory too
  } catch (const std::exception& error) {
    code = report(error);
  }
  if (code != 0 && !(in_order && world.failure_is_agreed())) {
    spdlog::shutdown();
    ::alarm(seconds_to_abort);  // MPI may need memory that is not there
    orrery::parallel::Environment::abort(code);
  }
  return code;
}

struct Execute {
  const std::string& command_line;

  int operator()(const config::HelpCommand& help) const {
    fmt::print(help.exit_code == 0 ? stdout : stderr, "{}\n", help.text);
    return help.exit_code;
  }
  int operator()(const config::VersionCommand&) const {
    fmt::print("{}\n", sim::version_text());
    return 0;
  }
  int operator()(const config::RunCommand& command) const { return run(command, command_line); }
  int operator()(const config::CheckCommand& command) const { return sim::check(command); }
  int operator()(const config::GenerateCommand& command) const { return sim::generate(command), 0; }
  int operator()(const config::PartitionCommand& command) const { return sim::partition(command), 0; }
  template <class Show>
  int operator()(const Show& command) const {
    return sim::show(command), 0;
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
  } catch (const Error& error) {
    return report(error);
  } catch (const std::bad_alloc& error) {
    return report(error);
  } catch (const std::exception& error) {
    return report(error);
  }
}
