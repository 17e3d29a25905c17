#include "subcommands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "astra_sim/astra_sim.hpp"
#include "keys/keys.hpp"

namespace orrery::config {
namespace {

/// Returns the help of a key as that of its flag, without marks of code.
std::string flag_help(const KeyInfo& info) {
  std::string text = info.help;
  std::erase(text, '`');
  if (!info.type.words.empty()) text += fmt::format(": {}", info.type.range);
  const bool is_plain_switch = info.type.name == boolean_name && info.default_text == "false";
  if (tells_default(info) && !is_plain_switch && !info.is_needed() && !info.is_optional())
    text += fmt::format(" (default: {})", info.default_text);
  return text;
}

/// Returns the words that can be typed as they stand: not "dimension:<d>".
std::vector<std::string_view> plain_words(const KeyInfo& info) {
  std::vector<std::string_view> words;
  for (const WordInfo& word : info.type.words)
    if (word.text.find_first_of("<> ") == std::string_view::npos) words.push_back(word.text);
  return words;
}

Option option_of(const KeyInfo& info) {
  return {.name = std::string(info.flag->name.view()),
          .argument = std::string(info.flag->argument),
          .help = flag_help(info),
          .words = plain_words(info)};
}

/// Returns the options of a subcommand that stand for keys, under the headings of their flags.
std::vector<OptionGroup> key_groups(Taker command) {
  std::map<Heading, OptionGroup> groups;
  for (const FlagKey& key : flag_keys(command)) {
    OptionGroup& group = groups[key.info->flag->heading];
    group.title = title(key.info->flag->heading);
    group.options.push_back(option_of(*key.info));
  }
  std::vector<OptionGroup> result;
  for (auto& [heading, group] : groups) result.push_back(std::move(group));
  return result;
}

Option strategy_option() {
  Option option = option_of(find_key("run.partition")->info());
  option.name = "strategy";
  return option;
}

Option kind_option() {
  Option option{"kind", "KIND", "all-reduce, all-gather, reduce-scatter, all-to-all, broadcast, ...; needed"};
  for (const auto& word : collective_kinds()) option.words.push_back(word.text);
  return option;
}

/// Returns ASTRA-sim's flags. All commands take those without effect, and the help of `run` names them.
OptionGroup astra_sim_inputs(Taker command) {
  OptionGroup group{std::string(title(Heading::astra_sim)), {}};
  for (const auto& key : astra_sim_flags()) {
    group.options.push_back(option_of(key->info()));
    group.options.back().hidden = command != Taker::run && key->info().becomes == "-";
  }
  return group;
}

Option json_option() { return {"json", "", "print JSON"}; }

/// Returns the paths of all keys, in the order of the alphabet.
std::vector<std::string_view> key_paths() {
  std::vector<std::string_view> paths;
  for (const KeySection& section : key_sections())
    for (const KeyInfo* const key : section.keys) paths.push_back(key->path);
  std::ranges::sort(paths);
  const auto [first, last] = std::ranges::unique(paths);
  paths.erase(first, last);
  return paths;
}

Option format_option() {
  Option option{"format", "FORMAT", "text, json or csv (default: text)"};
  option.words = {"text", "json", "csv"};
  return option;
}

/// Returns options of keys, then others.
std::vector<OptionGroup> operator+(std::vector<OptionGroup> first, std::vector<OptionGroup> then) {
  first.insert(first.end(), std::make_move_iterator(then.begin()), std::make_move_iterator(then.end()));
  return first;
}

}  // namespace

OptionGroup own_inputs() {
  return {"Orrery's own configuration",
          {{"set", "KEY=VALUE", "replace a value of CONFIG.yaml, as system.collectives.chunks=8; repeatable", true}}};
}

const Subcommand& run_subcommand() {
  static const Subcommand command{
      "run", "Simulate a training workload and write its results.", "CONFIG.yaml",
      "  mpirun -np 2 orrery run configs/llm-64.yaml --set system.collectives.chunks=8 --output results.h5\n"
      "  orrery run --workload-configuration=traces/workload --system-configuration=system.json \\\n"
      "             --network-configuration=network.yml --remote-memory-configuration=remote_memory.json "
      "--output=results.h5",
      key_groups(Taker::run) + std::vector{own_inputs(), astra_sim_inputs(Taker::run)}};
  return command;
}

const Subcommand& check_subcommand() {
  static const Subcommand command{"check", "Find everything that is wrong with a run before it is started.",
                                  "CONFIG.yaml", "  orrery check configs/llm-64.yaml",
                                  key_groups(Taker::check) + std::vector{own_inputs(), astra_sim_inputs(Taker::check)}};
  return command;
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
          key_groups(Taker::generate) + std::vector{own_inputs()}};
  return command;
}

