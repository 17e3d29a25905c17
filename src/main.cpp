#include <algorithm>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <span>
#include <string>

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include "orrery/app/commands.hpp"
#include "orrery/app/job.hpp"
#include "orrery/base/error.hpp"
#include "orrery/base/text.hpp"
#include "orrery/base/utf8.hpp"
#include "orrery/config/command_line.hpp"

namespace {

/// The text of a message, which may quote what files hold, without what would control the terminal.
class PrintableMessage final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& to) override {
    const std::string text = orrery::printable({message.payload.data(), message.payload.size()});
    to.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<PrintableMessage>(); }
};

void start_log() {
  spdlog::set_default_logger(spdlog::stderr_color_mt("orrery"));
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<PrintableMessage>('*').set_pattern("%n: %l: %*");
  spdlog::set_formatter(std::move(formatter));
}

}  // namespace

int main(int argc, char** argv) {
  start_log();
  std::string command_line;
  for (int i = 0; i < argc; ++i) command_line.append(i == 0 ? "" : " ").append(orrery::as_typed(argv[i]));
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
