#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "command.hpp"
#include "option_values.hpp"
#include "orrery/base/quantity_text.hpp"
#include "orrery/show/commands.hpp"

namespace orrery::cli {
namespace {

/// Reads "1 MiB", or "1KiB..1GiB".
void read_sizes(const Arguments& arguments, const std::string& text, show::ShowPlanCommand& command) {
  read_option(arguments, "bytes", [&] {
    const std::size_t dots = text.find("..");
    command.smallest = parse_bytes(text.substr(0, dots));
    command.largest = dots == std::string::npos ? command.smallest : parse_bytes(text.substr(dots + 2));
  });
  if (*command.largest < *command.smallest || *command.smallest == Bytes(0))
    arguments.refuse_as("bytes",
                        fmt::format("found '{}'; expected 1 byte or more, or FROM..TO, such as 1KiB..1GiB", text));
}

const Subcommand& show_plan_subcommand() {
  static const Subcommand command{
      "show plan",
      "Print what GPUs execute for a collective, whether it is right, and how long it takes.",
      "FILE",
      "  orrery show plan allreduce.json\n"
      "  orrery show plan allreduce.json --bytes 1KiB..1GiB --profile h100",
      {{"Times",
        {{"bytes", "SIZE", "of the whole data, as \"1 MiB\", or FROM..TO for sizes that double, as 1KiB..1GiB"},
         {"profile", "NAME", "the GPU, such as h100 (default: the first one of docs/gpu.md)"},
         {"system", "FILE",
          "a CONFIG.yaml with system.gpu, whose GPUs and network are simulated in place of a profile"},
         {"set", "KEY=VALUE", "replace a value of that file, as system.gpu.unroll=4; repeatable", true},
         {"bursts", "N", "simulate an operation in at most N pieces; 0: line by line (default: 256)"}}},
       {"Output",
        {{"json", "", "print JSON"},
         {"csv", "", "print the times as CSV"},
         {"operations", "", "print each operation of a message of one size as JSON in a line"}}}}};
  return command;
}

show::ShowPlanCommand make_show_plan(const Arguments& arguments) {
  show::ShowPlanCommand command;
  if (!arguments.positional()) refuse_usage("orrery show plan: no file. Give an execution plan of MSCCL++.");
  command.file = *arguments.positional();
  if (const auto text = arguments.text("bytes")) read_sizes(arguments, *text, command);
  command.profile = arguments.text("profile").value_or("");
  if (const auto system = arguments.text("system"))
    command.system = config::Inputs{.file = *system, .overrides = arguments.texts("set"), .system_only = true};
  if (command.system && !command.profile.empty())
    refuse_usage(
        "orrery show plan: both --system and --profile are given. The system says what its GPUs are: give one of "
        "them.");
  if (!command.system && arguments.has("set"))
    refuse_usage("orrery show plan: --set is given without --system, whose values it replaces.");
  command.bursts = arguments.count("bursts", 0);
  constexpr std::pair<std::string_view, show::ShowPlanCommand::Form> forms[] = {
      {"json", show::ShowPlanCommand::Form::json},
      {"csv", show::ShowPlanCommand::Form::csv},
      {"operations", show::ShowPlanCommand::Form::operations}};
  std::string_view given;
  for (const auto& [name, form] : forms) {
    if (!arguments.flag(name).value_or(false)) continue;
    if (!given.empty())
      refuse_usage(fmt::format("orrery show plan: both --{} and --{} are given. Give one of them.", given, name));
    given = name;
    command.form = form;
  }
  const bool is_range = command.smallest != command.largest;
  if (command.form == show::ShowPlanCommand::Form::operations && (is_range || !command.smallest))
    refuse_usage(
        "orrery show plan: --operations is given without one size. Give --bytes too, such as --bytes \"1 MiB\".");
  if (command.form == show::ShowPlanCommand::Form::csv && !command.smallest)
    refuse_usage("orrery show plan: --csv is given without --bytes. Give sizes too, such as --bytes 1KiB..1GiB.");
  return command;
}

}  // namespace

extern const CommandEntry show_plan_entry;
const CommandEntry show_plan_entry{
    show_plan_subcommand, [](const Arguments& arguments) { return once(make_show_plan(arguments), show::show_plan); }};

}  // namespace orrery::cli
