#include "keys.hpp"
#include "orrery/partition/strategy.hpp"

namespace orrery::config {
namespace {

Flag run_flag(Text name, std::string_view argument = {}) {
  return {.name = name, .heading = Heading::output, .argument = argument, .commands = {Taker::run}};
}

/// Of a wall-clock time, which the command line gives in seconds.
Flag seconds_flag(Text name) {
  Flag flag = run_flag(name, "SECONDS");
  flag.bare_unit = "s";
  return flag;
}

using partition::PartitionOptions;

/// Returns the names of the strategies, each with one line of help.
std::vector<WordInfo> strategy_words() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> texts;
    for (const auto& strategy : partition::named_strategies()) texts.push_back(partition::usage(strategy));
    return texts;
  }();
  std::vector<WordInfo> words;
  for (std::size_t i = 0; i < names.size(); ++i) words.push_back({names[i], partition::named_strategies()[i].help});
  return words;
}

/// Returns the type of strategies, which are words or the names of files.
TypeInfo partition_type() {
  TypeInfo type{"word or file", {}, "-", {}, strategy_words()};
  for (const WordInfo& word : type.words) type.range += fmt::format("{}{}", type.range.empty() ? "" : ", ", word.text);
  type.range += " or the file of a rank map";
  type.expected = type.range;
  return type;
}

/// A quoted text is the name of a file, whatever it says.
Handling<Configuration> partition_choice() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading&) {
            if (value.kind == Value::Kind::scalar && !value.quoted && !value.text.empty())
              if (const PartitionOptions named(value.text, value.place(path)); !named.is_rank_map()) {
                target.run.partition = named;
                return;
              }
            target.run.partition = PartitionOptions::rank_map(as_path(value, path));
          },
          [](const Configuration& c, Writer& writer) {
            const auto& options = c.run.partition;
            writer.put("run.partition",
                       options.is_rank_map() ? in_quotes(normal_path(options.parameter())) : options.text());
          },
          [](const Configuration& a, const Configuration& b) {
            const auto &x = a.run.partition, &y = b.run.partition;
            return x == y ||
                   (x.is_rank_map() && y.is_rank_map() && normal_path(x.parameter()) == normal_path(y.parameter()));
          }};
}

void add_output_file(Keys<Configuration>& keys) {
  keys.add(
      {.path = "run.output",
       .help = "file that the results go to",
       .example = "results.h5",
       .otherwise = Default::described("results.h5 in the current folder"),
       .flag = run_flag("output", "FILE")},
      file(), [](auto& c) -> auto& { return c.run.output; });
  keys.add(
      {.path = "run.force",
       .help = "replace an existing file; results of an interrupted run are replaced without it",
       .example = "true",
       .otherwise = Default::built_in(),
       .flag = run_flag("force")},
      boolean(), [](auto& c) -> auto& { return c.run.force; });
}

void add_comparison(Keys<Configuration>& keys) {
  keys.add(
      {.path = "run.jobs-alone",
       .help = "simulate each job without the others too, on the same NPUs, and compare",
       .example = "true",
       .otherwise = Default::built_in(),
       .see = "jobs.md",
       .flag = run_flag("jobs-alone")},
      boolean(), [](auto& c) -> auto& { return c.workload.jobs_alone; });
}

void add_records(Keys<Configuration>& keys) {
  keys.add(
      {.path = "run.timeline",
       .help = "keep start and finish of every node",
       .example = "true",
       .otherwise = Default::built_in(),
       .flag = run_flag("timeline")},
      boolean(), [](auto& c) -> auto& { return c.execution.timeline; });
  keys.add(
      {.path = "run.record-iterations",
       .help = "number of the first iterations of which collectives and the timeline are kept",
       .example = "10",
       .otherwise = Default::built_in(),
       .flag = run_flag("record-iterations", "N")},
      count(0), [](auto& c) -> auto& { return c.execution.record_iterations; });
  keys.add(
      {.path = "run.record-load",
       .help = "count what each block of NPUs does over time, for orrery show scaling",
       .example = "true",
       .otherwise = Default::built_in(),
       .see = "scaling.md",
       .flag = run_flag("record-load")},
      boolean(), [](auto& c) -> auto& { return c.run.record_load; });
  keys.add(
      {.path = "run.record-flows",
       .help = "keep a record of each message of the packet network and of each link that it passed",
       .example = "true",
       .otherwise = Default::built_in(),
       .see = "packet-network.md",
       .flag = run_flag("record-flows")},
      boolean(), [](auto& c) -> auto& { return c.execution.network.recording.flows; });
  keys.add(
      {.path = "run.queue-bins",
       .help = "most intervals of time in which each queue of the packet network is recorded; `0`: queues are not",
       .example = "1000",
       .otherwise = Default::built_in(),
       .see = "packet-network.md",
       .flag = run_flag("queue-bins", "N")},
      count(0, network::PacketRecording::most_queue_bins),
      [](auto& c) -> auto& { return c.execution.network.recording.queue_bins; });
  keys.add(
      {.path = "run.print-npus",
       .help = "print ASTRA-sim's line for each NPU at the end",
       .example = "true",
       .otherwise = Default::built_in(),
       .flag = run_flag("print-npus")},
      boolean(), [](auto& c) -> auto& { return c.run.print_npus; });
  keys.add(
      {.path = "run.memory",
       .help = "what becomes of a run whose tensors exceed the local memory",
       .example = "report",
       .otherwise = Default::built_in(),
       .flag = run_flag("memory", "KIND")},
      word(excess_policies()), [](auto& c) -> auto& { return c.run.memory; });
}

