#include "orrery/config/command_line.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <limits>

#include "formats.hpp"
#include "orrery/config/units.hpp"
#include "subcommands.hpp"
#include "suggestion.hpp"

namespace orrery::config {
namespace {

constexpr std::string_view commands[] = {"run", "check", "generate", "partition", "show"};
constexpr std::string_view shown[] = {"trace", "topology", "collective", "kernel", "timeline"};

[[noreturn]] void usage(const std::string& text) { throw Error(ErrorCode::usage, text); }

template <class T>
std::optional<T> choice(const Arguments& arguments, std::string_view name,
                        const std::vector<std::pair<std::string_view, T>>& choices) {
  const auto text = arguments.text(name);
  if (!text) return {};
  std::vector<std::string_view> words;
  for (const auto& [word, meaning] : choices) {
    if (word == *text) return meaning;
    words.push_back(word);
  }
  arguments.refuse(name, list(words));
}

bool any_astra_sim(const Arguments& arguments) {
  for (const auto& option : run_subcommand().groups.back().options)
    if (arguments.has(option.name)) return true;
  return false;
}

AstraSimInputs read_astra_sim_flags(const Arguments& arguments, std::string_view command, bool system_only) {
  AstraSimInputs files;
  std::vector<std::string> missing;
  const auto file = [&](std::string_view name, bool needed) {
    const auto text = arguments.text(name);
    if (needed && (!text || text->empty())) missing.push_back(fmt::format("--{}", name));
    return text.value_or("");
  };
  files.workload = file("workload-configuration", !system_only);
  files.system = file("system-configuration", true);
  files.network = file("network-configuration", true);
  files.remote_memory = file("remote-memory-configuration", !system_only);
  if (!missing.empty())
    usage(
        fmt::format("orrery {}: {} missing. ASTRA-sim's files are given all together, or CONFIG.yaml instead of them.",
                    command, fmt::join(missing, ", ")));
  if (const auto groups = file("comm-group-configuration", false); groups != "empty") files.groups = groups;
  files.num_queues_per_dim = arguments.count("num-queues-per-dim").value_or(1);
  files.injection_scale = arguments.number("injection-scale").value_or(1);
  files.comm_scale = arguments.number("comm-scale").value_or(1);
  files.compute_scale = arguments.number("compute-scale").value_or(1);
  files.rendezvous = arguments.flag("rendezvous-protocol").value_or(false);
  for (const std::string_view name : {"logging-folder", "logging-configuration"})
    if (arguments.has(name) && arguments.text(name) != "empty") files.ignored.emplace_back(name);
  return files;
}

/// `30` or `500 ms`.
std::optional<double> seconds(const Arguments& arguments, std::string_view option) {
  const auto text = arguments.text(option);
  if (!text) return {};
  const bool bare = text->find_first_not_of("0123456789.") == std::string::npos;
  try {
    const double value = bare ? parse_number(*text) : parse_seconds(*text);
    if (value > 0) return value;
  } catch (const Error&) {
  }
  arguments.refuse(option, "seconds, more than 0, such as 30");
}

/// Of a byte or more.
std::optional<Bytes> size(const Arguments& arguments, std::string_view option) {
  const auto text = arguments.text(option);
  if (!text) return {};
  try {
    if (const Bytes bytes = parse_bytes(*text); bytes > Bytes(0)) return bytes;
  } catch (const Error&) {
  }
  arguments.refuse(option, "a size, more than 0, such as '80 GB'");
}

/// A whole number from `least` on.
std::optional<std::uint32_t> whole_number(const Arguments& arguments, std::string_view option, std::uint32_t least) {
  const auto text = arguments.text(option);
  if (!text) return {};
  std::uint32_t value = 0;
  const auto [end, failure] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (failure == std::errc::result_out_of_range)
    arguments.refuse(option,
                     fmt::format("a whole number from {} to {}", least, std::numeric_limits<std::uint32_t>::max()));
  if (failure != std::errc() || end != text->data() + text->size() || value < least)
    arguments.refuse(option, fmt::format("a whole number from {} on", least));
  return value;
}

/// A share from 0 to below 1.
std::optional<double> share(const Arguments& arguments, std::string_view option) {
  const auto text = arguments.text(option);
  if (!text) return {};
  try {
    const double value = parse_number(*text);
    if (value >= 0 && value < 1) return value;
  } catch (const Error&) {
  }
  arguments.refuse(option, "a share from 0 to below 1, such as 0.05");
}

Flags read_flags(const Arguments& arguments) {
  Flags flags;
  if (const auto output = arguments.text("output")) flags.output = *output;
  if (flags.output && flags.output->empty()) arguments.refuse("output", "the name of a file");
  flags.force = arguments.flag("force");
  flags.partition = arguments.text("partition");
  if (flags.partition && flags.partition->empty()) arguments.refuse("partition", "a strategy or the name of a file");
  flags.timeline = arguments.flag("timeline");
  flags.record_iterations = whole_number(arguments, "record-iterations", 0);
  flags.fold = arguments.flag("fold");
  flags.network = choice(arguments, "network", network_models());
  flags.memory = choice(arguments, "memory", excess_policies());
  flags.local_memory_size = size(arguments, "local-memory-size");
  flags.progress = choice(arguments, "progress", progress_kinds());
  flags.progress_interval_s = seconds(arguments, "progress-interval");
  flags.max_walltime_s = seconds(arguments, "max-walltime");
  flags.iterations = whole_number(arguments, "iterations", 1);
  flags.compute_noise = share(arguments, "noise");
  flags.noise_seed = whole_number(arguments, "noise-seed", 0);
  flags.quiet = arguments.flag("quiet");
  flags.print_npus = arguments.flag("print-npus");
  flags.dependencies = choice(arguments, "dependencies", dependency_policies());
  flags.streams = choice(arguments, "streams", stream_policies());
  return flags;
}

std::vector<std::string> settings(const Arguments& arguments, std::string_view command) {
  auto overrides = arguments.texts("set");
  for (const auto& setting : overrides)
    if (setting.find('=') == std::string::npos || setting.starts_with('='))
      usage(fmt::format("orrery {}: --set {}: expected KEY.PATH=VALUE, such as --set system.collectives.chunks=8.",
                        command, setting));
  return overrides;
}

Inputs read_inputs(const Arguments& arguments, std::string_view command, bool system_only) {
  Inputs inputs;
  inputs.system_only = system_only;
  inputs.overrides = settings(arguments, command);
  const bool astra_sim = any_astra_sim(arguments);
  if (arguments.positional() && astra_sim)
    usage(fmt::format("orrery {}: both '{}' and ASTRA-sim's files are given. Give one of them.", command,
                      *arguments.positional()));
  if (!arguments.positional() && !astra_sim)
    usage(fmt::format("orrery {}: no configuration. Give CONFIG.yaml, or ASTRA-sim's files (see 'orrery {} --help').",
                      command, command));
  if (astra_sim) {
    if (!inputs.overrides.empty())
      usage(fmt::format("orrery {}: --set goes with CONFIG.yaml, not with ASTRA-sim's files.", command));
    inputs.astra_sim = read_astra_sim_flags(arguments, command, system_only);
  } else {
    inputs.file = *arguments.positional();
  }
  return inputs;
}

std::string needed(const Arguments& arguments, std::string_view command, std::string_view name,
                   std::string_view example) {
  const auto text = arguments.text(name);
  if (!text || text->empty())
    usage(fmt::format("orrery {}: --{} is missing, such as --{} {}.", command, name, name, example));
  return *text;
}

Command make_run(const Arguments& arguments) {
  RunCommand command{read_inputs(arguments, "run", false)};
  command.inputs.flags = read_flags(arguments);
  return command;
}

Command make_check(const Arguments& arguments) {
  CheckCommand command{read_inputs(arguments, "check", false)};
  command.inputs.flags = read_flags(arguments);
  return command;
}

Command make_generate(const Arguments& arguments) {
  GenerateCommand command;
  command.file = arguments.positional().value_or("");
  command.dry_run = arguments.flag("dry-run").value_or(false);
  if (!command.dry_run) command.output = needed(arguments, "generate", "output", "traces/workload");
  command.force = arguments.flag("force").value_or(false);
  command.overrides = settings(arguments, "generate");
  for (const auto& [flag, key] : generate_keys())
    if (const auto count = arguments.count(flag))
      command.overrides.push_back(fmt::format("workload.{}={}", key, *count));
  return command;
}

Command make_partition(const Arguments& arguments) {
  PartitionCommand command;
  command.inputs = read_inputs(arguments, "partition", true);
  command.inputs.flags.partition = arguments.text("strategy").value_or("block");
  command.inputs.flags.partition_option = "--strategy";
  if (command.inputs.flags.partition->empty()) arguments.refuse("strategy", "a strategy or the name of a file");
  needed(arguments, "partition", "ranks", "4");
  const auto ranks = arguments.count("ranks");
  if (!ranks || *ranks > 1U << 30U) arguments.refuse("ranks", "at most 2^30 ranks");
  command.ranks = static_cast<int>(*ranks);
  command.output = needed(arguments, "partition", "output", "partitions/map.4");
  command.force = arguments.flag("force").value_or(false);
  return command;
}

Command make_show_trace(const Arguments& arguments) {
  ShowTraceCommand command;
  if (!arguments.positional()) usage("orrery show trace: no file. Give a Chakra execution trace.");
  command.file = *arguments.positional();
  command.dependencies = choice(arguments, "dependencies", dependency_policies()).value_or(command.dependencies);
  command.json = arguments.flag("json").value_or(false);
  return command;
}

Command make_show_topology(const Arguments& arguments) {
  ShowTopologyCommand command;
  command.inputs = read_inputs(arguments, "show topology", true);
  command.inputs.flags.network = choice(arguments, "network", network_models());
  command.json = arguments.flag("json").value_or(false);
  return command;
}

Command make_show_collective(const Arguments& arguments) {
  using collective::Kind;
  static const std::vector<std::pair<std::string_view, Kind>> kinds = {
      {"all-reduce", Kind::all_reduce}, {"all-gather", Kind::all_gather}, {"reduce-scatter", Kind::reduce_scatter},
      {"all-to-all", Kind::all_to_all}, {"broadcast", Kind::broadcast},   {"reduce", Kind::reduce},
      {"gather", Kind::gather},         {"scatter", Kind::scatter},       {"barrier", Kind::barrier}};
  ShowCollectiveCommand command;
  command.inputs = read_inputs(arguments, "show collective", true);
  needed(arguments, "show collective", "kind", "all-reduce");
  command.kind = *choice(arguments, "kind", kinds);
  if (command.kind != Kind::barrier || arguments.has("bytes")) {
    const std::string text = needed(arguments, "show collective", "bytes", "\"64 MiB\"");
    try {
      command.bytes = parse_bytes(text);
    } catch (const Error& error) {
      usage(fmt::format("orrery show collective: --bytes: {}", error.what()));
    }
  }
  command.npus = arguments.count("npus");
  command.json = arguments.flag("json").value_or(false);
  return command;
}

Command make_show_kernel(const Arguments& arguments) {
  ShowKernelCommand command;
  if (!arguments.positional()) usage("orrery show kernel: no file. Give the results of a run.");
  command.file = *arguments.positional();
  command.json = arguments.flag("json").value_or(false);
  return command;
}

Command make_show_timeline(const Arguments& arguments) {
  ShowTimelineCommand command;
  if (!arguments.positional()) usage("orrery show timeline: no file. Give the results of a run with --timeline.");
  command.file = *arguments.positional();
  command.chrome = needed(arguments, "show timeline", "chrome", "timeline.json.gz");
  command.npus = arguments.text("npus");
  command.force = arguments.flag("force").value_or(false);
  return command;
}

using Maker = Command (*)(const Arguments&);

Command make(const Subcommand& subcommand, std::span<const char* const> rest, Maker maker) {
  const Arguments arguments(subcommand, rest);
  if (arguments.help()) return HelpCommand{help_text(subcommand), 0};
  return maker(arguments);
}

Command show(std::span<const char* const> rest) {
  const std::string_view what = rest.empty() ? std::string_view("") : rest[0];
  if (what.empty()) usage(fmt::format("orrery show: of what? Give {}.", list(shown)));
  if (what == "--help" || what == "-h" || what == "help") return HelpCommand{show_overview(), 0};
  rest = rest.subspan(1);
  if (what == "trace") return make(show_trace_subcommand(), rest, make_show_trace);
  if (what == "topology") return make(show_topology_subcommand(), rest, make_show_topology);
  if (what == "collective") return make(show_collective_subcommand(), rest, make_show_collective);
  if (what == "kernel") return make(show_kernel_subcommand(), rest, make_show_kernel);
  if (what == "timeline") return make(show_timeline_subcommand(), rest, make_show_timeline);
  usage(fmt::format("orrery show: unknown '{}'. {}", what, suggestion(what, shown)));
}

}  // namespace

Command parse_command_line(std::span<const char* const> arguments) {
  if (arguments.size() < 2) return HelpCommand{overview(), 2};
  const std::string_view first = arguments[1];
  const auto rest = arguments.subspan(2);
  if (first == "--help" || first == "-h" || first == "help") return HelpCommand{overview(), 0};
  if (first == "--version") return VersionCommand{};
  if (first == "run") return make(run_subcommand(), rest, make_run);
  if (first == "check") return make(check_subcommand(), rest, make_check);
  if (first == "generate") return make(generate_subcommand(), rest, make_generate);
  if (first == "partition") return make(partition_subcommand(), rest, make_partition);
  if (first == "show") return show(rest);
  if (first.starts_with('-')) usage(fmt::format("unknown option '{}' before a command. See 'orrery --help'.", first));
  usage(fmt::format("unknown command '{}'. {}", first, suggestion(first, commands)));
}

}  // namespace orrery::config
