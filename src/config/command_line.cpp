#include "orrery/config/command_line.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "astra_sim/astra_sim.hpp"
#include "campaign_command.hpp"
#include "completion.hpp"
#include "keys/keys.hpp"
#include "manual.hpp"
#include "network_commands.hpp"
#include "option_values.hpp"
#include "orrery/base/suggestion.hpp"
#include "orrery/config/units.hpp"
#include "show_graph_command.hpp"
#include "show_plan_command.hpp"
#include "show_scaling_command.hpp"
#include "study_command.hpp"
#include "subcommands.hpp"
#include "synthesis_options.hpp"

namespace orrery::config {
namespace {

constexpr std::string_view commands[] = {"run",     "check",      "explore",   "best",      "campaign", "cluster",
                                         "flows",   "report",     "compare",   "calibrate", "init",     "generate",
                                         "convert", "synthesize", "partition", "show"};
constexpr std::string_view shown[] = {"results", "provenance", "trace",      "topology", "collective", "tables",
                                      "plan",    "graph",      "network",    "flows",    "collisions", "queues",
                                      "kernel",  "scaling",    "timeline",   "keys",     "models",     "systems",
                                      "stacks",  "prices",     "completion", "man"};
constexpr std::string_view formats[] = {"text", "json", "csv"};

/// Returns `text`, with the unit that a number without one has as the value of a flag.
std::string with_unit(std::string text, std::string_view bare_unit) {
  if (!bare_unit.empty() && !text.empty() && text.find_first_not_of("0123456789.") == std::string::npos)
    text += fmt::format(" {}", bare_unit);
  return text;
}

/// Returns the values that the flags of keys have.
std::vector<FlagValue> read_flags(const Arguments& arguments, Taker command) {
  std::vector<FlagValue> values;
  for (const FlagKey& key : flag_keys(command)) {
    const std::string name = key.info->flag->name.string();
    const auto given = arguments.text(name);
    if (!given) continue;
    const std::string text = with_unit(*given, key.info->flag->bare_unit);
    const std::string option = fmt::format("--{}", name);
    read_option(arguments, name, [&] { key.check(text, option); });
    values.push_back({key.info->path, text, option});
  }
  return values;
}

bool any_astra_sim(const Arguments& arguments) {
  return std::ranges::any_of(astra_sim_flags(), [&](const auto& key) { return arguments.has(key->info().path); });
}

AstraSimInputs read_astra_sim_flags(const Arguments& arguments, std::string_view command, bool system_only) {
  AstraSimInputs files;
  std::vector<std::string> missing;
  Configuration unused;
  Faults faults;
  Reading reading{unused, faults, system_only};
  for (const auto& key : astra_sim_flags()) {
    const std::string& name = key->info().path;
    const auto text = arguments.text(name);
    if (text && !text->empty())
      read_option(arguments, name, [&] { key->read(option_value(*text), fmt::format("--{}", name), &files, reading); });
    else if (key->need(&files, reading, true))
      missing.push_back(fmt::format("--{}", name));
  }
  if (!missing.empty())
    refuse_usage(
        fmt::format("orrery {}: {} missing. ASTRA-sim's files are given all together, or CONFIG.yaml instead of them.",
                    command, fmt::join(missing, ", ")));
  return files;
}

Inputs read_inputs(const Arguments& arguments, std::string_view command, bool system_only) {
  Inputs inputs;
  inputs.system_only = system_only;
  inputs.overrides = settings(arguments, command);
  const bool astra_sim = any_astra_sim(arguments);
  if (arguments.positional() && astra_sim)
    refuse_usage(fmt::format("orrery {}: both '{}' and ASTRA-sim's files are given. Give one of them.", command,
                             *arguments.positional()));
  if (!arguments.positional() && !astra_sim)
    refuse_usage(
        fmt::format("orrery {}: no configuration. Give CONFIG.yaml, or ASTRA-sim's files (see 'orrery {} --help').",
                    command, command));
  if (astra_sim) {
    if (!inputs.overrides.empty())
      refuse_usage(fmt::format("orrery {}: --set goes with CONFIG.yaml, not with ASTRA-sim's files.", command));
    inputs.astra_sim = read_astra_sim_flags(arguments, command, system_only);
  } else {
    inputs.file = *arguments.positional();
  }
  return inputs;
}

/// Returns --format as an argument of the Python package.
std::string format_argument(const Arguments& arguments) {
  const std::string format = arguments.text("format").value_or("text");
  if (std::ranges::find(formats, format) == std::end(formats))
    arguments.refuse("format", fmt::format("one of {}", list(formats)));
  return fmt::format("--format={}", format);
}

/// Returns the command with the files after its options. No file is taken for an option.
PackageCommand with_files(PackageCommand command, const Arguments& arguments) {
  command.arguments.emplace_back("--");
  command.arguments.insert(command.arguments.end(), arguments.positionals().begin(), arguments.positionals().end());
  return command;
}

/// Reads the flags of keys. The number of NPUs is a setting: it decides what other keys mean.
void read_flags_of(const Arguments& arguments, Taker command, std::string_view name, Inputs& inputs) {
  constexpr std::string_view size_key = "system.npus";
  inputs.flags = read_flags(arguments, command);
  const auto size = std::ranges::find(inputs.flags, size_key, &FlagValue::key);
  if (size == inputs.flags.end()) return;
  if (inputs.astra_sim)
    refuse_usage(fmt::format("orrery {}: --npus goes with CONFIG.yaml, not with ASTRA-sim's files.", name));
  inputs.overrides.push_back(fmt::format("{}={}", size_key, size->text));
  inputs.flags.erase(size);
}

Command make_run(const Arguments& arguments) {
  RunCommand command{read_inputs(arguments, "run", false)};
  read_flags_of(arguments, Taker::run, "run", command.inputs);
  return command;
}

Command make_check(const Arguments& arguments) {
  CheckCommand command{read_inputs(arguments, "check", false)};
  read_flags_of(arguments, Taker::check, "check", command.inputs);
  return command;
}

Command make_generate(const Arguments& arguments) {
  GenerateCommand command;
  command.file = arguments.positional().value_or("");
  command.dry_run = arguments.flag("dry-run").value_or(false);
  if (!command.dry_run) command.output = needed(arguments, "generate", "output", "traces/workload");
  command.force = arguments.flag("force").value_or(false);
  command.overrides = settings(arguments, "generate");
  for (const FlagValue& flag : read_flags(arguments, Taker::generate))
    command.overrides.push_back(fmt::format("{}={}", flag.key, flag.text));
  return command;
}

/// Returns the step that --step names, if it is given.
std::optional<trace::StepChoice> step_of(const Arguments& arguments) {
  const auto text = arguments.text("step");
  if (!text) return {};
  const auto step = parse_step(*text);
  if (!step) arguments.refuse("step", "last, all, or the number of a step");
  return step;
}

/// Reads what says how the traces of all NPUs are read, and `force`.
void read_trace_options(const Arguments& arguments, ConvertCommand& command) {
  if (const auto groups = arguments.text("groups")) command.groups = *groups;
  command.npus = arguments.count("npus");
  command.recording.step = step_of(arguments).value_or(command.recording.step);
  command.recording.replicate = arguments.count("replicate", 0).value_or(0);
  command.recording.execution_traces = arguments.text("execution-traces").value_or("");
  command.dependencies = choice(arguments, "dependencies", dependency_policies()).value_or(command.dependencies);
  command.force = arguments.flag("force").value_or(false);
}

Command make_convert(const Arguments& arguments) {
  ConvertCommand command;
  command.inputs = arguments.positionals();
  if (command.inputs.empty()) refuse_usage("orrery convert: no file. Give traces, or the description of a system.");
  command.output = needed(arguments, "convert", "output", "traces/workload");
  command.nodes = arguments.count("nodes");
  read_trace_options(arguments, command);
  return command;
}
Command make_synthesize(const Arguments& arguments) {
  SynthesizeCommand command;
  command.traces.inputs = arguments.positionals();
  read_trace_options(arguments, command.traces);
  read_synthesis(arguments, command);
  return command;
}

Command make_partition(const Arguments& arguments) {
  PartitionCommand command;
  command.inputs = read_inputs(arguments, "partition", true);
  const std::string strategy = arguments.text("strategy").value_or("block");
  if (strategy.empty()) arguments.refuse("strategy", "a strategy or the name of a file");
  command.inputs.flags = {{"run.partition", strategy, "--strategy"}};
  needed(arguments, "partition", "ranks", "4");
  const auto ranks = arguments.count("ranks");
  if (!ranks || *ranks > 1U << 30U) arguments.refuse("ranks", "at most 2^30 ranks");
  command.ranks = static_cast<int>(*ranks);
  command.output = needed(arguments, "partition", "output", "partitions/map.4");
  command.force = arguments.flag("force").value_or(false);
  return command;
}

PackageCommand make_report(const Arguments& arguments) {
  if (arguments.positionals().empty()) refuse_usage("orrery report: no file. Give the results of one or more runs.");
  PackageCommand command{{"report", fmt::format("--output={}", arguments.text("output").value_or("report.html"))}};
  if (arguments.flag("force").value_or(false)) command.arguments.emplace_back("--force");
  return with_files(std::move(command), arguments);
}

PackageCommand make_compare(const Arguments& arguments) {
  if (arguments.positionals().size() < 2)
    refuse_usage("orrery compare: fewer than two files. Give the results of the runs that are to be compared.");
  return with_files({{"compare", format_argument(arguments)}}, arguments);
}

PackageCommand make_calibrate(const Arguments& arguments) {
  const auto& words = arguments.positionals();
  constexpr std::pair<std::string_view, std::string_view> subjects[] = {
      {"step", "CONFIG.yaml"}, {"steps", "a CSV of measured steps"}, {"collectives", "what nccl-tests printed"}};
  const auto subject = std::ranges::find(subjects, words.empty() ? std::string_view() : std::string_view(words.front()),
                                         [](const auto& each) { return each.first; });
  if (subject == std::end(subjects)) refuse_usage("orrery calibrate: of what? Give step, steps or collectives.");
  if (words.size() < 2)
    refuse_usage(fmt::format("orrery calibrate {}: no file. Give {}.", words.front(), subject->second));
  if (words.front() == "step" && !arguments.has("measured"))
    refuse_usage(
        "orrery calibrate step: --measured missing. Give the measured time of a step, such as --measured 1.42s.");
  if (words.front() == "collectives" && !arguments.has("library"))
    refuse_usage("orrery calibrate collectives: --library missing. Give the library to correct, such as nccl-h100.");
  PackageCommand command{{words.front()}, "calibrate"};
  for (const std::string_view option : {"measured", "key", "library", "kind", "fabric", "nic", "stack", "output"})
    if (const auto text = arguments.text(option)) command.arguments.push_back(fmt::format("--{}={}", option, *text));
  command.arguments.emplace_back("--");
  command.arguments.insert(command.arguments.end(), words.begin() + 1, words.end());
  return command;
}

PackageCommand make_show_results(const Arguments& arguments) {
  if (!arguments.positional()) refuse_usage("orrery show results: no file. Give the results of a run.");
  return with_files({{"show", format_argument(arguments)}}, arguments);
}

PackageCommand make_show_provenance(const Arguments& arguments) {
  if (!arguments.positional())
    refuse_usage("orrery show provenance: no file. Give CONFIG.yaml or the results of a run.");
  return with_files({{"provenance"}, "calibrate"}, arguments);
}

Command make_show_trace(const Arguments& arguments) {
  constexpr std::pair<std::string_view, TraceForm> forms[] = {
      {"json", TraceForm::json}, {"nodes", TraceForm::nodes}, {"dot", TraceForm::dot}, {"graphml", TraceForm::graphml}};
  ShowTraceCommand command;
  command.files.assign(arguments.positionals().begin(), arguments.positionals().end());
  if (command.files.empty()) refuse_usage("orrery show trace: no file. Give an execution trace.");
  command.dependencies = choice(arguments, "dependencies", dependency_policies()).value_or(command.dependencies);
  command.step = step_of(arguments).value_or(command.step);
  std::string_view given;
  for (const auto& [name, form] : forms) {
    if (!arguments.flag(name).value_or(false)) continue;
    if (!given.empty())
      refuse_usage(fmt::format("orrery show trace: both --{} and --{} are given. Give one of them.", given, name));
    given = name;
    command.form = form;
  }
  if (command.files.size() > 1 && command.form != TraceForm::text && command.form != TraceForm::json)
    refuse_usage(
        fmt::format("orrery show trace: --{} is given with {} files. Give one file.", given, command.files.size()));
  return command;
}

Command make_show_topology(const Arguments& arguments) {
  ShowTopologyCommand command;
  command.inputs = read_inputs(arguments, "show topology", true);
  read_flags_of(arguments, Taker::show_topology, "show topology", command.inputs);
  command.json = arguments.flag("json").value_or(false);
  return command;
}

Command make_show_network(const Arguments& arguments) {
  ShowNetworkCommand command;
  command.inputs = read_inputs(arguments, "show network", true);
  read_flags_of(arguments, Taker::show_topology, "show network", command.inputs);
  command.seed = arguments.count("seed", 0).value_or(command.seed);
  command.pairs = arguments.count("pairs").value_or(command.pairs);
  command.json = arguments.flag("json").value_or(false);
  return command;
}

Command make_show_collective(const Arguments& arguments) {
  ShowCollectiveCommand command;
  command.inputs = read_inputs(arguments, "show collective", true);
  needed(arguments, "show collective", "kind", "all-reduce");
  command.inputs.flags = read_flags(arguments, Taker::show_collective);
  command.kind = *choice(arguments, "kind", collective_kinds());
  const bool is_barrier = command.kind == collective::Kind::barrier;
  command.is_table = arguments.flag("table").value_or(false);
  if (command.is_table && (is_barrier || arguments.has("bytes")))
    refuse_usage(fmt::format("orrery show collective: both --table and {} are given. A table has sizes of its own.",
                             is_barrier ? "a barrier, which has no size," : "--bytes"));
  if (!command.is_table && (!is_barrier || arguments.has("bytes"))) {
    const std::string text = needed(arguments, "show collective", "bytes", "\"64 MiB\", or --table for all sizes");
    read_option(arguments, "bytes", [&] { command.bytes = parse_bytes(text); });
  }
  command.npus = arguments.count("npus");
  command.at_once = arguments.count("at-once").value_or(1);
  if (command.at_once == 0)
    refuse_usage("orrery show collective: --at-once 0 is given. Give the collectives that an NPU is in, 1 or more.");
  command.form = table_form(arguments, "show collective");
  if (command.form == TableForm::csv && !command.is_table)
    refuse_usage("orrery show collective: --csv is given without --table, which it prints.");
  return command;
}

Command make_show_tables(const Arguments& arguments) {
  ShowTablesCommand command;
  if (!arguments.positional())
    refuse_usage("orrery show tables: no file. Give a CONFIG.yaml with a DLRM as workload.model.");
  command.file = *arguments.positional();
  command.overrides = settings(arguments, "show tables");
  command.json = arguments.flag("json").value_or(false);
  return command;
}

Command make_show_kernel(const Arguments& arguments) {
  ShowKernelCommand command;
  if (!arguments.positional()) refuse_usage("orrery show kernel: no file. Give the results of a run.");
  command.file = *arguments.positional();
  command.json = arguments.flag("json").value_or(false);
  return command;
}

Command make_show_timeline(const Arguments& arguments) {
  ShowTimelineCommand command;
  if (!arguments.positional())
    refuse_usage("orrery show timeline: no file. Give the results of a run with --timeline.");
  command.file = *arguments.positional();
  command.chrome = needed(arguments, "show timeline", "chrome", "timeline.json.gz");
  command.npus = arguments.text("npus");
  command.force = arguments.flag("force").value_or(false);
  return command;
}

Command make_show_keys(const Arguments& arguments) {
  ShowKeysCommand command;
  command.below = arguments.positional().value_or("");
  const bool markdown = arguments.flag("markdown").value_or(false);
  const bool json = arguments.flag("json").value_or(false);
  if (markdown && json) refuse_usage("orrery show keys: both --markdown and --json are given. Give one of them.");
  command.form = markdown ? KeyForm::markdown : json ? KeyForm::json : KeyForm::text;
  if (!arguments.flag("schema").value_or(false)) return command;
  if (markdown || json || !command.below.empty())
    refuse_usage("orrery show keys: --schema is given with something else. It stands alone: it is the whole schema.");
  command.form = KeyForm::schema;
  return command;
}

template <ShowPresetsCommand::Kind kind>
Command make_show_presets(const Arguments& arguments) {
  return ShowPresetsCommand{kind, arguments.flag("json").value_or(false)};
}

Command make_init(const Arguments& arguments) {
  InitCommand command;
  command.model = needed(arguments, "init", "model", "llama3-8b");
  command.system = needed(arguments, "init", "system", "dgx-h100-superpod");
  command.stack = arguments.text("stack").value_or("");
  needed(arguments, "init", "npus", "128");
  command.npus = *arguments.count("npus");
  command.batch = arguments.count("batch");
  command.output = arguments.text("output").value_or("CONFIG.yaml");
  command.force = arguments.flag("force").value_or(false);
  return command;
}

Command make_show_completion(const Arguments& arguments) {
  if (!arguments.positional()) refuse_usage("orrery show completion: for which shell? Give bash, zsh or fish.");
  return HelpCommand{completion(*arguments.positional()), 0};
}

Command make_show_man(const Arguments& arguments) {
  return HelpCommand{manual(arguments.positional().value_or("")), 0};
}

template <class Maker>
Command make(const Subcommand& subcommand, std::span<const char* const> rest, Maker maker) {
  const Arguments arguments(subcommand, rest);
  if (arguments.help()) return HelpCommand{help_text(subcommand), 0};
  return maker(arguments);
}

Command show(std::span<const char* const> rest) {
  const std::string_view what = rest.empty() ? std::string_view("") : rest[0];
  if (what.empty()) refuse_usage(fmt::format("orrery show: of what? Give {}.", list(shown)));
  if (what == "--help" || what == "-h" || what == "help") return HelpCommand{show_overview(), 0};
  rest = rest.subspan(1);
  if (what == "results") return make(show_results_subcommand(), rest, make_show_results);
  if (what == "provenance") return make(show_provenance_subcommand(), rest, make_show_provenance);
  if (what == "trace") return make(show_trace_subcommand(), rest, make_show_trace);
  if (what == "topology") return make(show_topology_subcommand(), rest, make_show_topology);
  if (what == "collective") return make(show_collective_subcommand(), rest, make_show_collective);
  if (what == "tables") return make(show_tables_subcommand(), rest, make_show_tables);
  if (what == "plan") return make(show_plan_subcommand(), rest, make_show_plan);
  if (what == "graph") return make(show_graph_subcommand(), rest, make_show_graph);
  if (what == "flows") return make(show_flows_subcommand(), rest, make_show_flows);
  if (what == "collisions") return make(show_collisions_subcommand(), rest, make_show_collisions);
  if (what == "queues") return make(show_queues_subcommand(), rest, make_show_queues);
  if (what == "network") return make(show_network_subcommand(), rest, make_show_network);
  if (what == "kernel") return make(show_kernel_subcommand(), rest, make_show_kernel);
  if (what == "scaling") return make(show_scaling_subcommand(), rest, make_show_scaling);
  if (what == "timeline") return make(show_timeline_subcommand(), rest, make_show_timeline);
  if (what == "keys") return make(show_keys_subcommand(), rest, make_show_keys);
  using PresetKind = ShowPresetsCommand::Kind;
  if (what == "models") return make(show_models_subcommand(), rest, make_show_presets<PresetKind::models>);
  if (what == "systems") return make(show_systems_subcommand(), rest, make_show_presets<PresetKind::systems>);
  if (what == "stacks") return make(show_stacks_subcommand(), rest, make_show_presets<PresetKind::stacks>);
  if (what == "prices") return make(show_prices_subcommand(), rest, make_show_presets<PresetKind::prices>);
  if (what == "completion") return make(show_completion_subcommand(), rest, make_show_completion);
  if (what == "man") return make(show_man_subcommand(), rest, make_show_man);
  refuse_usage(fmt::format("orrery show: unknown '{}'. {}", what, suggestion(what, shown)));
}

}  // namespace

Command parse_command_line(std::span<const char* const> arguments) {
  if (arguments.size() < 2) return HelpCommand{overview(), 2};
  const std::string_view first = arguments[1];
  const auto rest = arguments.subspan(2);
  if (first == "help" && !rest.empty()) {  // "help run" is "run --help"
    std::vector<const char*> asked = {arguments[0]};
    asked.insert(asked.end(), rest.begin(), rest.end());
    asked.push_back("--help");
    return parse_command_line(asked);
  }
  if (first == "--help" || first == "-h" || first == "help") return HelpCommand{overview(), 0};
  if (first == "--version") return VersionCommand{};
  if (first == "run") return make(run_subcommand(), rest, make_run);
  if (first == "check") return make(check_subcommand(), rest, make_check);
  if (first == "explore") return make(explore_subcommand(), rest, make_explore);
  if (first == "best") return make(best_subcommand(), rest, make_best);
  if (first == "campaign") return make(campaign_subcommand(), rest, make_campaign);
  if (first == "cluster") return make(cluster_subcommand(), rest, make_cluster);
  if (first == "flows") return make(flows_subcommand(), rest, make_flows);
  if (first == "report") return make(report_subcommand(), rest, make_report);
  if (first == "compare") return make(compare_subcommand(), rest, make_compare);
  if (first == "calibrate") return make(calibrate_subcommand(), rest, make_calibrate);
  if (first == "init") return make(init_subcommand(), rest, make_init);
  if (first == "generate") return make(generate_subcommand(), rest, make_generate);
  if (first == "convert") return make(convert_subcommand(), rest, make_convert);
  if (first == "synthesize") return make(synthesize_subcommand(), rest, make_synthesize);
  if (first == "partition") return make(partition_subcommand(), rest, make_partition);
  if (first == "show") return show(rest);
  if (first.starts_with('-'))
    refuse_usage(fmt::format("unknown option '{}' before a command. See 'orrery --help'.", first));
  refuse_usage(fmt::format("unknown command '{}'. {}", first, suggestion(first, commands)));
}

}  // namespace orrery::config
