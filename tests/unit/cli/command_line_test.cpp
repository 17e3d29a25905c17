#include "orrery/cli/command_line.hpp"

#include <stdexcept>

#include "expect_error.hpp"
#include "options.hpp"
#include "orrery/show/options.hpp"
#include "orrery/study/options.hpp"

namespace orrery::cli {
namespace {

using namespace config;
using namespace show;
using namespace study;

Command parsed(std::initializer_list<const char*> words) {
  std::vector<const char*> argv = {"orrery"};
  argv.insert(argv.end(), words);
  return parse_command_line(argv);
}

template <class T>
T as(std::initializer_list<const char*> words) {
  const Command command = parsed(words);
  const T* const options = command.options<T>();
  if (options == nullptr) throw std::runtime_error("another command");
  return *options;
}

void refused(std::initializer_list<const char*> words, std::initializer_list<std::string_view> parts) {
  expect_error([&] { parsed(words); }, ErrorCode::usage, parts);
}

// The command line has no command. The help names all commands and the exit code is 2. With --help the exit code is 0.
TEST(CommandLine, AloneItPrintsHelpAndLeavesWithTwo) {
  const auto help = as<HelpCommand>({});
  EXPECT_EQ(help.exit_code, 2);
  for (const std::string_view part : {"run", "check", "generate", "partition", "show", "Example"})
    EXPECT_NE(help.text.find(part), std::string::npos) << part;
  EXPECT_EQ(as<HelpCommand>({"--help"}).exit_code, 0);
  EXPECT_TRUE(parsed({"--version"}).options<VersionCommand>() != nullptr);
}

// Each command is asked for its help. The text has the usage and an example, and the exit code is 0.
TEST(CommandLine, EveryHelpHasAnExample) {
  for (const auto& words : std::initializer_list<std::initializer_list<const char*>>{{"run", "--help"},
                                                                                     {"check", "-h"},
                                                                                     {"generate", "--help"},
                                                                                     {"partition", "--help"},
                                                                                     {"show", "--help"},
                                                                                     {"show", "trace", "--help"},
                                                                                     {"show", "topology", "--help"},
                                                                                     {"show", "collective", "--help"},
                                                                                     {"show", "kernel", "--help"}}) {
    const auto help = as<HelpCommand>(words);
    EXPECT_EQ(help.exit_code, 0);
    EXPECT_NE(help.text.find("Example:\n  "), std::string::npos) << help.text;
    EXPECT_NE(help.text.find("orrery"), std::string::npos);
    EXPECT_NE(help.text.find("Usage:"), std::string::npos);
  }
  const auto run = as<HelpCommand>({"run", "--help"}).text;
  EXPECT_NE(run.find("--workload-configuration PREFIX"), std::string::npos) << run;
  EXPECT_EQ(run.find("positional"), std::string::npos) << run;
}

// Values begin with a control character, which stands for long values inside, alone or with the number of an argument.
// They are kept as they are, also beside a long one.
TEST(CommandLine, ValuesMayBeginWithAControlCharacter) {
  const std::string longer = "--set=a=" + std::string(2000, 'x');
  const auto inputs = as<RunCommand>({"run",
                                      "\x01"
                                      "2",
                                      "--output", "\x01",
                                      "--partition=\x01"
                                      "9",
                                      longer.c_str()})
                          .inputs;
  EXPECT_EQ(inputs.file,
            "\x01"
            "2");
  EXPECT_EQ(inputs.flag("run.output"), "\x01");
  EXPECT_EQ(inputs.flag("run.partition"),
            "\x01"
            "9");
  EXPECT_EQ(inputs.overrides, (std::vector<std::string>{longer.substr(6)}));
  refused({"convert", "a.xml", "--output", "a.yaml", "--nodes",
           "\x01"
           "99"},
          {"--nodes"});
}

// `run` gets a configuration, two settings and all its flags, in both spellings. Each flag becomes the text of its
// configuration key.
TEST(CommandLine, RunWithItsOwnConfiguration) {
  const auto inputs =
      as<RunCommand>({"run", "c.yaml", "--set", "a.b=[1, 2]", "--set=c=1,2", "--output", "r.h5", "--force",
                      "--partition=map.txt", "--timeline", "--progress=plain", "--progress-interval", "5", "--quiet",
                      "--print-npus", "--memory=report", "--network=congestion-unaware", "--dependencies=data"})
          .inputs;
  EXPECT_EQ(inputs.file, "c.yaml");
  EXPECT_FALSE(inputs.astra_sim);
  EXPECT_FALSE(inputs.system_only);
  EXPECT_EQ(inputs.overrides, (std::vector<std::string>{"a.b=[1, 2]", "c=1,2"}));
  const std::vector<std::pair<std::string, std::string>> values = {{"run.output", "r.h5"},
                                                                   {"run.force", "true"},
                                                                   {"run.partition", "map.txt"},
                                                                   {"run.timeline", "true"},
                                                                   {"run.progress", "plain"},
                                                                   {"run.progress-interval", "5 s"},
                                                                   {"run.memory", "report"},
                                                                   {"run.quiet", "true"},
                                                                   {"run.print-npus", "true"},
                                                                   {"workload.dependencies", "data"},
                                                                   {"system.network.model", "congestion-unaware"}};
  for (const auto& [key, text] : values) EXPECT_EQ(inputs.flag(key), text) << key;
  EXPECT_EQ(inputs.flags.size(), values.size());
  EXPECT_EQ(as<RunCommand>({"run", "c.yaml", "--progress-interval=500 ms"}).inputs.flag("run.progress-interval"),
            "500 ms");
  EXPECT_TRUE(as<RunCommand>({"run", "c.yaml"}).inputs.flags.empty());
}

// `run` gets ASTRA-sim's files and flags. The inputs hold each file and value, and list the flag that is ignored; the
// file 'empty' stands for none.
TEST(CommandLine, RunWithAstraSimsFiles) {
  const auto inputs =
      as<RunCommand>({"run", "--workload-configuration=a,b/w", "--system-configuration", "s.json",
                      "--network-configuration=n.yml", "--remote-memory-configuration=m.json",
                      "--comm-group-configuration=g.json", "--num-queues-per-dim=4", "--injection-scale=1.5",
                      "--comm-scale=2", "--compute-scale=1", "--rendezvous-protocol=true", "--logging-folder=log",
                      "--logging-configuration=empty", "--output=r.h5"})
          .inputs;
  ASSERT_TRUE(inputs.astra_sim);
  const auto& files = *inputs.astra_sim;
  EXPECT_EQ(files.workload, "a,b/w");
  EXPECT_EQ(files.system, "s.json");
  EXPECT_EQ(files.network, "n.yml");
  EXPECT_EQ(files.remote_memory, "m.json");
  EXPECT_EQ(files.groups, "g.json");
  EXPECT_EQ(files.num_queues_per_dim, 4U);
  EXPECT_EQ(files.injection_scale, 1.5);
  EXPECT_EQ(files.comm_scale, 2);
  EXPECT_TRUE(files.rendezvous);
  EXPECT_EQ(files.ignored, std::vector<std::string>{"logging-folder"});
  EXPECT_EQ(inputs.flag("run.output"), "r.h5");
  const auto none =
      as<CheckCommand>({"check", "--workload-configuration=w", "--system-configuration=s", "--network-configuration=n",
                        "--remote-memory-configuration=m", "--comm-group-configuration=empty"});
  EXPECT_TRUE(none.inputs.astra_sim->groups.empty());
}

// The command line names no configuration, two of them, or a part of ASTRA-sim's files. Each is a usage error that says
// what is missing or too much.
TEST(CommandLine, UsageErrorsOfTheInputs) {
  refused({"run"}, {"no configuration", "CONFIG.yaml"});
  refused({"run", "c.yaml", "--system-configuration=s"}, {"both 'c.yaml' and ASTRA-sim's files"});
  refused({"run", "--system-configuration=s", "--workload-configuration=w"},
          {"--network-configuration, --remote-memory-configuration missing"});
  refused({"run", "c.yaml", "--set", "x"}, {"--set x", "KEY.PATH=VALUE"});
  refused({"run", "c.yaml", "d.yaml"}, {"unexpected argument 'd.yaml' after 'c.yaml'"});
  refused({"run", "c.yaml", "--network=ns3"}, {"--network: found 'ns3'", "congestion-unaware", "congestion-aware"});
  refused({"check", "c.yaml", "--output=x"}, {"unknown option '--output'", "orrery check --help"});
}

// The command line has an unknown command, an unknown option, or an option with a wrong value. Each is a usage error
// that names it and what is expected or near.
TEST(CommandLine, UsageErrorsOfOptions) {
  refused({"rum"}, {"unknown command 'rum'", "Did you mean 'run'?"});
  refused({"--quiet"}, {"unknown option '--quiet' before a command"});
  refused({"run", "c.yaml", "--outptu=x"},
          {"unknown option '--outptu'", "Did you mean '--output'?", "orrery run --help"});
  refused({"run", "c.yaml", "--output"}, {"output"});
  refused({"run", "c.yaml", "--output="}, {"--output"});
  refused({"run", "c.yaml", "--output=a", "--output=b"}, {"--output is given twice"});
  refused({"run", "c.yaml", "--force=perhaps"}, {"--force: found 'perhaps'", "true or false"});
  refused({"run", "c.yaml", "--progress=sometimes"}, {"--progress: found 'sometimes'", "auto, plain or none"});
  refused({"run", "c.yaml", "--memory=warn"}, {"--memory: found 'warn'", "error or report"});
  refused({"run", "c.yaml", "--progress-interval=0"}, {"--progress-interval"});
  refused({"run", "c.yaml", "--dependencies=none"}, {"auto, data, ctrl or both"});
  refused({"run", "--num-queues-per-dim=0", "--workload-configuration=w", "--system-configuration=s",
           "--network-configuration=n", "--remote-memory-configuration=m"},
          {"--num-queues-per-dim: found '0'", "1 or more"});
  refused({"run", "--injection-scale=-1", "--workload-configuration=w", "--system-configuration=s",
           "--network-configuration=n", "--remote-memory-configuration=m"},
          {"--injection-scale: found '-1'"});
}

// `generate` gets the flags of a workload. They become settings of the configuration, and a missing output or a wrong
// number is a usage error.
TEST(CommandLine, Generate) {
  const auto command = as<GenerateCommand>({"generate", "--output=p/w", "--tp", "2", "--pp=3", "--dp=5", "--layers=6",
                                            "--micro-batches=7", "--hidden=8", "--sequence=9"});
  EXPECT_EQ(command.output, "p/w");
  EXPECT_EQ(command.file, "");
  EXPECT_FALSE(command.dry_run);
  EXPECT_EQ(command.overrides,
            (std::vector<std::string>{"workload.parallel.tp=2", "workload.parallel.dp=5", "workload.parallel.pp=3",
                                      "workload.parallel.micro-batches=7", "workload.model.layers=6",
                                      "workload.model.hidden=8", "workload.model.sequence=9"}));
  const auto dry =
      as<GenerateCommand>({"generate", "c.yaml", "--dry-run", "--set", "workload.parallel.sp=true", "--ep=2"});
  EXPECT_EQ(dry.file, "c.yaml");
  EXPECT_TRUE(dry.dry_run);
  EXPECT_EQ(dry.overrides, (std::vector<std::string>{"workload.parallel.sp=true", "workload.parallel.ep=2"}));
  refused({"generate"}, {"--output is missing"});
  refused({"generate", "c.yaml", "extra", "--output=w"}, {"unexpected argument 'extra'"});
  refused({"generate", "--dry-run", "--set=no"}, {"KEY.PATH=VALUE"});
  refused({"generate", "--output=w", "--tp=0"}, {"--tp: found '0'", "1 or more"});
}

// `partition` gets a configuration, ranks, a strategy and an output. The command holds them, the strategy is `block`
// unless another one is named, and missing values are usage errors.
TEST(CommandLine, Partition) {
  const auto command = as<PartitionCommand>({"partition", "c.yaml", "--ranks=4", "--output=map", "--force"});
  EXPECT_EQ(command.inputs.file, "c.yaml");
  EXPECT_TRUE(command.inputs.system_only);
  EXPECT_EQ(command.ranks, 4);
  EXPECT_EQ(command.output, "map");
  EXPECT_TRUE(command.force);
  ASSERT_EQ(command.inputs.flags.size(), 1U);
  EXPECT_EQ(command.inputs.flags[0].key, "run.partition");
  EXPECT_EQ(command.inputs.flags[0].text, "block");
  EXPECT_EQ(command.inputs.flags[0].option, "--strategy");
  EXPECT_EQ(as<PartitionCommand>({"partition", "c.yaml", "--ranks=4", "--output=m", "--strategy=metis"})
                .inputs.flag("run.partition"),
            "metis");
  EXPECT_TRUE(as<PartitionCommand>(
                  {"partition", "--system-configuration=s", "--network-configuration=n", "--ranks=1", "--output=m"})
                  .inputs.astra_sim);
  refused({"partition", "c.yaml", "--output=map"}, {"--ranks is missing"});
  refused({"partition", "c.yaml", "--ranks=4"}, {"--output is missing"});
  refused({"partition", "c.yaml", "--ranks=none", "--output=m"}, {"--ranks: found 'none'"});
}

// `show` is asked for a trace, a topology, a collective, a timeline and the kernel's figures. Each command holds its
// own values, and missing or wrong ones are usage errors.
TEST(CommandLine, Show) {
  const auto trace = as<ShowTraceCommand>({"show", "trace", "w.0.et", "--json", "--dependencies=ctrl"});
  EXPECT_EQ(trace.files, std::vector<std::filesystem::path>{"w.0.et"});
  EXPECT_EQ(trace.form, TraceForm::json);
  EXPECT_EQ(trace.dependencies, trace::Dependencies::ctrl);
  const auto topology = as<ShowTopologyCommand>({"show", "topology", "c.yaml", "--network=congestion-aware"});
  EXPECT_TRUE(topology.inputs.system_only);
  EXPECT_EQ(topology.inputs.flag("system.network.model"), "congestion-aware");
  const auto collective = as<ShowCollectiveCommand>(
      {"show", "collective", "c.yaml", "--kind", "all-to-all", "--bytes", "64 MiB", "--npus=8"});
  EXPECT_EQ(collective.kind, collective::Kind::all_to_all);
  EXPECT_EQ(collective.bytes, Bytes(64U << 20U));
  EXPECT_EQ(collective.npus, 8U);
  EXPECT_EQ(collective.form, TableForm::text);
  EXPECT_FALSE(collective.is_table);
  EXPECT_EQ(as<ShowCollectiveCommand>({"show", "collective", "c.yaml", "--kind=barrier"}).bytes, Bytes(0));
  refused({"show"},
          {"trace, topology, collective, tables, plan, graph, network, traffic, flows, collisions, queues, kernel, "
           "scaling, timeline, keys, metrics, models, systems, stacks, prices, completion or man"});
  refused({"show", "trce"}, {"unknown 'trce'", "Did you mean 'trace'?"});
  refused({"show", "trace"}, {"no file. Give an execution trace."});
  const auto timeline = as<ShowTimelineCommand>({"show", "timeline", "r.h5", "--chrome=t.json.gz", "--npus", "0-3,7"});
  EXPECT_EQ(timeline.file, "r.h5");
  EXPECT_EQ(timeline.chrome, "t.json.gz");
  EXPECT_EQ(timeline.npus, "0-3,7");
  EXPECT_FALSE(timeline.force);
  const auto tables = as<ShowTablesCommand>({"show", "tables", "c.yaml", "--set", "a=b", "--json"});
  EXPECT_EQ(tables.file, "c.yaml");
  EXPECT_EQ(tables.overrides, std::vector<std::string>{"a=b"});
  EXPECT_TRUE(tables.json);
  refused({"show", "tables"}, {"no file"});
  const auto kernel = as<ShowKernelCommand>({"show", "kernel", "r.h5", "--json"});
  EXPECT_EQ(kernel.file, "r.h5");
  EXPECT_TRUE(kernel.json);
  refused({"show", "kernel"}, {"no file"});
  refused({"show", "collective", "c.yaml", "--bytes=1 B"}, {"--kind is missing"});
  refused({"show", "collective", "c.yaml", "--kind=all-reduce"}, {"--bytes is missing"});
  refused({"show", "collective", "c.yaml", "--kind=all-reduce", "--bytes=64"}, {"--bytes", "without a unit"});
  refused({"show", "collective", "c.yaml", "--kind=allreduce", "--bytes=64 B"},
          {"--kind: found 'allreduce'", "all-reduce"});
}

// `show keys` is asked for all keys or those below a path, as text, JSON or Markdown. The command holds the path and
// the form, and two forms at once are a usage error.
TEST(CommandLine, ShowKeys) {
  const auto all = as<ShowKeysCommand>({"show", "keys"});
  EXPECT_EQ(all.below, "");
  EXPECT_EQ(all.form, KeyForm::text);
  const auto some = as<ShowKeysCommand>({"show", "keys", "system.network", "--json"});
  EXPECT_EQ(some.below, "system.network");
  EXPECT_EQ(some.form, KeyForm::json);
  EXPECT_EQ(as<ShowKeysCommand>({"show", "keys", "--markdown"}).form, KeyForm::markdown);
  refused({"show", "keys", "--markdown", "--json"}, {"both --markdown and --json", "Give one of them"});
}

}  // namespace
}  // namespace orrery::cli
