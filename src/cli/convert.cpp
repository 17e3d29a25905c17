#include <fmt/format.h>

#include <filesystem>
#include <vector>

#include "logged_job.hpp"
#include "orrery/base/output_file.hpp"
#include "orrery/base/text.hpp"
#include "orrery/graphfile/system_formats.hpp"
#include "orrery/trace/writer.hpp"
#include "trace_inputs.hpp"

#include "command.hpp"
#include "config_options.hpp"
#include "option_values.hpp"
#include "options.hpp"

namespace orrery::cli {
namespace {

void convert_traces(const ConvertCommand& command, const std::vector<std::filesystem::path>& files) {
  const TraceInputs inputs = read_trace_inputs(command, files);
  trace::write_traces(inputs.store, inputs.traces, command.output, command.force);
  fmt::print("{} of {} ({}), {}\n", counted(inputs.num_nodes, "node"), counted(inputs.traces.size(), "NPU"),
             inputs.store.format(inputs.traces.front()), counted(inputs.store.groups().size(), "group"));
  fmt::print("traces in {0}.<npu>.et, groups in {0}.json\n", command.output.string());
}

void convert(const ConvertCommand& command) {
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

const Subcommand& convert_subcommand() {
  static const Subcommand command{
      "convert", "Write traces of any format as Chakra execution traces, or a system as YAML.", "INPUT ...",
      "  orrery convert rank0.json rank1.json --output traces/workload\n"
      "  orrery convert topo.xml --nodes 16 --output system.yaml\n"
      "  orrery convert 'old/trace.{npu}.et' --groups old/groups.json --output traces/workload",
      std::vector<OptionGroup>{
          {"Output",
           {{"output", "PREFIX",
             "traces PREFIX.<npu>.et, groups PREFIX.json; of a system the name of the file; needed"},
            {"force", "", "replace existing files"}}},
          {"Traces",
           {{"npus", "N", "number of NPUs of the system (default: as many as there are traces)"},
            {"groups", "FILE", "communicator file: the members of the process groups that the traces name"}}},
          {"System",
           {{"nodes", "N", "number of nodes like that of the topology (default: 2); 1: no network of NICs"}}}} +
          key_groups(config::Taker::convert)};
  return command;
}

ConvertCommand make_convert(const Arguments& arguments) {
  ConvertCommand command;
  command.inputs = arguments.positionals();
  if (command.inputs.empty()) refuse_usage("orrery convert: no file. Give traces, or the description of a system.");
  command.output = needed(arguments, "convert", "output", "traces/workload");
  command.nodes = arguments.count("nodes");
  read_trace_options(arguments, command);
  return command;
}

}  // namespace

extern const CommandEntry convert_entry;
const CommandEntry convert_entry{convert_subcommand,
                                 [](const Arguments& arguments) { return once(make_convert(arguments), convert); }};

}  // namespace orrery::cli