void add_ranks(Keys<Configuration>& keys) {
  keys.add({.path = "run.partition",
            .help = "MPI rank that hosts each NPU",
            .example = "metis",
            .otherwise = Default::described("block"),
            .see = "../partitions/README.md",
            .flag = Flag{.name = "partition",
                         .heading = Heading::ranks,
                         .argument = "STRATEGY",
                         .commands = {Taker::run, Taker::check}}},
           partition_type(), partition_choice());
  keys.add(
      {.path = "run.cell-size",
       .help =
           "most NPUs in a cell, a set of NPUs whose events a rank handles together; `0`: as many as fit most caches",
       .example = "64",
       .otherwise = Default::built_in(),
       .see = "kernel.md",
       .flag = Flag{.name = "cell-size", .heading = Heading::ranks, .argument = "N", .commands = {Taker::run}}},
      count(0), [](auto& c) -> auto& { return c.run.cell_size; });
  keys.add(
      {.path = "run.fold",
       .help = "simulate NPUs that are alike once, with the same results",
       .example = "true",
       .otherwise = Default::built_in(),
       .see = "folding.md",
       .flag = Flag{.name = "fold", .heading = Heading::ranks, .argument = {}, .commands = {Taker::run}}},
      boolean(), [](auto& c) -> auto& { return c.run.fold; });
}

void add_checkpoints(Keys<Configuration>& keys) {
  keys.add(
          {.path = "run.checkpoint",
           .help = "file that the state of the simulation is written to, from time to time and when the run stops on "
                   "request",
           .example = "run.chk",
           .otherwise = Default::none(),
           .see = "checkpoint.md",
           .flag = Flag{.name = "checkpoint",
                        .heading = Heading::output,
                        .argument = "FILE",
                        .commands = {Taker::run, Taker::check}}},
          file(), [](auto& c) -> auto& { return c.run.checkpoint; })
      .written_unless_default();
  keys.add(
      {.path = "run.checkpoint-interval",
       .help = "wall-clock time between two checkpoints",
       .example = "10 min",
       .otherwise = Default::built_in(),
       .see = "checkpoint.md",
       .flag = seconds_flag("checkpoint-interval")},
      seconds(true), [](auto& c) -> auto& { return c.run.checkpoint_interval_s; });
  keys.add(
          {.path = "run.restart",
           .help = "checkpoint from which the run goes on, on any number of ranks",
           .example = "run.chk",
           .otherwise = Default::none(),
           .see = "checkpoint.md",
           .flag = run_flag("restart", "FILE")},
          file(), [](auto& c) -> auto& { return c.run.restart; })
      .written_unless_default();
}

void add_wall_clock(Keys<Configuration>& keys) {
  keys.add(
      {.path = "run.max-walltime",
       .help =
           "wall-clock time of the whole job; at 0.99 of it the run stops in order, with exit code 75; `0 s`: no limit",
       .example = "8 h",
       .otherwise = Default::built_in(),
       .flag = seconds_flag("max-walltime")},
      seconds(false), [](auto& c) -> auto& { return c.run.max_walltime_s; });
  keys.add(
      {.path = "run.progress",
       .help = "lines of progress on standard error",
       .example = "plain",
       .otherwise = Default::built_in(),
       .flag = run_flag("progress", "KIND")},
      word(progress_kinds()), [](auto& c) -> auto& { return c.run.progress; });
  keys.add(
      {.path = "run.progress-interval",
       .help = "time between two lines of progress",
       .example = "10 s",
       .otherwise = Default::built_in(),
       .flag = seconds_flag("progress-interval")},
      seconds(true), [](auto& c) -> auto& { return c.run.progress_interval_s; });
  keys.add(
      {.path = "run.quiet",
       .help = "print errors and warnings only, neither progress nor summary",
       .example = "true",
       .otherwise = Default::built_in(),
       .flag = run_flag("quiet")},
      boolean(), [](auto& c) -> auto& { return c.run.quiet; });
  keys.add(
      {.path = "run.watchdog",
       .help = "time without any progress after which the run says where each rank stands and gives up, a tenth of it "
               "once it was asked to stop; `0 s`: never, 30 s once it was asked to stop",
       .example = "10 min",
       .otherwise = Default::built_in()},
      seconds(false), [](auto& c) -> auto& { return c.run.watchdog_s; });
}

}  // namespace

const Keys<Configuration>& run_keys() {
  static const Keys<Configuration> all = [] {
    Keys<Configuration> keys("run");
    add_output_file(keys);
    add_comparison(keys);
    add_records(keys);
    add_ranks(keys);
    add_checkpoints(keys);
    add_wall_clock(keys);
    return keys;
  }();
  return all;
}

}  // namespace orrery::config
