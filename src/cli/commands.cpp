#include "orrery/cli/commands.hpp"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <ctime>
#include <memory>
#include <string>
#include <utility>

#include "orrery/base/utf8.hpp"

namespace orrery::cli {
namespace {

/// The text of a message, which may quote what files hold, without what would control the terminal.
class PrintableMessage final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& to) override {
    const std::string text = printable({message.payload.data(), message.payload.size()});
    to.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<PrintableMessage>(); }
};

}  // namespace

void start_log() {
  spdlog::set_default_logger(spdlog::stderr_color_mt("orrery"));
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<PrintableMessage>('*').set_pattern("%n: %l: %*");
  spdlog::set_formatter(std::move(formatter));
}

int execute(const Command& command, const std::string& command_line, const JobLauncher& launch) {
  return command.execute({command_line, launch});
}

}  // namespace orrery::cli
