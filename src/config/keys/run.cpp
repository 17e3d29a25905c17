#include "keys.hpp"
#include "orrery/partition/strategy.hpp"
#include "validation.hpp"

namespace orrery::config {
namespace {

constexpr auto run_flag(Text name, std::string_view argument = {}) {
  return flag(name, Heading::output, argument, {Taker::run});
}
/// Of a wall-clock time, which the command line gives in seconds.
constexpr auto seconds_flag(Text name) { return flag(name, Heading::output, "SECONDS", {Taker::run}, "s"); }

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
constexpr Handling<Configuration> partition_choice() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading&) {
            if (value.kind == Value::Kind::scalar && !value.quoted && !value.text.empty())
              if (const PartitionOptions named(value.text, value.place(path)); !named.is_rank_map()) {
                target.run.partition = named;
                return;
              }
            target.run.partition = PartitionOptions::rank_map(as_path(value, path));
          },
          [](const Configuration& c, std::string_view path, Writer& writer) {
            const auto& options = c.run.partition;
            writer.put(path, options.is_rank_map() ? in_quotes(normal_path(options.parameter())) : options.text());
          },
          [](const Configuration& a, const Configuration& b) {
            const auto &x = a.run.partition, &y = b.run.partition;
            return x == y ||
                   (x.is_rank_map() && y.is_rank_map() && normal_path(x.parameter()) == normal_path(y.parameter()));
          }};
}

