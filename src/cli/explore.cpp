#include "orrery/study/explore.hpp"

#include "logged_job.hpp"
#include "subcommands.hpp"

namespace orrery::cli {

void explore(const config::ExploreCommand& command, const std::string& command_line, parallel::Communicator& world) {
  honour_signals();
  study::explore(command, command_line, world);
}

void best(const config::BestCommand& command, const std::string& command_line, parallel::Communicator& world) {
  if (command.serve.empty()) honour_signals();
  study::best(command, command_line, world);
}

}  // namespace orrery::cli
