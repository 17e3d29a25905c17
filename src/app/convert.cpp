#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "orrery/base/faults.hpp"
#include "orrery/base/notices.hpp"
#include "orrery/base/output_file.hpp"
#include "orrery/base/text.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/trace/writer.hpp"
#include "recorded_starts.hpp"
#include "stop_request.hpp"
#include "subcommands.hpp"
#include "system_formats.hpp"

namespace orrery::app {
namespace {

/// Returns how many NPUs have a trace of their own; nothing if the inputs decide it.
std::optional<std::uint32_t> num_recorded(const config::ConvertCommand& command) {
  const std::uint32_t replicate = command.recording.replicate;
  return replicate > 0 ? replicate : command.npus;
}

/// Returns the files that the inputs name: those of NPUs 0, 1, ... for a name with {npu}.
std::vector<std::filesystem::path> files_of(const config::ConvertCommand& command) {
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

/// Returns the file of each NPU that has one. A file may say whose trace it holds, or hold those of several; otherwise
/// files are those of NPUs 0, 1, ... in their order. A single file that does not say it is the trace of every NPU.
std::vector<std::filesystem::path> file_of_each(const config::ConvertCommand& command,
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

void convert_traces(const config::ConvertCommand& command, const std::vector<std::filesystem::path>& files) {
  const auto num_npus = command.npus.value_or(static_cast<std::uint32_t>(files.size()));
  trace::NamedGroups groups;
  if (command.groups) groups = trace::read_group_file(*command.groups, num_npus);
  trace::Store store({.dependencies = command.dependencies,
                      .streams = trace::Streams::by_name,
                      .recording = command.recording,
                      .num_npus = num_npus},
                     std::move(groups));
  std::vector<NpuId> npus;
  std::vector<trace::NpuTrace> traces;
  Faults faults;
  std::uint64_t num_nodes = 0;
  for (std::uint32_t npu = 0; npu < num_npus; ++npu) {
    end_if_stopped();
    auto trace = store.read(files[npu % files.size()], NpuId(npu), faults);
    if (!trace) continue;
    num_nodes += trace->graph->num_nodes();
    npus.emplace_back(npu);
    traces.push_back(std::move(*trace));
  }
  faults.raise();
  Notices notices = store.notices();
  keep_starts(npus, traces, store, notices, *parallel::make_serial());
  for (const auto& [kind, entry] : notices.entries())
    if (!kind.starts_with("streams-")) spdlog::warn("{} (NPU {})", entry.text, entry.npu);
  trace::write_traces(store, traces, command.output, command.force);
  fmt::print("{} of {} ({}), {}\n", counted(num_nodes, "node"), counted(num_npus, "NPU"), store.format(traces.front()),
             counted(store.groups().size(), "group"));
  fmt::print("traces in {0}.<npu>.et, groups in {0}.json\n", command.output.string());
}

}  // namespace

void convert(const config::ConvertCommand& command) {
  if (command.recording.replicate > 0 && !command.npus)
    throw Error(ErrorCode::usage, {}, "--replicate is given without --npus",
                "--npus with the number of ranks of the whole job");
  const auto files = files_of(command);
  if (const SystemFormat* const format = find_system_format(files.front())) {
    if (files.size() > 1)
      throw Error(ErrorCode::usage, {.file = files[1].string()},
                  fmt::format("{} after a system ({})", counted(files.size() - 1, "file"), format->name), "one file");
    check_output(command.output, command.force);
    PartialFile output(command.output);
    output.write(format->to_yaml(files.front(), command.nodes));
    output.commit();
    fmt::print("system in {}\n", command.output.string());
    return;
  }
  if (command.nodes)
    throw Error(ErrorCode::usage, {.file = files.front().string()}, "--nodes is given for a trace",
                "--nodes with the topology of a node, or --npus with traces");
  convert_traces(command, file_of_each(command, files));
}

}  // namespace orrery::app
