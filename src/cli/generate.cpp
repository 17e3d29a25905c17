#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "logged_job.hpp"
#include "orrery/config/read.hpp"
#include "orrery/workload/figures.hpp"
#include "orrery/workload/generator.hpp"
#include "subcommands.hpp"

namespace orrery::cli {

void generate(const config::GenerateCommand& command) {
  honour_signals();
  const config::Workload workload = config::read_generation(command.file, command.overrides);
  const workload::Description& description = *workload.generated;
  if (const auto warning = description.parallel.pipeline_warning()) spdlog::warn("{}", *warning);
  fmt::print("{}", workload::report(description, workload::figures(description)));
  if (command.dry_run) return;
  workload::write_traces(description, command.output, command.force, workload.estimates.get());
  fmt::print("traces in {0}.<npu>.et, groups in {0}.json\n", command.output.string());
}

}  // namespace orrery::cli
