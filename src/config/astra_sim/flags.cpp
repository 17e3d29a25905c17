#include "astra_sim.hpp"

namespace orrery::config {
namespace {

constexpr std::string_view no_file = "empty";  // how ASTRA-sim's scripts name a file that there is not

/// Returns what the help says of a flag.
Flag flag_of(Text name, std::string_view argument = {}) {
  return {.name = name,
          .heading = Heading::astra_sim,
          .argument = argument,
          .commands = {Taker::run, Taker::check, Taker::partition, Taker::show_topology, Taker::show_collective}};
}

bool needs_workload(const AstraSimInputs&, const Reading& reading) { return !reading.system_only; }

void add_files(Keys<AstraSimInputs>& flags) {
  flags
      .add_astra_sim(
          {.name = "workload-configuration",
           .becomes = "workload.traces",
           .help = "traces PREFIX.<npu>.et, one for each NPU",
           .otherwise = Default::none(),
           .flag = flag_of("workload-configuration", "PREFIX")},
          any_text("a prefix of traces"), [](auto& files) -> auto& { return files.workload; })
      .needed_if(needs_workload, "the command needs a workload");
  flags.add_astra_sim(
      {.name = "system-configuration",
       .becomes = "system",
       .help = "system.json",
       .otherwise = Default::needed(),
       .flag = flag_of("system-configuration", "FILE")},
      file(), [](auto& files) -> auto& { return files.system; });
  flags.add_astra_sim(
      {.name = "network-configuration",
       .becomes = "system.network",
       .help = "network.yml, or config.txt of ns-3",
       .otherwise = Default::needed(),
       .flag = flag_of("network-configuration", "FILE")},
      file(), [](auto& files) -> auto& { return files.network; });
  flags
      .add_astra_sim(
          {.name = "remote-memory-configuration",
           .becomes = "system.remote-memory",
           .help = "remote_memory.json",
           .otherwise = Default::none(),
           .flag = flag_of("remote-memory-configuration", "FILE")},
          file(), [](auto& files) -> auto& { return files.remote_memory; })
      .needed_if(needs_workload, "the command needs a workload");
  flags.add_astra_sim(
      {.name = "logical-topology-configuration",
       .becomes = "system.network.dimensions",
       .help = "sizes of the dimensions, beside a config.txt of ns-3",
       .otherwise = Default::none(),
       .flag = flag_of("logical-topology-configuration", "FILE")},
      file(), [](auto& files) -> auto& { return files.logical; });
  flags.add_astra_sim({.name = "comm-group-configuration",
                       .becomes = "workload.groups",
                       .help = "comm_group.json, or `empty`",
                       .otherwise = Default::none(),
                       .flag = flag_of("comm-group-configuration", "FILE")},
                      file().info,
                      {[](const Value& value, const std::string& path, AstraSimInputs& files, Reading&) {
                         if (value.text != no_file) files.groups = as_path(value, path);
                       },
                       {},
                       {}});
}

void add_numbers(Keys<AstraSimInputs>& flags) {
  flags.add_astra_sim(
      {.name = "num-queues-per-dim",
       .becomes = "system.collectives.queues",
       .help = "queues of each dimension",
       .otherwise = Default::built_in(),
       .flag = flag_of("num-queues-per-dim", "N")},
      count(), [](auto& files) -> auto& { return files.num_queues_per_dim; });
  flags.add_astra_sim(
      {.name = "injection-scale",
       .becomes = "system.collectives.endpoint-delay",
       .help = "factor of the endpoint delay of system.json",
       .otherwise = Default::built_in(),
       .flag = flag_of("injection-scale", "X")},
      number("0 or more"), [](auto& files) -> auto& { return files.injection_scale; });
  flags.add_astra_sim(
      {.name = "rendezvous-protocol",
       .becomes = "system.communication.rendezvous",
       .help = "let a sender wait until its receiver is ready",
       .otherwise = Default::built_in(),
       .flag = flag_of("rendezvous-protocol")},
      boolean(), [](auto& files) -> auto& { return files.rendezvous; });
  flags.add_astra_sim(
      {.name = "comm-scale",
       .becomes = "-",
       .help = "accepted, without effect; a warning names it unless it is 1",
       .otherwise = Default::built_in(),
       .flag = flag_of("comm-scale", "X")},
      number("0 or more"), [](auto& files) -> auto& { return files.comm_scale; });
  flags.add_astra_sim(
      {.name = "compute-scale",
       .becomes = "-",
       .help = "accepted, without effect; a warning names it unless it is 1",
       .otherwise = Default::built_in(),
       .flag = flag_of("compute-scale", "X")},
      number("0 or more"), [](auto& files) -> auto& { return files.compute_scale; });
}

void add_logging(Keys<AstraSimInputs>& flags) {
  static constexpr Text names[] = {"logging-folder", "logging-configuration"};
  for (const Text& name : names)
    flags.add_astra_sim({.name = name,
                         .becomes = "-",
                         .help = "accepted, without effect; a warning names it unless it is `empty`",
                         .otherwise = Default::none(),
                         .flag = flag_of(name, "FILE")},
                        file().info,
                        {[name](const Value& value, const std::string&, AstraSimInputs& files, Reading&) {
                           if (value.text != no_file) files.ignored.push_back(name.string());
                         },
                         {},
                         {}});
}

}  // namespace

const Keys<AstraSimInputs>& astra_sim_flags() {
  static const Keys<AstraSimInputs> all = [] {
    Keys<AstraSimInputs> flags("ASTRA-sim's flags");
    add_files(flags);
    add_numbers(flags);
    add_logging(flags);
    return flags;
  }();
  return all;
}

}  // namespace orrery::config
