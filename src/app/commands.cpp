#include "orrery/app/commands.hpp"

#include <type_traits>
#include <variant>

#include "orrery/app/job.hpp"
#include "orrery/parallel/environment.hpp"
#include "subcommands.hpp"

namespace orrery::app {
namespace {

template <class... Actions>
struct ForEachCommand : Actions... {
  using Actions::operator()...;
};

/// Makes a function object of a subcommand. One that returns nothing succeeds if it does not throw.
template <class Command, class Result>
auto of(Result (*subcommand)(const Command&)) {
  return [subcommand](const Command& command) {
    if constexpr (std::is_void_v<Result>) {
      subcommand(command);
      return 0;
    } else {
      return subcommand(command);
    }
  };
}

}  // namespace

int execute(const config::Command& command, const std::string& command_line) {
  const auto run_as_job = [&](const config::RunCommand& run_command) {
    return run_job([&](parallel::Communicator& world) { run(run_command, command_line, world); });
  };
  const auto explore_as_job = [&](const config::ExploreCommand& explore_command) {
    return run_job([&](parallel::Communicator& world) { explore(explore_command, command_line, world); });
  };
  const auto best_as_job = [&](const config::BestCommand& best_command) {
    return run_job([&](parallel::Communicator& world) { best(best_command, command_line, world); });
  };
  const auto flows_as_job = [&](const config::FlowsCommand& flows_command) {
    return run_job([&](parallel::Communicator& world) { flows(flows_command, world); });
  };
  const auto version = [](const config::VersionCommand&) {
    print_version();
    return 0;
  };
  const auto check_once = [](const config::CheckCommand& check_command) {
    return parallel::is_copy_by_launcher() ? 0 : check(check_command);
  };
  const ForEachCommand actions{
      of(print_help),   version,         run_as_job,        check_once,          explore_as_job,
      best_as_job,      flows_as_job,    of(generate),      of(convert),         of(synthesize),
      of(partition),    of(show_trace),  of(show_topology), of(show_collective), of(show_tables),
      of(show_plan),    of(show_graph),  of(show_flows),    of(show_collisions), of(show_queues),
      of(show_network), of(show_kernel), of(show_scaling),  of(show_timeline),   of(show_keys),
      of(run_package)};
  return std::visit(actions, command);
}

}  // namespace orrery::app
