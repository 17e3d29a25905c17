#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "orrery/base/text.hpp"
#include "orrery/parallel/communicator.hpp"
#include "preparation.hpp"
#include "subcommands.hpp"

namespace orrery::app {

int check(const config::CheckCommand& command) {
  auto [configuration, faults] = config::examine(command.inputs);
  if (configuration) {
    for (const auto& warning : configuration->warnings) spdlog::warn("{}", warning);
    configuration->run.partition = {};  // of a run on several ranks, which this is not
    const auto world = parallel::make_serial();
    const Preparation preparation(*configuration, *world, faults);
    for (const auto& [kind, entry] : preparation.notices().entries())
      spdlog::warn("{} (NPU {})", entry.text, entry.npu);
    if (faults.empty())
      fmt::print("{}, {} of {}, {}: nothing wrong was found\n", counted(preparation.num_npus(), "NPU"),
                 counted(preparation.num_nodes(), "node"),
                 counted(preparation.store().num_structures(), "distinct structure"),
                 counted(preparation.groups().size(), "group"));
  }
  if (faults.empty()) return 0;
  for (const auto& text : faults.texts()) spdlog::error("{}", text);
  return static_cast<int>(faults.code());
}

}  // namespace orrery::app
