#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "orrery/base/faults.hpp"
#include "orrery/base/ids.hpp"
#include "orrery/collective/collective.hpp"
#include "orrery/config/npu_list.hpp"
#include "orrery/memory/options.hpp"
#include "orrery/network/delay_model.hpp"
#include "orrery/npu/options.hpp"
#include "orrery/partition/strategy.hpp"
#include "orrery/topology/topology.hpp"
#include "orrery/trace/store.hpp"
#include "orrery/workload/description.hpp"

namespace orrery::config {

/// Which of the two sets of arithmetic rules (docs/model.md, 1).
enum class RuleSet : std::uint8_t { physical, astra_sim };
/// "physical", "astra-sim".
std::string_view name(RuleSet rules);

/// The NPUs first..last (both included) read these traces.
struct TraceFiles {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  std::string pattern;  ///< a path; every "{npu}" in it stands for the NPU's number
};

/// What the NPUs execute: traces, or what is generated.
struct Workload {
  std::optional<workload::Description> generated;
  /// Every NPU of the topology in exactly one entry, ascending. A prefix is the pattern "PREFIX.{npu}.et"; one file for
  /// all NPUs is a pattern without "{npu}". Empty with `generated`, and where the command does not need a workload.
  std::vector<TraceFiles> traces;
  std::optional<std::filesystem::path> groups;  ///< communicator file (JSON), for trace::read_group_file
  trace::Dependencies dependencies = trace::Dependencies::automatic;
  trace::Streams streams = trace::Streams::by_count;
  trace::CustomNodes custom_nodes;  ///< numbers in collective::CustomCollectives::of_nodes, from 1 on

  /// The trace of one NPU. A broken invariant if no entry holds it.
  std::filesystem::path trace_of(NpuId npu) const;
};

/// What of the system is not as the system says. Its NPU speeds are in npu::Options::compute_speed too.
struct Perturbation {
  struct SlowNpus {
    std::vector<NpuRange> npus;
    double compute = 1;  ///< factor of compute speed

    friend bool operator==(const SlowNpus&, const SlowNpus&) = default;
  };
  struct Links {
    std::uint32_t dimension = 0;
    std::vector<NpuRange> npus;  ///< with `failed`: two NPUs, the link between them
    topology::Port port;
    bool failed = false;

    friend bool operator==(const Links&, const Links&) = default;
  };
  std::vector<SlowNpus> slow_npus;
  std::vector<double> compute_speed;                        ///< [num_npus], or empty: 1 for all
  std::optional<std::filesystem::path> compute_speed_file;  ///< where they were read
  std::vector<Links> links;

  bool empty() const { return slow_npus.empty() && compute_speed.empty() && links.empty(); }
};

enum class Progress : std::uint8_t {
  automatic,  ///< one line that renews itself if standard error is a terminal, else plain
  plain,      ///< a line every interval
  none,
};

/// What becomes of a run in which tensors exceed the local memory.
enum class ExcessPolicy : std::uint8_t {
  error,
  report,  ///< the results and the summary tell
};

/// How the simulation runs and what it leaves behind; no simulated result depends on it.
struct RunOptions {
  std::filesystem::path output = "results.h5";
  bool force = false;                                ///< replace an existing output
  partition::PartitionOptions partition;             ///< which rank hosts which NPU (partitions/README.md)
  Place partition_named_by{.key = "run.partition"};  ///< the option or the line, for messages; not compared
  ExcessPolicy memory = ExcessPolicy::error;
  bool fold = false;  ///< NPUs that are alike are simulated once (docs/folding.md)
  Progress progress = Progress::automatic;
  double progress_interval_s = 30;  ///< wall-clock seconds between progress lines; positive
  bool quiet = false;               ///< neither progress nor summary
  bool print_npus = false;          ///< ASTRA-sim's line per NPU on standard output at the end
  double max_walltime_s =
      0;                    ///< wall-clock seconds of the whole job; at 0.99 of it the run stops in order; 0: no limit
  double watchdog_s = 300;  ///< wall-clock seconds without any progress of a clock until the run aborts; 0: never
};

/// The whole resolved configuration of a run.
struct Configuration {
  RuleSet rule_set = RuleSet::physical;         ///< of `follow`
  std::vector<topology::Dimension> dimensions;  ///< dimension 0 innermost
  collective::Options collectives;              ///< algorithm lists: one entry per dimension
  npu::Options executor;                        ///< with the compute options and the timeline switch
  /// Peak compute rates, FLOPs per second, where they are given by precision; empty: executor.compute.peak_flops is
  /// that of all. Else that is the one of `precision`, or 0 if it has none.
  std::map<workload::Precision, double> peaks;
  memory::RemoteMemoryOptions remote_memory;
  Perturbation perturbation;
  Workload workload;
  RunOptions run;

  /// Every text input that was read, verbatim: ("configuration.yaml" | "system.json" | ..., text). Not compared.
  std::vector<std::pair<std::string, std::string>> inputs;
  /// What was accepted but has no meaning or effect here, to be said once. Not compared.
  std::vector<std::string> warnings;

  /// In which the compute nodes of a workload work: of a generated one its own; traces do not say theirs, and count as
  /// bf16.
  workload::Precision precision() const {
    return workload.generated ? workload.generated->parallel.precision : workload::Precision::bf16;
  }
  /// Sets the rule set, and with it the rules in the options of every module.
  void follow(RuleSet rules);
  /// With the links of the perturbation. Throws as topology::Topology and topology::Links do.
  topology::Topology topology() const;
  network::DelayModel delays() const { return network::DelayModel(topology(), executor.network.rules); }

  /// Validates the options of every module and that the traces cover every NPU once (where there are any).
  void validate(Faults& faults) const;

  /// The configuration as CONFIG.yaml with all defaults written out and absolute paths: reading it gives an equal one.
  /// Without `with_run` its `run` section, which no simulated result depends on, is left out.
  std::string to_yaml(bool with_run = true) const;

  /// Equal but for inputs and warnings; paths are equal if they name the same file from the current folder.
  friend bool operator==(const Configuration& a, const Configuration& b);
};

}  // namespace orrery::config
