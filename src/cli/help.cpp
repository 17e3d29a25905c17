#include <cstdio>

#include <fmt/format.h>

#include "subcommands.hpp"

namespace orrery::cli {

int print_help(const config::HelpCommand& help) {
  fmt::print(help.exit_code == 0 ? stdout : stderr, "{}\n", help.text);
  return help.exit_code;
}

}  // namespace orrery::cli
