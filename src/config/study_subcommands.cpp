#include <fmt/format.h>

#include "subcommands.hpp"

namespace orrery::config {
namespace {

Option keep_results_option() {
  Option option{"keep-results", "WHICH",
                "write results.h5 of trials beside the output: none, top or all (default: none)"};
  option.words = {"none", "top", "all"};
  return option;
}
Option walltime_option() {
  return {"max-walltime", "TIME", "end in order after this time, as \"30 min\"; the same command then goes on"};
}
OptionGroup study_output(const char* file) {
  return {"Output",
          {{"output", "FILE", fmt::format("where to write what was found (default: {})", file)},
           {"csv", "FILE", "write all trials as a table too"},
           {"force", "", "replace files that exist"}}};
}

}  // namespace

const Subcommand& explore_subcommand() {
  static const Subcommand command{
      "explore",
      "Simulate the configurations of a study, and say which are best.",
      "STUDY.yaml ...",
      "  mpirun -np 2 orrery explore configs/studies/llama3-8b-64.yaml --output explore.h5\n"
      "  orrery explore configs/studies/llama3-8b-64.yaml --dry-run\n"
      "  orrery explore study.yaml --merge shard-0.h5 shard-1.h5 --output explore.h5",
      {{"Study",
        {{"list", "", "print the configurations, and simulate none"},
         {"trial", "N", "print configuration N as a CONFIG.yaml, and simulate none"},
         {"limit", "N", "simulate the first N configurations only"},
         {"dry-run", "", "print the bounds of the configurations, and simulate none"},
         {"shard", "I/N", "simulate the configurations whose number leaves the remainder I, from 0 to N - 1"},
         {"merge", "", "put the files of all shards together, which follow STUDY.yaml"},
         {"strict", "", "end at the first configuration that is faulty"},
         keep_results_option(),
         {"no-sensitivity", "",
          "leave out what the best trial depends on (/sensitivity), which takes some trials more"},
         walltime_option()}},
       study_output("explore.h5"),
       own_inputs()}};
  return command;
}

const Subcommand& best_subcommand() {
  static const Subcommand command{
      "best",
      "Find the fastest ways to train a model on a system.",
      "MODEL",
      "  orrery best llama3-8b --on dgx-h100-superpod --npus 64 --batch 128\n"
      "  mpirun -np 2 orrery best mixtral-8x7b --on dgx-h100-superpod --npus 256 --stack h100-megatron",
      {{"Question",
        {{"on", "SYSTEM", "a preset of configs/systems, or a file; needed"},
         {"npus", "N", "number of NPUs; needed"},
         {"batch", "B", "sequences of a step (default: one for each NPU)"},
         {"stack", "STACK", "a preset of configs/stacks, which knows the software"},
         {"cost", "PRICES", "a preset of configs/prices, or a file, for what systems and steps cost"},
         {"serve", "REQUESTS",
          "serve these requests instead of training: a file of them, or a .yaml with serving.requests"},
         {"slo", "BOUNDS", "what requests are to meet: ttft=500ms,tpot=50ms, perhaps share=0.9"},
         walltime_option()}},
       study_output("best.h5"),
       own_inputs()}};
  return command;
}

const Subcommand& calibrate_subcommand() {
  static const Subcommand command{
      "calibrate",
      "Fit numbers of a configuration or a stack to what was measured on a machine.",
      "step|steps|collectives FILE ...",
      "  orrery calibrate step config.yaml --measured 1.42s\n"
      "  orrery calibrate steps steps.csv --output own-stack.yaml\n"
      "  orrery calibrate collectives all_reduce_perf.txt --library nccl-h100",
      {{"A step",
        {{"measured", "TIME", "the measured time of a step; needed"},
         {"key", "KEY", "the number that is fitted, from 0.01 to 1 (default: system.compute.efficiency)"}}},
       {"Steps",
        {{"stack", "NAME", "the stack whose numbers are known before (default: by hardware and group of the rows)"},
         {"output", "FILE", "the stack that is written (default: calibrated-stack.yaml)"}}},
       {"Collectives",
        {{"library", "NAME", "the library to correct, such as nccl-h100; needed"},
         {"kind", "KIND", "of the collectives that were measured (default: all-reduce)"},
         {"fabric", "NAME", "network between nodes, a word of library.fabric (default: infiniband)"},
         {"nic", "BANDWIDTH", "bandwidth of a rank to other nodes (default: 400 Gb/s)"}}}},
      {"step", "steps", "collectives"}};
  return command;
}

const Subcommand& show_provenance_subcommand() {
  static const Subcommand command{"show provenance",
                                  "Print what a prediction rests on: each number with its deviation, source and kind, "
                                  "and how much the step depends on it.",
                                  "CONFIG.yaml|RESULTS.h5",
                                  "  orrery show provenance configs/llama3-8b-64.yaml\n"
                                  "  orrery show provenance results.h5",
                                  {}};
  return command;
}

namespace {

Subcommand presets_subcommand(std::string_view name, std::string_view summary, std::string_view example) {
  return {name, summary, "", example, {{"Output", {Option{"json", "", "print JSON"}}}}};
}

}  // namespace

const Subcommand& show_models_subcommand() {
  static const Subcommand command = presets_subcommand(
      "show models", "List the models that a configuration may name, with their sizes.", "  orrery show models");
  return command;
}

const Subcommand& show_systems_subcommand() {
  static const Subcommand command =
      presets_subcommand("show systems", "List the systems that a configuration may name: NPUs, network, peak, memory.",
                         "  orrery show systems");
  return command;
}

const Subcommand& show_stacks_subcommand() {
  static const Subcommand command = presets_subcommand(
      "show stacks", "List the stacks of hardware and software, and what they were fitted to.", "  orrery show stacks");
  return command;
}

const Subcommand& show_prices_subcommand() {
  static const Subcommand command = presets_subcommand(
      "show prices", "List the prices that a configuration may name, with their dates.", "  orrery show prices");
  return command;
}

const Subcommand& init_subcommand() {
  static const Subcommand command{
      "init",
      "Write a commented CONFIG.yaml of a model on a system, to start from.",
      "",
      "  orrery init --model qwen3-32b --system dgx-h100 --npus 128\n"
      "  orrery init --model models/Qwen3-8B/config.json --system dgx-h100 --npus 64 --batch 256 --output my.yaml",
      {{"What",
        {{"model", "MODEL", "preset, file, or config.json of Hugging Face; needed (orrery show models)"},
         {"system", "SYSTEM", "preset or file; needed (orrery show systems)"},
         {"npus", "N", "number of NPUs, whole servers; needed"},
         {"batch", "N", "sequences of a step (default: as many as there are NPUs)"},
         {"stack", "STACK", "hardware and software (default: the usual stack of the processor; orrery show stacks)"}}},
       {"Output",
        {{"output", "FILE", "name of the file (default: CONFIG.yaml)"}, {"force", "", "replace an existing file"}}}}};
  return command;
}

}  // namespace orrery::config
