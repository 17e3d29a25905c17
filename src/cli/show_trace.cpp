#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "command.hpp"
#include "config_options.hpp"
#include "option_values.hpp"
#include "orrery/show/commands.hpp"

namespace orrery::cli {
namespace {

const Subcommand& show_trace_subcommand() {
  static const Subcommand command{
      "show trace", "Print what execution traces hold.", "FILE ...",
      "  orrery show trace traces/workload.0.et\n"
      "  orrery show trace traces/workload.0.et --dot | dot -Tsvg > workload.svg",
      key_groups(config::Taker::show_trace) +
          std::vector<OptionGroup>{
              {"Output",
               {json_option(),
                {"nodes", "", "print each node as JSON in a line, in the words of Chakra's schema"},
                {"dot", "", "print the graph for Graphviz"},
                {"graphml", "", "print the graph as GraphML, for networkx and others"}}}}};
  return command;
}

show::ShowTraceCommand make_show_trace(const Arguments& arguments) {
  constexpr std::pair<std::string_view, show::TraceForm> forms[] = {{"json", show::TraceForm::json},
                                                                    {"nodes", show::TraceForm::nodes},
                                                                    {"dot", show::TraceForm::dot},
                                                                    {"graphml", show::TraceForm::graphml}};
  show::ShowTraceCommand command;
  command.files.assign(arguments.positionals().begin(), arguments.positionals().end());
  if (command.files.empty()) refuse_usage("orrery show trace: no file. Give an execution trace.");
  command.dependencies = dependencies_of(arguments).value_or(command.dependencies);
  command.step = step_of(arguments).value_or(command.step);
  std::string_view given;
  for (const auto& [name, form] : forms) {
    if (!arguments.flag(name).value_or(false)) continue;
    if (!given.empty())
      refuse_usage(fmt::format("orrery show trace: both --{} and --{} are given. Give one of them.", given, name));
    given = name;
    command.form = form;
  }
  if (command.files.size() > 1 && command.form != show::TraceForm::text && command.form != show::TraceForm::json)
    refuse_usage(
        fmt::format("orrery show trace: --{} is given with {} files. Give one file.", given, command.files.size()));
  return command;
}

}  // namespace

extern const CommandEntry show_trace_entry;
const CommandEntry show_trace_entry{show_trace_subcommand, [](const Arguments& arguments) {
                                      return once(make_show_trace(arguments), show::show_trace);
                                    }};

}  // namespace orrery::cli