constexpr Row<Configuration> run_rows[] = {
    {"run.output", "file that the results go to", "results.h5", Default::described("results.h5 in the current folder"),
     file(), [](auto& c) { return &c.run.output; }, run_flag("output", "FILE")},
    {"run.force", "replace an existing file; results of an interrupted run are replaced without it", "true",
     Default::built_in(), boolean(), [](auto& c) { return &c.run.force; }, run_flag("force")},
    {"run.jobs-alone", "simulate each job without the others too, on the same NPUs, and compare", "true",
     Default::built_in(), boolean(), [](auto& c) { return &c.workload.jobs_alone; }, see("jobs.md"),
     run_flag("jobs-alone")},
    {"run.timeline", "keep start and finish of every node", "true", Default::built_in(), boolean(),
     [](auto& c) { return &c.execution.timeline; }, run_flag("timeline")},
    {"run.record-iterations", "number of the first iterations of which collectives and the timeline are kept", "10",
     Default::built_in(), count(0), [](auto& c) { return &c.execution.record_iterations; },
     run_flag("record-iterations", "N")},
    {"run.record-load", "record the load of each block of NPUs over time, for orrery show scaling", "true",
     Default::built_in(), boolean(), [](auto& c) { return &c.run.record_load; }, see("scaling.md"),
     run_flag("record-load")},
    {"run.record-flows", "keep a record of each message of the packet network and of each link that it passed", "true",
     Default::built_in(), boolean(), [](auto& c) { return &c.execution.network.recording.flows; },
     see("packet-network.md"), run_flag("record-flows")},
    {"run.queue-bins",
     "most intervals of time in which each queue of the packet network is recorded; `0`: queues are not", "1000",
     Default::built_in(), count(0, network::PacketRecording::most_queue_bins),
     [](auto& c) { return &c.execution.network.recording.queue_bins; }, see("packet-network.md"),
     run_flag("queue-bins", "N")},
    {"run.print-npus", "print ASTRA-sim's line for each NPU at the end", "true", Default::built_in(), boolean(),
     [](auto& c) { return &c.run.print_npus; }, run_flag("print-npus")},
    {"run.memory", "reaction if tensors exceed the local memory", "report", Default::built_in(),
     word<excess_policies>(), [](auto& c) { return &c.run.memory; }, run_flag("memory", "KIND")},
    {"run.partition", "MPI rank that hosts each NPU", "metis", Default::described("block"), partition_type,
     partition_choice(), see("../partitions/README.md"),
     flag("partition", Heading::ranks, "STRATEGY", {Taker::run, Taker::check})},
    {"run.cell-size",
     "most NPUs in a cell, a set of NPUs whose events a rank handles together; `0`: as many as fit most caches", "64",
     Default::built_in(), count(0), [](auto& c) { return &c.run.cell_size; }, see("kernel.md"),
     flag("cell-size", Heading::ranks, "N", {Taker::run})},
    {"run.fold", "simulate equivalent NPUs once, with identical results", "true", Default::built_in(), boolean(),
     [](auto& c) { return &c.run.fold; }, see("folding.md"), flag("fold", Heading::ranks, {}, {Taker::run})},
    {"run.checkpoint",
     "file that the state of the simulation is written to, from time to time and when the run stops on "
     "request",
     "run.chk", Default::none(), file(), [](auto& c) { return &c.run.checkpoint; }, see("checkpoint.md"),
     flag("checkpoint", Heading::output, "FILE", {Taker::run, Taker::check}), written_unless_default()},
    {"run.checkpoint-interval", "wall-clock time between two checkpoints", "10 min", Default::built_in(), seconds(true),
     [](auto& c) { return &c.run.checkpoint_interval_s; }, see("checkpoint.md"), seconds_flag("checkpoint-interval")},
    {"run.restart", "checkpoint from which the run resumes, on any number of ranks", "run.chk", Default::none(), file(),
     [](auto& c) { return &c.run.restart; }, see("checkpoint.md"), run_flag("restart", "FILE"),
     written_unless_default()},
    {"run.max-walltime",
     "wall-clock time of the whole job; at 0.99 of it the run stops in order, with exit code 75; `0 s`: no limit",
     "8 h", Default::built_in(), seconds(false), [](auto& c) { return &c.run.max_walltime_s; },
     seconds_flag("max-walltime")},
    {"run.progress", "lines of progress on standard error", "plain", Default::built_in(), word<progress_kinds>(),
     [](auto& c) { return &c.run.progress; }, run_flag("progress", "KIND")},
    {"run.progress-interval", "time between two lines of progress", "10 s", Default::built_in(), seconds(true),
     [](auto& c) { return &c.run.progress_interval_s; }, seconds_flag("progress-interval")},
    {"run.quiet", "print errors and warnings only, neither progress nor summary", "true", Default::built_in(),
     boolean(), [](auto& c) { return &c.run.quiet; }, run_flag("quiet")},
    {"run.verbose", "print all figures of the run in place of its summary", "true", Default::built_in(), boolean(),
     [](auto& c) { return &c.run.verbose; }, run_flag("verbose")},
    {"run.sensitivity", "print the five inputs of the system on which the step time depends most", "true",
     Default::built_in(), boolean(), [](auto& c) { return &c.run.sensitivity; }, run_flag("sensitivity")},
    {"run.color", "colours of the summary", "never", Default::built_in(), word<colour_choices>(),
     [](auto& c) { return &c.run.colours; }, run_flag("color", "WHEN")},
    {"run.watchdog",
     "time without any progress after which the run says where each rank stands and gives up, a tenth of it "
     "once it was asked to stop; `0 s`: never, 30 s once it was asked to stop",
     "10 min", Default::built_in(), seconds(false), [](auto& c) { return &c.run.watchdog_s; }},
};

}  // namespace

const Keys<Configuration>& run_keys() {
  static const Keys<Configuration> all("run", run_rows);
  return all;
}

/// A load is that of all NPUs, from the beginning.
void Validation::validate_load() {
  if (!c_.run.record_load) return;
  require(!c_.run.fold, "run.record-load", "found true in a folded run, which does not simulate all NPUs",
          "false, or run.fold: false (no --fold)");
  require(c_.run.restart.empty() && c_.run.checkpoint.empty(), "run.record-load",
          "found true with checkpoints, which do not keep the load", "false, or neither --checkpoint nor --restart");
  require(!c_.execution.goes_over_links() || !c_.execution.network.model->sends_packets, "run.record-load",
          "found true in the packet network, where ranks tell each other of messages by events of their own",
          "false, or another system.network.model");
}

}  // namespace orrery::config
