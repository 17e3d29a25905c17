#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "orrery/base/quantity.hpp"
#include "orrery/collective/collective.hpp"
#include "orrery/config/campaign_commands.hpp"
#include "orrery/config/key_listing.hpp"
#include "orrery/config/preset_commands.hpp"
#include "orrery/config/read.hpp"
#include "orrery/topology/network_graph.hpp"
#include "orrery/trace/store.hpp"

namespace orrery::config {

/// Print `text` and leave with `exit_code`: 0 to standard output if help was asked for, 2 to standard error if not.
struct HelpCommand {
  std::string text;
  int exit_code = 0;
};

/// `orrery --version`.
struct VersionCommand {};

/// `orrery run`: simulate.
struct RunCommand {
  Inputs inputs;
};

/// `orrery check`: everything that can be found wrong before the run.
struct CheckCommand {
  Inputs inputs;
};

/// Of which trials of a study results.h5 is kept.
enum class KeptResults : std::uint8_t {
  none,
  top,  ///< those that are listed
  all,  ///< those that are done
};

/// One of several jobs that share the configurations of a study: those whose number leaves the remainder `index`.
struct Shard {
  std::uint32_t index = 0, count = 1;
};

/// How several jobs share a study.
struct StudyParts {
  std::optional<Shard> shard;                ///< simulate this part only
  std::vector<std::filesystem::path> merge;  ///< files of all shards, which are put together
};

/// `orrery explore STUDY.yaml`: simulate the configurations of a study and say which are best.
struct ExploreCommand {
  std::filesystem::path file;          ///< STUDY.yaml
  std::filesystem::path output;        ///< explore.h5
  std::filesystem::path csv;           ///< all trials as a table; empty: none
  std::vector<std::string> overrides;  ///< "key.path=value" of --set, below what the study sets
  std::optional<std::uint32_t> trial;  ///< print the configuration of this one, simulate nothing
  std::optional<std::uint32_t> limit;  ///< simulate this many at most
  bool list = false;                   ///< print the configurations, simulate nothing
  bool dry_run = false;                ///< print the bounds of the configurations, simulate nothing
  bool strict = false;                 ///< end at the first trial that is faulty
  StudyParts parts;                    ///< parts of the study, if several jobs share it
  KeptResults keep_results = KeptResults::none;
  bool write_configurations = false;  ///< configurations of the listed trials are written next to the output
  bool no_sensitivity = false;        ///< leave out what the best trial depends on
  bool force = false;                 ///< replace existing files
  double max_walltime_s = 0;          ///< wall-clock seconds of the job; 0: no limit
};

/// `orrery best MODEL --on SYSTEM --npus N`: the fastest ways to train a model, as a study that the program writes.
struct BestCommand {
  std::string model;   ///< a preset or a file
  std::string system;  ///< a preset or a file
  std::string stack;   ///< a preset; empty: none
  std::string cost;    ///< prices: a preset or a file; empty: those of the system
  std::uint32_t npus = 1;
  std::optional<std::uint32_t> batch;  ///< sequences of a step; none: one for each NPU
  std::string serve;                   ///< requests that are to be served, a file; empty: the model is trained
  std::string slo;                     ///< "ttft=500ms,tpot=50ms"; with `serve`
  ExploreCommand explore;              ///< without `file`
};

/// `orrery flows FLOWS.yaml`: simulate flows over a packet network.
struct FlowsCommand {
  std::filesystem::path file;
  std::vector<std::string> overrides;  ///< "key.path=value" of --set
  std::filesystem::path json;          ///< all results; empty: none
  std::uint32_t queue_bins = 0;        ///< intervals in which queues are recorded; 0: they are not
  bool links = false;                  ///< record on which links flows meet
  bool in_scheduling_order = false;    ///< equal times as in ns-3, on one rank
  bool force = false;                  ///< replace an existing file
};

/// `orrery generate`: write the traces of a workload.
struct GenerateCommand {
  std::filesystem::path file;          ///< CONFIG.yaml with a `workload` section; may be empty
  std::vector<std::string> overrides;  ///< "key.path=value" of --set and of the flags that stand for them
  std::filesystem::path output;        ///< PREFIX of PREFIX.<npu>.et
  bool force = false;                  ///< replace existing files
  bool dry_run = false;                ///< print the figures, write nothing
};

/// `orrery convert`: write traces of any format as Chakra execution traces, or the description of a system as YAML.
struct ConvertCommand {
  std::vector<std::string> inputs;              ///< one file per NPU, one of several NPUs, or a name with {npu}
  std::filesystem::path output;                 ///< PREFIX of PREFIX.<npu>.et, or the name of the YAML file
  std::optional<std::filesystem::path> groups;  ///< communicator file of the traces
  std::optional<std::uint32_t> npus;            ///< NPUs of the system; none: as many as there are traces
  std::optional<std::uint32_t> nodes;           ///< nodes of a system that is made from the topology of one node
  trace::RecordingOptions recording;
  trace::Dependencies dependencies = trace::Dependencies::automatic;
  bool force = false;  ///< replace existing files
};

/// `orrery synthesize`: learn from traces, or take a learned model, and write traces of another scale.
struct SynthesizeCommand {
  ConvertCommand traces;                       ///< traces to learn from, `output` and `force`; no inputs: `model`
  std::optional<std::filesystem::path> model;  ///< a model that was learned before
  std::optional<std::filesystem::path> model_output;
  std::optional<std::string> reference;                   ///< traces of the same program with another size of one axis
  std::optional<std::filesystem::path> reference_groups;  ///< communicator file of these
  std::vector<std::pair<std::uint32_t, double>> scale;    ///< axes and their factors
  std::optional<std::uint32_t> ranks;
  std::optional<std::uint32_t> layers;
  std::optional<std::uint32_t> micro_batches;
  double sizes = 1;     ///< factor of FLOPs, bytes and durations
  double delta = 0.05;  ///< deviation of the logarithm of sizes
  double spread = 0;    ///< deviation of the logarithm of factors of all sizes that are alike
  std::uint32_t seed = 1;
  std::uint32_t min_support = 5;
  bool quiet = false;  ///< print nothing, and measure nothing that would only be printed
};

/// `orrery partition`: write a rank map (partitions/README.md) and say what it is worth.
struct PartitionCommand {
  Inputs
      inputs;  ///< system_only, but the workload is used where there is one; the flag of run.partition is the strategy
  int ranks = 1;
  std::filesystem::path output;
  bool force = false;  ///< replace an existing file
};

enum class TraceForm : std::uint8_t {
  text,
  json,
  nodes,    ///< each node as JSON in a line, in the words of Chakra's schema
  dot,      ///< the graph for Graphviz
  graphml,  ///< the graph for networkx, Gephi and others
};

/// `orrery show trace FILE...`.
struct ShowTraceCommand {
  std::vector<std::filesystem::path> files;  ///< one for all forms but text and JSON
  trace::Dependencies dependencies = trace::Dependencies::automatic;
  trace::StepChoice step;
  TraceForm form = TraceForm::text;
};

/// `orrery show topology CONFIG`.
struct ShowTopologyCommand {
  Inputs inputs;  ///< system_only
  bool json = false;
};

/// `orrery show tables CONFIG`: which NPU holds which embedding tables.
struct ShowTablesCommand {
  std::filesystem::path file;          ///< CONFIG.yaml with a `workload` section
  std::vector<std::string> overrides;  ///< "key.path=value" of --set
  bool json = false;
};

enum class TableForm : std::uint8_t { text, csv, json };

/// `orrery show collective CONFIG`: what one collective costs.
struct ShowCollectiveCommand {
  Inputs inputs;  ///< system_only
  collective::Kind kind = collective::Kind::all_reduce;
  bool is_table = false;  ///< a line for each size instead of the figures for `bytes`
  Bytes bytes;
  std::optional<std::uint32_t> npus;  ///< the first this many NPUs take part; none: all
  std::uint32_t at_once = 1;          ///< collectives of an NPU that share its links
  TableForm form = TableForm::text;   ///< text or JSON; of a table CSV too
};

/// `orrery show plan FILE`: what GPUs execute for a collective, and how long it takes them.
struct ShowPlanCommand {
  enum class Form : std::uint8_t { text, csv, json, operations };

