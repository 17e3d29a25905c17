#include "trace_inputs.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "config_options.hpp"
#include "orrery/base/faults.hpp"
#include "orrery/base/job_context.hpp"
#include "orrery/base/notices.hpp"
#include "orrery/base/text.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/run/recorded_starts.hpp"

namespace orrery::cli {
namespace {

/// Returns how many NPUs have a trace of their own; nothing if the inputs decide it.
std::optional<std::uint32_t> num_recorded(const ConvertCommand& command) {
  const std::uint32_t replicate = command.recording.replicate;
  return replicate > 0 ? replicate : command.npus;
}

/// Returns the file of each NPU that has one. A file may say whose trace it holds, or hold those of several; otherwise
/// files are those of NPUs 0, 1, ... in their order. A single file that does not say it is the trace of every NPU.
std::vector<std::filesystem::path> file_of_each(const ConvertCommand& command,
                                                const std::vector<std::filesystem::path>& files) {
  const bool is_single = files.size() == 1;
  if (is_single && command.npus) return {*command.npus, files.front()};
  const auto recorded = num_recorded(command);
  const trace::ReadOptions options{.recording = {.step = command.recording.step}, .num_npus = command.npus.value_or(0)};
  std::vector<std::optional<std::filesystem::path>> found(recorded.value_or(0));
  Faults faults;
  const auto take = [&](std::uint32_t npu, const std::filesystem::path& file) {
    if (npu >= found.size() && recorded)
      throw Error(ErrorCode::bad_input, {.file = file.string()},
                  fmt::format("the trace of NPU {}, but --{} says {}", npu,
                              command.recording.replicate > 0 ? "replicate" : "npus", *recorded),
                  fmt::format("NPUs 0 to {}", *recorded - 1));
    if (npu >= found.size()) found.resize(npu + 1);
    if (found[npu])
      throw Error(ErrorCode::bad_input, {.file = file.string()},
                  fmt::format("a trace of NPU {}, as {} is", npu, found[npu]->string()), "one trace for each NPU");
    found[npu] = file;
  };
  for (std::size_t i = 0; i < files.size(); ++i)
    faults.attempt([&] {
      end_if_stopped();
      const auto owners = trace::describe_file(files[i], options, !is_single).owners;
      for (const NpuId npu : owners) take(npu.value(), files[i]);
      if (owners.empty()) take(static_cast<std::uint32_t>(i), files[i]);
    });
  faults.raise();
  std::vector<std::filesystem::path> result;
  for (auto& file : found) {
    if (!file)
      throw Error(ErrorCode::bad_input, {.npu = static_cast<std::uint32_t>(result.size())},
                  fmt::format("no input holds the trace of this NPU of {}", found.size()), "a trace for each NPU");
    result.push_back(std::move(*file));
  }
  return result;
}

/// Gives the groups that nobody lists their members: the NPUs whose traces name them.
void list_groups_by_use(TraceInputs& inputs) {
  const auto unlisted = inputs.store.unlisted_groups();
  for (const GroupId group : std::vector(unlisted.begin(), unlisted.end())) {
    std::vector<NpuId> members;
    for (std::uint32_t npu = 0; npu < inputs.traces.size(); ++npu)
      if (std::ranges::find(inputs.traces[npu].groups, group) != inputs.traces[npu].groups.end())
        members.emplace_back(npu);
    inputs.store.list_group(group, std::move(members));
  }
}

}  // namespace

void read_trace_options(const Arguments& arguments, ConvertCommand& command) {
  if (const auto groups = arguments.text("groups")) command.groups = *groups;
  command.npus = arguments.count("npus");
  command.recording.step = step_of(arguments).value_or(command.recording.step);
  command.recording.replicate = arguments.count("replicate", 0).value_or(0);
  command.recording.execution_traces = arguments.text("execution-traces").value_or("");
  command.dependencies = dependencies_of(arguments).value_or(command.dependencies);
  command.force = arguments.flag("force").value_or(false);
}

std::vector<std::filesystem::path> files_of(const ConvertCommand& command) {
  std::vector<std::filesystem::path> files;
  for (const std::string& input : command.inputs) {
    const auto at = input.find(npu_placeholder);
    if (at == std::string::npos) {
      files.emplace_back(input);
      continue;
    }
    if (command.inputs.size() > 1)
      throw Error(ErrorCode::usage, {}, fmt::format("found '{}' among several inputs", input),
                  "one name with {npu}, which stands for the files of all NPUs");
    const auto name_of = [&](std::size_t npu) { return name_for_npu(input, npu); };
    do files.emplace_back(name_of(files.size()));
    while (num_recorded(command) ? files.size() < *num_recorded(command)
                                 : std::filesystem::exists(name_of(files.size())));
  }
  return files;
}

TraceInputs read_trace_inputs(const ConvertCommand& command, const std::vector<std::filesystem::path>& named) {
  const auto files = file_of_each(command, named);
  const auto num_npus = command.npus.value_or(static_cast<std::uint32_t>(files.size()));
  trace::NamedGroups groups;
  if (command.groups) groups = trace::read_group_file(*command.groups, num_npus);
  TraceInputs inputs{trace::Store({.dependencies = command.dependencies,
                                   .streams = trace::Streams::by_name,
                                   .recording = command.recording,
                                   .num_npus = num_npus},
                                  std::move(groups)),
                     {}};
  std::vector<NpuId> npus;
  Faults faults;
  for (std::uint32_t npu = 0; npu < num_npus; ++npu) {
    end_if_stopped();
    auto trace = inputs.store.read(files[npu % files.size()], NpuId(npu), faults);
    if (!trace) continue;
    inputs.num_nodes += trace->graph->num_nodes();
    npus.emplace_back(npu);
    inputs.traces.push_back(std::move(*trace));
  }
  faults.raise();
  list_groups_by_use(inputs);
  Notices notices = inputs.store.notices();
  run::keep_starts(npus, inputs.traces, inputs.store, notices, *parallel::make_serial());
  for (const auto& [kind, entry] : notices.entries())
    if (!kind.starts_with("streams-")) spdlog::warn("{} (NPU {})", entry.text, entry.npu);
  return inputs;
}

}  // namespace orrery::cli
