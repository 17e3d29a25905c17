#include "subcommands.hpp"

#include <fmt/format.h>

#include "orrery/partition/strategy.hpp"

namespace orrery::config {
namespace {

OptionGroup own_inputs() {
  return {"Orrery's own configuration",
          {{"set", "KEY=VALUE", "replace a value of CONFIG.yaml, as system.collectives.chunks=8; repeatable", true}}};
}

OptionGroup astra_sim_inputs() {
  return {"ASTRA-sim's own files instead of CONFIG.yaml",
          {{"workload-configuration", "PREFIX", "traces PREFIX.<npu>.et, one per NPU"},
           {"system-configuration", "FILE", "system.json"},
           {"network-configuration", "FILE", "network.yml"},
           {"remote-memory-configuration", "FILE", "remote_memory.json"},
           {"comm-group-configuration", "FILE", "comm_group.json, or 'empty'"},
           {"num-queues-per-dim", "N", "queues of each dimension (default: 1)"},
           {"injection-scale", "X", "multiplies the endpoint delay (default: 1)"},
           {"rendezvous-protocol", "", "=true: a sender waits for its receiver"},
           {"comm-scale", "X", "accepted, without effect"},
           {"compute-scale", "X", "accepted, without effect"},
           {"logging-folder", "DIR", "accepted, without effect"},
           {"logging-configuration", "FILE", "accepted, without effect"}}};
}

Option dependencies_option() {
  return {"dependencies", "POLICY", "what orders nodes: auto, data, ctrl or both (default: auto)"};
}
/// "block, round-robin, dimension:<d>, metis or a rank map's file (default: block)".
const std::string& partition_choices() {
  static const std::string text = [] {
    std::string all;
    for (const auto& strategy : partition::named_strategies())
      all += fmt::format("{}{}", all.empty() ? "" : ", ", partition::usage(strategy));
    return fmt::format("{} or a rank map's file (default: {})", all, partition::PartitionOptions().text());
  }();
  return text;
}
Option partition_option() {
  static const std::string help = fmt::format("which rank hosts which NPU: {}", partition_choices());
  return {"partition", "STRATEGY", help};
}
Option json_option() { return {"json", "", "print JSON"}; }

Option network_option() {
  return {"network", "MODEL",
          "congestion-unaware (default), or congestion-aware: every link serves one message at a time"};
}

OptionGroup model_options() {
  return {"Model",
          {network_option(),
           dependencies_option(),
           {"streams", "POLICY",
            "which nodes of an NPU take turns: counted by resource, or those of one stream of the trace (default: "
            "counted)"},
           {"local-memory-size", "SIZE", "what the local memory of an NPU holds, such as 80GB (default: anything)"},
           {"iterations", "N", "each NPU repeats its trace so often (default: 1)"},
           {"noise", "SHARE", "compute times vary by this share of themselves, seeded (default: 0)"},
           {"noise-seed", "N", "another seed, other times (default: 1)"}}};
}

}  // namespace

const Subcommand& run_subcommand() {
  static const Subcommand command{
      "run",
      "Simulate a training workload and write its results.",
      "CONFIG.yaml",
      "  mpirun -np 2 orrery run configs/llm-64.yaml --set system.collectives.chunks=8 --output results.h5\n"
      "  orrery run --workload-configuration=traces/workload --system-configuration=system.json \\\n"
      "             --network-configuration=network.yml --remote-memory-configuration=remote_memory.json "
      "--output=results.h5",
      {{"Output",
        {{"output", "FILE", "results (default: results.h5)"},
         {"force", "", "replace an existing file"},
         {"timeline", "", "keep start and finish of every node"},
         {"record-iterations", "N", "iterations of which collectives and the timeline are kept, 0: none (default: 1)"},
         {"print-npus", "", "print ASTRA-sim's line for each NPU"},
         {"memory", "KIND", "where tensors exceed the local memory: error, or report it and go on (default: error)"},
         {"max-walltime", "SECONDS", "stop in order at 0.99 of it: results so far, exit code 75"},
         {"progress", "KIND", "auto, plain or none (default: auto)"},
         {"progress-interval", "SECONDS", "between two lines of progress (default: 30)"},
         {"quiet", "", "print errors and warnings only"}}},
       {"Ranks", {partition_option(), {"fold", "", "simulate NPUs that are alike once: the same results, sooner"}}},
       model_options(),
       own_inputs(),
       astra_sim_inputs()}};
  return command;
}

const Subcommand& check_subcommand() {
  static const Subcommand command{"check",
                                  "Find everything that is wrong with a run before it is started.",
                                  "CONFIG.yaml",
                                  "  orrery check configs/llm-64.yaml",
                                  {{"Ranks", {partition_option()}}, model_options(), own_inputs(), astra_sim_inputs()}};
  return command;
}

const std::vector<std::pair<std::string_view, std::string_view>>& generate_keys() {
  static const std::vector<std::pair<std::string_view, std::string_view>> keys = {
      {"tp", "parallel.tp"},      {"cp", "parallel.cp"},      {"ep", "parallel.ep"},
      {"dp", "parallel.dp"},      {"pp", "parallel.pp"},      {"micro-batches", "parallel.micro-batches"},
      {"layers", "model.layers"}, {"hidden", "model.hidden"}, {"sequence", "model.sequence"},
      {"zero", "parallel.zero"}};
  return keys;
}

const Subcommand& generate_subcommand() {
  static const Subcommand command{
      "generate",
      "Write the traces of one training step of a model, and say what it comes to.",
      "[CONFIG.yaml]",
      "  orrery generate --tp 4 --pp 4 --dp 4 --layers 32 --output traces/workload\n"
      "  orrery generate configs/scale/gpt3-175b-1024.yaml --dry-run",
      {{"Output",
        {{"output", "PREFIX", "traces PREFIX.<npu>.et, groups PREFIX.json; needed but for --dry-run"},
         {"force", "", "replace existing files"},
         {"dry-run", "", "print parameters, FLOPs, memory and communication, write nothing"}}},
       {"Short for --set workload.parallel...., without CONFIG.yaml of a transformer on 64 NPUs",
        {{"tp", "N", "NPUs that share each layer (tensor parallel)"},
         {"cp", "N", "NPUs that share each sequence (context parallel)"},
         {"ep", "N", "NPUs that share the experts of each layer"},
         {"dp", "N", "replicas (data parallel)"},
         {"pp", "N", "pipeline stages"},
         {"zero", "N", "stage of ZeRO, 1 to 3"},
         {"micro-batches", "N", "per step and replica"}}},
       {"Short for --set workload.model....",
        {{"layers", "N", "transformer layers"}, {"hidden", "N", "width"}, {"sequence", "N", "tokens of a sequence"}}},
       own_inputs()}};
  return command;
}

const Subcommand& partition_subcommand() {
  static const Subcommand command{
      "partition",
      "Write a rank map, which MPI rank hosts which NPU, and print what it cuts.",
      "CONFIG.yaml",
      "  orrery partition configs/llm-64.yaml --ranks 4 --strategy metis --output llm-64.part.4",
      {{"Output",
        {{"ranks", "R", "number of ranks; needed"},
         {"strategy", "STRATEGY", partition_choices()},
         {"output", "FILE", "the rank map; needed"},
         {"force", "", "replace an existing file"}}},
       own_inputs(),
       astra_sim_inputs()}};
  return command;
}

const Subcommand& show_trace_subcommand() {
  static const Subcommand command{"show trace",
                                  "Print what a Chakra execution trace holds.",
                                  "FILE",
                                  "  orrery show trace traces/workload.0.et",
                                  {{"Output", {json_option()}}, {"Model", {dependencies_option()}}}};
  return command;
}

const Subcommand& show_topology_subcommand() {
  static const Subcommand command{
      "show topology",
      "Print the dimensions, links and delays of a system.",
      "CONFIG.yaml",
      "  orrery show topology configs/llm-64.yaml --json",
      {{"Model", {network_option()}}, {"Output", {json_option()}}, own_inputs(), astra_sim_inputs()}};
  return command;
}

const Subcommand& show_collective_subcommand() {
  static const Subcommand command{
      "show collective",
      "Print what one collective costs when all members arrive together.",
      "CONFIG.yaml",
      "  orrery show collective configs/llm-64.yaml --kind all-reduce --bytes \"64 MiB\"",
      {{"Collective",
        {{"kind", "KIND", "all-reduce, all-gather, reduce-scatter, all-to-all, broadcast, ...; needed"},
         {"bytes", "SIZE", "with its unit, as \"64 MiB\"; needed but for a barrier"},
         {"npus", "N", "the first N NPUs take part (default: all)"}}},
       {"Output", {json_option()}},
       own_inputs(),
       astra_sim_inputs()}};
  return command;
}

const Subcommand& show_kernel_subcommand() {
  static const Subcommand command{"show kernel",
                                  "Print how a run went on each rank, and what limits it.",
                                  "RESULTS.h5",
                                  "  orrery show kernel results.h5",
                                  {{"Output", {json_option()}}}};
  return command;
}

const Subcommand& show_timeline_subcommand() {
  static const Subcommand command{
      "show timeline",
      "Write what NPUs did when, for Perfetto and about:tracing.",
      "RESULTS.h5",
      "  orrery run configs/llm-64.yaml --timeline --output results.h5\n"
      "  orrery show timeline results.h5 --chrome timeline.json.gz --npus 0-7,32",
      {{"Output",
        {{"chrome", "FILE", "Chrome's Trace Event Format (JSON), compressed if the name ends in .gz; needed"},
         {"npus", "LIST", "NPUs, as 0-63 or 0,3,8-15 (default: all)"},
         {"force", "", "replace an existing file"}}}}};
  return command;
}

std::string overview() {
  std::string text =
      "Orrery simulates one step of distributed machine-learning training.\n\nUsage:\n  orrery COMMAND [OPTIONS]\n\n"
      "Commands:\n";
  for (const Subcommand* command :
       {&run_subcommand(), &check_subcommand(), &generate_subcommand(), &partition_subcommand()})
    text += fmt::format("  {:<16} {}\n", command->name, command->summary);
  text += fmt::format("  {:<16} {}\n", "show",
                      "Print a trace, a topology, a collective, how a run went; write a timeline.");
  text +=
      "\n  -h, --help       print this, or with a command its options\n  --version        print versions and leave\n";
  return text + "\nExample:\n  mpirun -np 2 orrery run configs/llm-64.yaml --output results.h5\n";
}

std::string show_overview() {
  std::string text =
      "Print a trace, a topology, a collective, how a run went; write a timeline.\n\nUsage:\n  orrery show WHAT "
      "[OPTIONS]\n\nWhat:\n";
  for (const Subcommand* command :
       {&show_trace_subcommand(), &show_topology_subcommand(), &show_collective_subcommand(), &show_kernel_subcommand(),
        &show_timeline_subcommand()})
    text += fmt::format("  {:<16} {}\n", command->name.substr(5), command->summary);
  return text + "\nExample:\n  orrery show topology configs/llm-64.yaml\n";
}

}  // namespace orrery::config
