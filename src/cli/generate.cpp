#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "logged_job.hpp"
#include "orrery/config/precision_name.hpp"
#include "orrery/config/read.hpp"
#include "orrery/workload/figures.hpp"
#include "orrery/workload/generator.hpp"

#include "command.hpp"
#include "config_options.hpp"
#include "option_values.hpp"
#include "options.hpp"

namespace orrery::cli {
namespace {

void generate(const GenerateCommand& command) {
  honour_signals();
  const config::Workload workload = config::read_generation(command.file, command.overrides);
  const workload::Description& description = *workload.generated;
  if (const auto warning = description.parallel.pipeline_warning()) spdlog::warn("{}", *warning);
  fmt::print("{}", workload::report(description, workload::figures(description)));
  if (command.dry_run) return;
  const auto precision = description.parallel.precision;
  const bool is_usual = precision == workload::Precision::bf16;  // traces that name no precision are of this one
  const std::string_view named = is_usual ? "" : config::name_of(precision);
  workload::write_traces(description, command.output, command.force, workload.estimates.get(), named);
  fmt::print("traces in {0}.<npu>.et, groups in {0}.json\n", command.output.string());
  if (!is_usual) fmt::print("they run with workload.precision: {}\n", named);
}

const Subcommand& generate_subcommand() {
  static const Subcommand command{
      "generate", "Write the traces of one training step of a model, and say what it comes to.", "[CONFIG.yaml]",
      "  orrery generate --tp 4 --pp 4 --dp 4 --layers 32 --output traces/workload\n"
      "  orrery generate configs/scale/gpt3-175b-1024.yaml --dry-run",
      std::vector<OptionGroup>{
          {"Output",
           {{"output", "PREFIX", "traces PREFIX.<npu>.et, groups PREFIX.json; needed but for --dry-run"},
            {"force", "", "replace existing files"},
            {"dry-run", "", "print parameters, FLOPs, memory and communication, write nothing"}}}} +
          key_groups(config::Taker::generate) + std::vector{own_inputs()}};
  return command;
}

GenerateCommand make_generate(const Arguments& arguments) {
  GenerateCommand command;
  command.file = arguments.positional().value_or("");
  command.dry_run = arguments.flag("dry-run").value_or(false);
  if (!command.dry_run) command.output = needed(arguments, "generate", "output", "traces/workload");
  command.force = arguments.flag("force").value_or(false);
  command.overrides = settings(arguments, "generate");
  for (const config::FlagValue& flag : read_flags(arguments, config::Taker::generate))
    command.overrides.push_back(fmt::format("{}={}", flag.key, flag.text));
  return command;
}

}  // namespace

extern const CommandEntry generate_entry;
const CommandEntry generate_entry{generate_subcommand,
                                  [](const Arguments& arguments) { return once(make_generate(arguments), generate); }};

}  // namespace orrery::cli
