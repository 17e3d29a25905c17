#include <fmt/format.h>

#include <filesystem>
#include <vector>

#include "logged_job.hpp"
#include "orrery/base/output_file.hpp"
#include "orrery/base/text.hpp"
#include "orrery/graphfile/system_formats.hpp"
#include "orrery/trace/writer.hpp"
#include "subcommands.hpp"
#include "trace_inputs.hpp"

namespace orrery::cli {
namespace {

void convert_traces(const config::ConvertCommand& command, const std::vector<std::filesystem::path>& files) {
  const TraceInputs inputs = read_trace_inputs(command, files);
  trace::write_traces(inputs.store, inputs.traces, command.output, command.force);
  fmt::print("{} of {} ({}), {}\n", counted(inputs.num_nodes, "node"), counted(inputs.traces.size(), "NPU"),
             inputs.store.format(inputs.traces.front()), counted(inputs.store.groups().size(), "group"));
  fmt::print("traces in {0}.<npu>.et, groups in {0}.json\n", command.output.string());
}

}  // namespace

void convert(const config::ConvertCommand& command) {
  honour_signals();
  if (command.recording.replicate > 0 && !command.npus)
    throw Error(ErrorCode::usage, {}, "--replicate is given without --npus",
                "--npus with the number of ranks of the whole job");
  const auto files = files_of(command);
  if (const graphfile::SystemFormat* const format = graphfile::find_system_format(files.front())) {
    if (files.size() > 1)
      throw Error(ErrorCode::usage, {.file = files[1].string()},
                  fmt::format("{} after a system ({})", counted(files.size() - 1, "file"), format->name), "one file");
    check_output(command.output, command.force);
    PartialFile output(command.output);
    const graphfile::SystemText system = format->to_yaml(files.front(), command.nodes);
    for (const std::string& warning : system.warnings)
      fmt::print(stderr, "orrery: warning: {}: {}\n", files.front().string(), warning);
    output.write(system.yaml);
    output.commit();
    fmt::print("system in {}\n", command.output.string());
    return;
  }
  if (command.nodes)
    throw Error(ErrorCode::usage, {.file = files.front().string()}, "--nodes is given for a trace",
                "--nodes with the topology of a node, or --npus with traces");
  convert_traces(command, files);
}

}  // namespace orrery::cli
