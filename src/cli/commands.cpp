#include "orrery/cli/commands.hpp"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <ctime>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "logged_job.hpp"
#include "orrery/base/text.hpp"
#include "orrery/base/utf8.hpp"
#include "orrery/parallel/environment.hpp"
#include "orrery/show/commands.hpp"
#include "subcommands.hpp"

namespace orrery::cli {
namespace {

using namespace show;

/// The text of a message, which may quote what files hold, without what would control the terminal.
class PrintableMessage final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& to) override {
    const std::string text = printable({message.payload.data(), message.payload.size()});
    to.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<PrintableMessage>(); }
};

template <class... Actions>
struct ForEachCommand : Actions... {
  using Actions::operator()...;
};

/// Makes a function object of a subcommand. One that returns nothing succeeds if it does not throw.
template <class Command, class Result>
auto of(Result (*subcommand)(const Command&)) {
  return [subcommand](const Command& command) {
    if (parallel::is_copy_by_launcher()) return 0;  // one of the processes does what has no use for several
    const LoggedJob job;
    if constexpr (std::is_void_v<Result>) {
      subcommand(command);
      return 0;
    } else {
      return subcommand(command);
    }
  };
}

}  // namespace

void start_log() {
  spdlog::set_default_logger(spdlog::stderr_color_mt("orrery"));
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<PrintableMessage>('*').set_pattern("%n: %l: %*");
  spdlog::set_formatter(std::move(formatter));
}

int execute(const config::Command& command, const std::string& command_line, const JobLauncher& launch) {
  const auto run_as_job = [&](const config::RunCommand& run_command) {
    return launch(
        [&](parallel::Communicator& world, run::StopGuard& guard) { run(run_command, command_line, world, guard); });
  };
  const auto explore_as_job = [&](const config::ExploreCommand& explore_command) {
    return launch(
        [&](parallel::Communicator& world, run::StopGuard&) { explore(explore_command, command_line, world); });
  };
  const auto best_as_job = [&](const config::BestCommand& best_command) {
    return launch([&](parallel::Communicator& world, run::StopGuard&) { best(best_command, command_line, world); });
  };
  const auto campaign_as_job = [&](const config::CampaignCommand& campaign_command) {
    return launch(
        [&](parallel::Communicator& world, run::StopGuard&) { campaign(campaign_command, command_line, world); });
  };
  const auto cluster_as_job = [&](const config::ClusterCommand& cluster_command) {
    return launch(
        [&](parallel::Communicator& world, run::StopGuard&) { cluster(cluster_command, command_line, world); });
  };
  const auto flows_as_job = [&](const config::FlowsCommand& flows_command) {
    return launch([&](parallel::Communicator& world, run::StopGuard&) { flows(flows_command, world); });
  };
  const auto version = [](const config::VersionCommand&) {
    print_version();
    return 0;
  };
  const auto check_once = [](const config::CheckCommand& check_command) {
    const LoggedJob job;
    return parallel::is_copy_by_launcher() ? 0 : check(check_command);
  };
  const ForEachCommand actions{
      of(print_help),   version,           run_as_job,          check_once,          explore_as_job,   best_as_job,
      campaign_as_job,  cluster_as_job,    flows_as_job,        of(generate),        of(convert),      of(synthesize),
      of(partition),    of(show_trace),    of(show_topology),   of(show_collective), of(show_tables),  of(show_plan),
      of(show_graph),   of(show_flows),    of(show_collisions), of(show_queues),     of(show_network), of(show_kernel),
      of(show_scaling), of(show_timeline), of(show_keys),       of(show_presets),    of(init),         of(run_package)};
  return std::visit(actions, command);
}

}  // namespace orrery::cli
