#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "orrery/config/read.hpp"
#include "orrery/trace/store.hpp"

namespace orrery::cli {

/// Print `text` and leave with `exit_code`: 0 to standard output if help was asked for, 2 to standard error if not.
struct HelpCommand {
  std::string text;
  int exit_code = 0;
};

/// `orrery --version`.
struct VersionCommand {};

/// `orrery run`: simulate.
struct RunCommand {
  config::Inputs inputs;
};

/// `orrery check`: everything that can be found wrong before the run.
struct CheckCommand {
  config::Inputs inputs;
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
  config::Inputs
      inputs;  ///< system_only, but the workload is used where there is one; the flag of run.partition is the strategy
  int ranks = 1;
  std::filesystem::path output;
  bool force = false;  ///< replace an existing file
};

/// `orrery report`, `orrery compare`, `orrery show results` and `orrery calibrate`: what the Python package does.
struct PackageCommand {
  std::vector<std::string> arguments;  ///< as orrery/<module>/__main__.py takes them
  std::string_view module = "report";
};

/// `orrery cluster CONFIG.yaml`: many jobs on one cluster over time.
struct ClusterCommand {
  config::Inputs inputs;
  std::filesystem::path output;  ///< cluster.h5
  bool overload = false;         ///< accept a load of 1 or more
  bool force = false;            ///< replace existing files
};

/// `orrery init --model MODEL --system SYSTEM --npus N`: write a CONFIG.yaml to start from.
struct InitCommand {
  std::string model;                   ///< a preset or a file
  std::string system;                  ///< a preset or a file
  std::string stack;                   ///< a preset; empty: the usual one of the system's processor
  std::uint32_t npus = 1;              ///< number of NPUs
  std::optional<std::uint32_t> batch;  ///< sequences of a step; none: as many as there are NPUs
  std::filesystem::path output;        ///< CONFIG.yaml
  bool force = false;                  ///< replace an existing file
};

}  // namespace orrery::cli