const Subcommand& convert_subcommand() {
  static const Subcommand command{
      "convert", "Write traces of any format as Chakra execution traces, or a system as YAML.", "INPUT ...",
      "  orrery convert rank0.json rank1.json --output traces/workload\n"
      "  orrery convert topo.xml --nodes 16 --output system.yaml\n"
      "  orrery convert 'old/trace.{npu}.et' --groups old/groups.json --output traces/workload",
      std::vector<OptionGroup>{
          {"Output",
           {{"output", "PREFIX",
             "traces PREFIX.<npu>.et, groups PREFIX.json; of a system the name of the file; needed"},
            {"force", "", "replace existing files"}}},
          {"Traces",
           {{"npus", "N", "number of NPUs of the system (default: as many as there are traces)"},
            {"groups", "FILE", "communicator file: the members of the process groups that the traces name"}}},
          {"System",
           {{"nodes", "N", "number of nodes like that of the topology (default: 2); 1: no network of NICs"}}}} +
          key_groups(Taker::convert)};
  return command;
}

const Subcommand& synthesize_subcommand() {
  static const Subcommand command{
      "synthesize",
      "Learn from traces, and write obfuscated ones for other numbers of layers, micro-batches and ranks.",
      "TRACES ...",
      "  orrery synthesize 'private/trace.{npu}.et' --groups private/groups.json --output shared/workload\n"
      "  orrery synthesize 'private/trace.{npu}.et' --groups private/groups.json --model-out model.json\n"
      "  orrery synthesize --model model.json --scale a1=4 --layers 80 --output shared/workload",
      std::vector<OptionGroup>{
          {"Output",
           {{"output", "PREFIX", "traces PREFIX.<npu>.et, groups PREFIX.json"},
            {"model-out", "FILE", "what was learned, as JSON, to share in place of traces"},
            {"quiet", "", "print nothing, and do not measure how true the traces are and what they hide"},
            {"force", "", "replace existing files"}}},
          {"Scale",
           {{"ranks", "N", "ranks (NPUs) to write traces for; the axis of data parallelism grows or shrinks"},
            {"scale", "AXIS=FACTOR", "factor of the size of an axis, as a1=4; repeatable", true},
            {"layers", "N", "layers of the model"},
            {"micro-batches", "N", "micro-batches of a step"},
            {"sizes", "FACTOR", "factor of all FLOPs, bytes and recorded durations (default: 1)"}}},
          {"Obfuscation",
           {{"delta", "D",
             "sizes are multiplied by exp(N(0, D)) and rounded to 3 digits (default: 0.05; 0: as learned)"},
            {"spread", "S",
             "sizes that are alike are multiplied by one factor exp(N(0, S)), so that ratios of sizes change (default: "
             "0)"},
            {"seed", "S", "seed of all draws (default: 1)"},
            {"min-support", "K", "sizes of fewer nodes are pooled with those nearest to them (default: 5)"}}},
          {"Traces",
           {{"model", "FILE", "a model that --model-out wrote, in place of traces"},
            {"npus", "N", "number of NPUs of the system (default: as many as there are traces)"},
            {"groups", "FILE", "communicator file: the members of the process groups that the traces name"},
            {"reference", "NAME", "traces, a name with {npu}, of the same program with another size of one axis"},
            {"reference-groups", "FILE", "communicator file of these"}}}} +
          key_groups(Taker::convert)};
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
         strategy_option(),
         {"output", "FILE", "the rank map; needed"},
         {"force", "", "replace an existing file"}}},
       own_inputs(),
       astra_sim_inputs(Taker::partition)}};
  return command;
}

const Subcommand& report_subcommand() {
  static const Subcommand command{"report",
                                  "Write the results of runs or of studies as one page for a browser, which needs no "
                                  "network.",
                                  "RESULTS.h5 ...",
                                  "  orrery run configs/llama3-8b-64.yaml --timeline --output results.h5\n"
                                  "  orrery report results.h5 --output report.html\n"
                                  "  orrery report explore.h5 --output study.html",
                                  {{"Output",
                                    {{"output", "FILE", "the page (default: report.html in the current folder)"},
                                     {"force", "", "replace an existing file"}}}}};
  return command;
}

const Subcommand& compare_subcommand() {
  static const Subcommand command{"compare",
                                  "Print in what runs or studies differ and what that did to the step.",
                                  "RESULTS.h5 ...",
                                  "  orrery compare base.h5 faster.h5\n"
                                  "  orrery compare sweep/*.h5 --format csv\n"
                                  "  orrery compare explore.h5 explore-other.h5",
                                  {{"Output", {format_option()}}}};
  return command;
}

