#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "orrery/base/text.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/trace/store.hpp"
#include "preparation.hpp"
#include "subcommands.hpp"

namespace orrery::app {

namespace {

/// Reads a trace file as far as it can be checked without its system. Throws what is wrong with it.
void check_trace(const std::filesystem::path& path) {
  const auto owners = trace::describe_file(path, {}, false).owners;
  trace::ReadOptions options{.streams = trace::Streams::by_name};
  options.alone = owners.size() < 2;
  if (!options.alone) {
    options.num_npus = owners.back().value() + 1;
    options.groups_unknown = true;
  }
  trace::Store store(options, {});
  std::vector<trace::NpuTrace> traces;
  std::uint64_t num_nodes = 0;
  for (std::size_t i = 0; i < std::max<std::size_t>(owners.size(), 1); ++i) {
    traces.push_back(store.read(path, owners.empty() ? NpuId(0) : owners[i]));
    num_nodes += traces.back().graph->num_nodes();
  }
  for (const auto& [kind, entry] : store.notices().entries())
    if (!kind.starts_with("streams-")) spdlog::warn("{}", entry.text);
  fmt::print("a trace of {} ({}), {}: nothing wrong was found in the file alone\n", counted(traces.size(), "NPU"),
             store.format(traces.front()), counted(num_nodes, "node"));
  fmt::print("A configuration whose workload.traces names it is checked with its system: orrery check CONFIG.yaml\n");
}

bool is_trace(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error) && trace::format_of(path).has_value();
}

}  // namespace

int check(const config::CheckCommand& command) {
  if (is_trace(command.inputs.file)) {
    check_trace(command.inputs.file);
    return 0;
  }
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
