#include <cstdio>
#include <exception>
#include <span>
#include <string>
#include <variant>

#include <fmt/format.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include "orrery/base/error.hpp"
#include "orrery/config/command_line.hpp"
#include "orrery/parallel/environment.hpp"
#include "orrery/sim/commands.hpp"

namespace {

using orrery::Error;
using orrery::ErrorCode;
namespace config = orrery::config;
namespace sim = orrery::sim;

int report(const Error& error) {
  spdlog::error("{}", error.what());
  return static_cast<int>(error.code());
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
  try {
    sim::run(command, command_line, world);
  } catch (const orrery::parallel::FailedElsewhere& failure) {
    code = failure.exit_code;
  } catch (const Error& error) {
    code = report(error);
  } catch (const std::exception& error) {
    code = report(error);
  }
  if (code != 0 && !world.failure_is_agreed()) {
    spdlog::shutdown();
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
  int operator()(const config::CheckCommand& command) const {
    return sim::check(command) == 0 ? 0 : static_cast<int>(ErrorCode::bad_input);
  }
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
  try {
    return std::visit(Execute{command_line}, config::parse_command_line({argv, static_cast<std::size_t>(argc)}));
  } catch (const Error& error) {
    return report(error);
  } catch (const std::exception& error) {
    return report(error);
  }
}