const Subcommand& show_results_subcommand() {
  static const Subcommand command{"show results",
                                  "Print where the time of a step goes and how busy network and memory are, or what a "
                                  "study found.",
                                  "RESULTS.h5",
                                  "  orrery show results results.h5\n"
                                  "  orrery show results explore.h5 --format csv",
                                  {{"Output", {format_option()}}}};
  return command;
}

const Subcommand& show_trace_subcommand() {
  static const Subcommand command{
      "show trace", "Print what execution traces hold.", "FILE ...",
      "  orrery show trace traces/workload.0.et\n"
      "  orrery show trace traces/workload.0.et --dot | dot -Tsvg > workload.svg",
      key_groups(Taker::show_trace) +
          std::vector<OptionGroup>{
              {"Output",
               {json_option(),
                {"nodes", "", "print each node as JSON in a line, in the words of Chakra's schema"},
                {"dot", "", "print the graph for Graphviz"},
                {"graphml", "", "print the graph as GraphML, for networkx and others"}}}}};
  return command;
}

const Subcommand& show_topology_subcommand() {
  static const Subcommand command{
      "show topology", "Print the dimensions, links and delays of a system.", "CONFIG.yaml",
      "  orrery show topology configs/llm-64.yaml --json",
      key_groups(Taker::show_topology) +
          std::vector<OptionGroup>{{"Output", {json_option()}}, own_inputs(), astra_sim_inputs(Taker::show_topology)}};
  return command;
}

const Subcommand& show_network_subcommand() {
  static const Subcommand command{
      "show network", "Print what a network allows before a run: links, bisection, oversubscription, paths, hops.",
      "CONFIG.yaml",
      "  orrery show network configs/graph-16.yaml\n"
      "  orrery show network configs/graphs/leaf-spine-16.yaml\n"
      "  orrery show network configs/llm-64.yaml --pairs 200 --seed 7 --json",
      key_groups(Taker::show_topology) +
          std::vector<OptionGroup>{
              {"Paths",
               {{"pairs", "N", "count the paths of N pairs of NPUs at the most (default: 1000)"},
                {"seed", "N", "seed of the choice of pairs, and of NPUs, where not all are taken (default: 1)"}}},
              {"Output", {json_option()}},
              own_inputs(),
              astra_sim_inputs(Taker::show_topology)}};
  return command;
}

const Subcommand& show_collective_subcommand() {
  static const Subcommand command{
      "show collective", "Print what one collective costs when all members arrive together, or a table of sizes.",
      "CONFIG.yaml",
      "  orrery show collective configs/llm-64.yaml --kind all-reduce --bytes \"64 MiB\"\n"
      "  orrery show collective configs/ring-8.yaml --kind all-gather --table --network congestion-aware --csv",
      std::vector<OptionGroup>{
          {"Collective",
           {kind_option(),
            {"bytes", "SIZE",
             "with its unit, as \"64 MiB\": the shard of a member for all-gather and gather, else the buffer; needed "
             "but for a barrier and with --table"},
            {"table", "", "print a line for each size from 1 KiB to 16 GiB, in the columns of nccl-tests"},
            {"npus", "N", "the first N NPUs take part (default: all)"},
            {"at-once", "N",
             "each NPU is in N such collectives at a time, which share its links in the congestion-unaware network "
             "(default: 1)"}}}} +
          key_groups(Taker::show_collective) +
          std::vector<OptionGroup>{{"Output", {json_option(), {"csv", "", "print the table as CSV"}}},
                                   own_inputs(),
                                   astra_sim_inputs(Taker::show_collective)}};
  return command;
}

const Subcommand& show_tables_subcommand() {
  static const Subcommand command{"show tables",
                                  "Print which NPU holds which embedding tables, and how uneven that is.",
                                  "CONFIG.yaml",
                                  "  orrery show tables configs/dlrm-dcnv2-16.yaml --set "
                                  "workload.parallel.table-balance=lookups",
                                  {{"Output", {json_option()}}, own_inputs()}};
  return command;
}

