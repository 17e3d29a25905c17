#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "orrery/base/quantity.hpp"
#include "orrery/collective/collective.hpp"
#include "orrery/config/key_listing.hpp"
#include "orrery/config/read.hpp"
#include "orrery/topology/network_graph.hpp"
#include "orrery/trace/store.hpp"

namespace orrery::show {

enum class TableForm : std::uint8_t { text, csv, json };

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
  config::Inputs inputs;  ///< system_only
  bool json = false;
};

/// `orrery show tables CONFIG`: which NPU holds which embedding tables.
struct ShowTablesCommand {
  std::filesystem::path file;          ///< CONFIG.yaml with a `workload` section
  std::vector<std::string> overrides;  ///< "key.path=value" of --set
  bool json = false;
};

/// `orrery show collective CONFIG`: what one collective costs.
struct ShowCollectiveCommand {
  config::Inputs inputs;  ///< system_only
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
  std::string profile;                     ///< name of gpu::Profile::registry(); empty: the first
  std::optional<config::Inputs> system;    ///< the GPUs and their network in place of a profile; system_only
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
  std::uint32_t most_links = 10;  ///< links that are listed
  TableForm form = TableForm::text;
};

/// `orrery show queues FILE`: how deep the queues of a packet network were, and who stopped whom, from the results of a
/// run.
struct ShowQueuesCommand {
  std::filesystem::path file;
  std::uint32_t most_links = 10;  ///< links that are listed
  TableForm form = TableForm::text;
};

/// `orrery show network CONFIG`: what the graph of a network allows.
struct ShowNetworkCommand {
  config::Inputs inputs;       ///< system_only
  std::uint32_t seed = 1;      ///< seed of the choice of pairs
  std::uint32_t pairs = 1000;  ///< pairs of NPUs whose paths are counted, at the most
  bool json = false;
};

/// `orrery show traffic CONFIG`: latency over load in a network that is simulated flit by flit.
struct ShowTrafficCommand {
  config::Inputs inputs;                   ///< system_only
  std::string pattern = "uniform";         ///< name of a network::FlitPattern
  std::vector<double> rates;               ///< flits of an NPU and cycle
  std::optional<std::uint32_t> dimension;  ///< none: the first one with flits
  std::uint32_t cycles = 20'000;           ///< measured
  std::uint32_t warm_up = 3000;            ///< cycles before these
  std::uint32_t seed = 1;
  TableForm form = TableForm::text;
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
  std::optional<double> event_time_s;  ///< seconds per event; none: as measured in the run
  double latency_s = 2e-6;             ///< seconds per message from rank to rank
  double message_time_s = 1e-6;        ///< seconds that each of the two ranks spends on a message
  TableForm form = TableForm::text;
};

/// `orrery show timeline FILE --chrome OUTPUT`: what NPUs did when, for a viewer.
struct ShowTimelineCommand {
  std::filesystem::path file;
  std::filesystem::path chrome;     ///< compressed if its name ends in .gz
  std::optional<std::string> npus;  ///< for parse_npu_list; none: all
  bool force = false;               ///< replace an existing file
};

/// `orrery show keys [KEY]`: what can be configured.
struct ShowKeysCommand {
  std::string below;  ///< a key, or the beginning of its path; empty: all
  config::KeyForm form = config::KeyForm::text;
};

/// `orrery show models`, `systems`, `stacks` and `prices`: which presets there are.
struct ShowPresetsCommand {
  enum class Kind : std::uint8_t { models, systems, stacks, prices };

  Kind kind = Kind::models;
  bool json = false;
};

}  // namespace orrery::show