  std::filesystem::path file;
  std::optional<Bytes> smallest, largest;  ///< messages of sizes from one to the other, each twice the one before
  std::string profile;                     ///< name in gpu::Profile::registry(); empty: the first
  std::optional<Inputs> system;            ///< the GPUs and their network in place of a profile; system_only
  std::optional<std::uint32_t> bursts;     ///< most pieces of an operation; 0: all
  Form form = Form::text;                  ///< operations: each as JSON in a line
};

/// `orrery show graph FILE`: what a graph, or a description of InfraGraph, expands to.
struct ShowGraphCommand {
  std::filesystem::path file;
  std::vector<std::filesystem::path> devices;   ///< further files, for a description of InfraGraph
  std::optional<std::filesystem::path> output;  ///< write hosts, switches and links there
  bool force = false;
  topology::LinkDefaults defaults;  ///< rates and delays of links that the file leaves out
  bool lists_links = false;         ///< print each link of the network
  bool json = false;
};

/// `orrery show flows FILE`: how long the messages of a packet network took, from the results of a run.
struct ShowFlowsCommand {
  std::filesystem::path file;
  std::uint32_t slowest = 10;  ///< messages that are listed
  TableForm form = TableForm::text;
};

/// `orrery show collisions FILE`: on which links messages of a packet network met, from the results of a run.
struct ShowCollisionsCommand {
  std::filesystem::path file;
  std::uint32_t most_links = 10;  ///< number of links that are listed
  TableForm form = TableForm::text;
};

/// `orrery show queues FILE`: how deep the queues of a packet network were, and who stopped whom, from the results of a
/// run.
struct ShowQueuesCommand {
  std::filesystem::path file;
  std::uint32_t most_links = 10;  ///< number of links that are listed
  TableForm form = TableForm::text;
};

/// `orrery show network CONFIG`: what the graph of a network allows.
struct ShowNetworkCommand {
  Inputs inputs;               ///< system_only
  std::uint32_t seed = 1;      ///< seed of the choice of pairs
  std::uint32_t pairs = 1000;  ///< pairs of NPUs whose paths are counted, at the most
  bool json = false;
};

/// `orrery show kernel FILE`: how a run went, from its results.
struct ShowKernelCommand {
  std::filesystem::path file;
  bool json = false;
};

/// `orrery show scaling FILE`: what more ranks would gain, from the load that a run recorded.
struct ShowScalingCommand {
  std::filesystem::path file;
  std::vector<std::uint32_t> ranks;    ///< empty: 2, 4, ... up to the number of blocks
  std::optional<double> event_time_s;  ///< time of an event; none: as measured in the run
  double latency_s = 2e-6;             ///< latency of a message from rank to rank
  double message_time_s = 1e-6;        ///< time that each of the two ranks spends on a message
  TableForm form = TableForm::text;
};

/// `orrery show timeline FILE --chrome OUTPUT`: what NPUs did when, for a viewer.
struct ShowTimelineCommand {
  std::filesystem::path file;
  std::filesystem::path chrome;     ///< compressed if its name ends in .gz
  std::optional<std::string> npus;  ///< for parse_npu_list; none: all
  bool force = false;               ///< replace an existing file
};

/// `orrery report`, `orrery compare`, `orrery show results` and `orrery calibrate`: what the Python package does.
struct PackageCommand {
  std::vector<std::string> arguments;  ///< as orrery/<module>/__main__.py takes them
  std::string_view module = "report";
};

/// `orrery show keys [KEY]`: what can be configured.
struct ShowKeysCommand {
  std::string below;  ///< a key, or the beginning of its path; empty: all
  KeyForm form = KeyForm::text;
};

using Command =
    std::variant<HelpCommand, VersionCommand, RunCommand, CheckCommand, ExploreCommand, BestCommand, CampaignCommand,
                 ClusterCommand, FlowsCommand, GenerateCommand, ConvertCommand, SynthesizeCommand, PartitionCommand,
                 ShowTraceCommand, ShowTopologyCommand, ShowCollectiveCommand, ShowTablesCommand, ShowPlanCommand,
                 ShowGraphCommand, ShowFlowsCommand, ShowCollisionsCommand, ShowQueuesCommand, ShowNetworkCommand,
                 ShowKernelCommand, ShowScalingCommand, ShowTimelineCommand, ShowKeysCommand, ShowPresetsCommand,
                 InitCommand, PackageCommand>;

/// Parses main's arguments, the program's name included; touches no file. Throws Error (usage): an unknown subcommand
/// or option (with the nearest known one), a missing or superfluous argument, a value that cannot be read. Cost
/// O(length of the arguments).
Command parse_command_line(std::span<const char* const> arguments);

}  // namespace orrery::config