const Subcommand& show_graph_subcommand() {
  static const Subcommand command{
      "show graph",
      "Print what a graph or a description of InfraGraph expands to, and dimensions that fit.",
      "FILE",
      "  orrery show graph configs/graph-16.yaml\n"
      "  orrery show graph configs/infragraph/dgx-h100.yaml\n"
      "  orrery show graph configs/infragraph/dgx-h100.yaml --bandwidth 450GB/s --latency 150ns --links",
      {{"InfraGraph",
        {{"devices", "OTHER", "file of devices that FILE uses and does not have; repeatable", true},
         {"bandwidth", "RATE", "of links to which the file gives none, as 450GB/s or 400Gb/s"},
         {"latency", "TIME", "of links to which the file gives none, as 500ns"},
         {"link", "NAME=RATE,TIME", "of the links of a name, whatever the file says; repeatable", true}}},
       {"Output",
        {json_option(),
         {"links", "", "print each link of the network with its rate and latency"},
         {"output", "GRAPH", "write hosts, switches and links to a file, as JSON if it ends in .json, else as YAML"},
         {"force", "", "replace an existing file"}}}}};
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

const Subcommand& show_keys_subcommand() {
  static const Subcommand command{
      "show keys",
      "Print the keys of CONFIG.yaml and of ASTRA-sim's files: type, default, range, meaning.",
      "[KEY]",
      "  orrery show keys system.network\n"
      "  orrery show keys run.output --json",
      {{"Output",
        {{"markdown", "", "print the tables of the documents"},
         {"json", "", "print JSON"},
         {"schema", "", "print the JSON schema of CONFIG.yaml, for editors"}}}},
      key_paths()};
  return command;
}

const Subcommand& show_completion_subcommand() {
  static const Subcommand command{"show completion",
                                  "Print what lets a shell complete commands, options and their values.",
                                  "SHELL",
                                  "  source <(orrery show completion bash)\n"
                                  "  orrery show completion fish > ~/.config/fish/completions/orrery.fish",
                                  {},
                                  {"bash", "zsh", "fish"}};
  return command;
}

const Subcommand& show_man_subcommand() {
  static const Subcommand command{"show man",
                                  "Print a manual page, of orrery or of one of its commands.",
                                  "[COMMAND]",
                                  "  orrery show man | man --local-file -\n"
                                  "  orrery show man show-trace > orrery-show-trace.1",
                                  {}};
  return command;
}

std::span<const Subcommand* const> subcommands() {
  static const Subcommand* const all[] = {&init_subcommand(),
                                          &run_subcommand(),
                                          &check_subcommand(),
                                          &explore_subcommand(),
                                          &best_subcommand(),
                                          &campaign_subcommand(),
                                          &cluster_subcommand(),
                                          &flows_subcommand(),
                                          &report_subcommand(),
                                          &compare_subcommand(),
                                          &calibrate_subcommand(),
                                          &generate_subcommand(),
                                          &convert_subcommand(),
                                          &synthesize_subcommand(),
                                          &partition_subcommand(),
                                          &show_results_subcommand(),
                                          &show_provenance_subcommand(),
                                          &show_trace_subcommand(),
                                          &show_topology_subcommand(),
                                          &show_collective_subcommand(),
                                          &show_tables_subcommand(),
                                          &show_plan_subcommand(),
                                          &show_graph_subcommand(),
                                          &show_network_subcommand(),
                                          &show_flows_subcommand(),
                                          &show_collisions_subcommand(),
                                          &show_queues_subcommand(),
                                          &show_kernel_subcommand(),
                                          &show_scaling_subcommand(),
                                          &show_timeline_subcommand(),
                                          &show_keys_subcommand(),
                                          &show_models_subcommand(),
                                          &show_systems_subcommand(),
                                          &show_stacks_subcommand(),
                                          &show_prices_subcommand(),
                                          &show_completion_subcommand(),
                                          &show_man_subcommand()};
  return all;
}

std::string overview() {
  std::string text =
      "Orrery simulates one step of distributed machine-learning training.\n\nUsage:\n  orrery COMMAND [OPTIONS]\n\n"
      "Commands:\n";
  for (const Subcommand* command : subcommands())
    if (!command->name.starts_with("show ")) text += fmt::format("  {:<16} {}\n", command->name, command->summary);
  text += fmt::format("  {:<16} {}\n", "show", show_summary);
  text +=
      "\n  -h, --help       print this, or with a command its options\n  --version        print versions and leave\n";
  return text + "\nExample:\n  mpirun -np 2 orrery run configs/llm-64.yaml --output results.h5\n";
}

std::string show_overview() {
  std::string text = fmt::format("{}\n\nUsage:\n  orrery show WHAT [OPTIONS]\n\nWhat:\n", show_summary);
  for (const Subcommand* command : subcommands())
    if (command->name.starts_with("show "))
      text += fmt::format("  {:<16} {}\n", command->name.substr(5), command->summary);
  return text + "\nExample:\n  orrery show topology configs/llm-64.yaml\n";
}

}  // namespace orrery::config
