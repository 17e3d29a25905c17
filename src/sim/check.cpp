#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "orrery/parallel/communicator.hpp"
#include "orrery/sim/commands.hpp"
#include "orrery/sim/preparation.hpp"

namespace orrery::sim {

int check(const config::CheckCommand& command) {
  auto findings = config::examine(command.inputs);
  auto problems = std::move(findings.problems);
  if (findings.configuration) {
    const auto& configuration = *findings.configuration;
    for (const auto& warning : configuration.warnings) spdlog::warn("{}", warning);
    const auto world = parallel::make_serial();
    try {
      const Preparation preparation(configuration, *world, &problems);
      for (const auto& [kind, entry] : preparation.notices().entries())
        spdlog::warn("{} (NPU {})", entry.text, entry.npu);
      if (problems.empty())
        fmt::print("{} NPUs, {} nodes of {} distinct structures, {} groups: nothing wrong was found\n",
                   preparation.num_npus(), preparation.num_nodes(), preparation.store().num_structures(),
                   preparation.groups().size());
    } catch (const Error& error) {
      problems.push_back(error);
    }
  }
  for (const auto& problem : problems) spdlog::error("{}", problem.what());
  return static_cast<int>(problems.size());
}

}  // namespace orrery::sim
