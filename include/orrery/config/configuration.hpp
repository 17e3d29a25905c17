#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "orrery/base/error.hpp"
#include "orrery/base/faults.hpp"
#include "orrery/base/ids.hpp"
#include "orrery/campaign/options.hpp"
#include "orrery/cluster/options.hpp"
#include "orrery/collective/collective.hpp"
#include "orrery/config/npu_list.hpp"
#include "orrery/cost/prices.hpp"
#include "orrery/gpu/options.hpp"
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
/// Returns "physical" or "astra-sim".
std::string_view name(RuleSet rules);

/// A text input that was read, verbatim, and the name of its dataset in the results: "configuration.yaml", ...
using InputText = std::pair<std::string, std::string>;

/// The NPUs first..last (both included) read these traces.
struct TraceFiles {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  std::string pattern;  ///< a path; every "{npu}" in it stands for the NPU's number
};

/// What traces are of NPUs that the system does not have: of no concern where a list says which traces count; refused
/// where a prefix names them; ignored where ASTRA-sim's flag does.
enum class SurplusTraces : std::uint8_t { of_no_concern, refused, ignored };

struct Job;

/// What the NPUs execute: traces, what is generated, or several jobs.
struct Workload {
  std::optional<workload::Description> generated;
  /// Estimates the operations of the generated workload, if the compute model does that. Not compared.
  std::shared_ptr<const compute::ComputeModel> estimates;
  /// Every NPU of the topology in exactly one entry, ascending. A prefix is the pattern "PREFIX.{npu}.et"; one file for
  /// all NPUs is a pattern without "{npu}". Empty with `generated`, and where the command does not need a workload.
  std::vector<TraceFiles> traces;
  SurplusTraces surplus = SurplusTraces::of_no_concern;  ///< Not compared
  std::optional<std::filesystem::path> groups;           ///< communicator file (JSON), for trace::parse_groups
  std::optional<InputText> groups_text;                  ///< contents of `groups`, if read. Not compared
  trace::Dependencies dependencies = trace::Dependencies::automatic;
  trace::Streams streams = trace::Streams::automatic;
  trace::RecordingOptions recording;
  workload::Precision traced_precision = workload::Precision::bf16;  ///< precision of traces
  trace::CustomNodes custom_nodes;  ///< numbers in collective::CustomCollectives::of_nodes, from 1 on
  std::vector<Job> jobs;            ///< jobs on disjoint NPUs; with any, the rest is empty
  bool jobs_alone = false;          ///< simulate each job without the others too
  bool is_one_of_jobs = false;  ///< the only job is one of several, and its groups carry its name as with the others

  workload::Precision precision() const { return generated ? generated->parallel.precision : traced_precision; }

  /// Says whether nodes take turns by the dimensions that they use, where they name no stream.
  bool counts_by_dimension() const {
    return streams == trace::Streams::by_name || streams == trace::Streams::by_dimension;
  }
  /// Returns the name of an NPU's trace. A broken invariant if no entry holds the NPU. Cost O(log entries).
  std::filesystem::path trace_of(NpuId npu) const;
};

/// One of several workloads that share the system.
struct Job {
  std::string name;
  /// NPUs of the system, each once. Their order gives the job's own NPUs: the first of them is its NPU 0.
  std::vector<NpuRange> allocation;
  Time start;                    ///< when its first nodes are ready
  std::uint32_t iterations = 1;  ///< as npu::Options::iterations
  Workload workload;             ///< counts the job's own NPUs

  std::uint32_t num_npus() const;
  /// Returns [num_npus] the NPUs of the system. O(num_npus).
  std::vector<NpuId> npus() const;
};

/// How NPUs and links differ from what the system says. The speeds of NPUs are in npu::Options::compute_speed too;
/// distributions are in npu::Options::noise.
struct Perturbation {
  struct SlowNpus {
    std::vector<NpuRange> npus;
    double compute = 1;  ///< factor of compute speed

    friend bool operator==(const SlowNpus&, const SlowNpus&) = default;
  };
  struct Links {
    std::uint32_t dimension = 0;
    std::vector<NpuRange> npus;         ///< with `failed`: two NPUs, the link between them
    std::vector<std::string> switches;  ///< a switch, or two and the links between them; `npus` is then empty
    topology::Port port;
    bool failed = false;

    friend bool operator==(const Links&, const Links&) = default;
  };
  std::vector<SlowNpus> slow_npus;
  std::vector<double> compute_speed;                        ///< [num_npus], or empty: 1 for all
  std::optional<std::filesystem::path> compute_speed_file;  ///< where they were read
  std::vector<Links> links;
  std::uint32_t repetitions = 1;  ///< runs, each with the seed after that of the one before

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

/// Whether what is printed has colours.
enum class Colours : std::uint8_t {
  automatic,  ///< on a terminal, unless the environment has NO_COLOR
  always,
  never,
};

/// How NPUs are divided among ranks, and inside a rank.
struct NpuDivision {
  partition::PartitionOptions partition;  ///< which rank hosts which NPU (partitions/README.md)
  std::uint32_t cell_size = 0;            ///< most NPUs in a cell (docs/kernel.md); 0: as many as fit most caches
};

/// How the simulation runs and what it leaves behind; no simulated result depends on it.
struct RunOptions : NpuDivision {
  std::filesystem::path output = "results.h5";
  bool force = false;  ///< replace an existing output
  ExcessPolicy memory = ExcessPolicy::error;
  bool fold = false;  ///< NPUs that are alike are simulated once (docs/folding.md)
  Progress progress = Progress::automatic;
  double progress_interval_s = 30;  ///< wall-clock seconds between progress lines; positive
  bool quiet = false;               ///< neither progress nor summary
  bool verbose = false;             ///< the summary has all that is known
  bool sensitivity = false;         ///< print which inputs of the system matter most
  Colours colours = Colours::automatic;
  bool record_load = false;  ///< keep what each block of NPUs did when (docs/scaling.md)
  bool print_npus = false;   ///< ASTRA-sim's line per NPU on standard output at the end
  /// Wall-clock seconds of the whole job; at 0.99 of it the run stops in order. 0: no limit.
  double max_walltime_s = 0;
  std::filesystem::path checkpoint;     ///< file of checkpoints; empty: none are written
  double checkpoint_interval_s = 1800;  ///< wall-clock seconds between two of them; positive
  std::filesystem::path restart;        ///< checkpoint from which the run goes on; empty: it begins at time 0
  /// Wall-clock seconds without any progress of a clock until the run aborts. 0: never.
  double watchdog_s = 300;

  bool shows_progress() const { return progress != Progress::none && !quiet; }
};

/// The whole resolved configuration of a run. Each key of CONFIG.yaml has a descriptor in src/config/keys, which says
/// which of these members it sets; reading, writing and comparing a configuration follow from the descriptors.
struct Configuration {
  RuleSet rule_set = RuleSet::physical;         ///< rule set of `follow`
  std::vector<topology::Dimension> dimensions;  ///< dimension 0 innermost
  topology::PortRates port_rates;               ///< rates of the ports that dimensions name
  collective::Options collectives;              ///< algorithm lists: one entry per dimension
  gpu::Options gpu;                             ///< with the plans of custom collectives
  npu::Options execution;                       ///< with the compute options and the timeline switch
  /// Peak compute rates, FLOPs per second, where they are given by precision; empty: execution.compute.peak_flops is
  /// that of all. Else that is the one of `precision`, or 0 if it has none.
  std::map<workload::Precision, double> peaks;
  memory::RemoteMemoryOptions remote_memory;
  Perturbation perturbation;
  cost::Prices prices;
  campaign::Options campaign;
  cluster::Options cluster;
  Workload workload;
  RunOptions run;

  /// The text inputs that were read, but for groups_text and partition_text. Not compared.
  std::vector<InputText> inputs;
  std::string model_file;                   ///< file of the generated workload's model; empty: none. Not compared
  std::optional<InputText> partition_text;  ///< contents of the rank map's file, if there is one. Not compared
  /// Measured steps to which numbers were fitted, a mapping in YAML's flow style (provenance.hpp); empty: none.
  std::string provenance;
  /// What was accepted but has no meaning or effect here, to be said once. Not compared.
  std::vector<std::string> warnings;
  /// Where each key was given, by its path: a line of a file, or an option. Not compared.
  std::map<std::string, Place, std::less<>> places;
  /// Keys that were given another value than their default, and where that was last: a file, a setting of --set, or
  /// empty for another option. Keys in lists have numbers in their paths, as in messages. Not compared.
  std::map<std::string, std::string, std::less<>> changed_keys;

  /// Returns the precision of the workload's compute nodes, or of the first job's.
  workload::Precision precision() const;
  /// Returns the options of the compute model for products of a precision. Their peak is 0 if `peaks` has none for it.
  compute::Options compute_in(workload::Precision precision) const;
  /// Returns the name of the precision that traces of a workload must have; empty if the peak does not depend on it.
  std::string required_precision(const Workload& of) const;
  /// Returns the workloads of all jobs, or the only one.
  std::vector<const Workload*> workloads() const;
  /// Sets the rule set, and with it the rules in the options of every module.
  void follow(RuleSet rules);
  /// Makes choices that were left to Orrery, and copies settings that several modules need from where they are
  /// configured to the options of the others.
  void share_settings();
  /// Sets the seed of all draws, and draws again what is drawn once for a run. `share_settings` comes first.
  void draw_with(std::uint32_t seed);
  /// Returns whether the switches of a shape may choose among routes (topology::Routing::adaptive).
  bool may_choose_routes() const;
  /// Returns the topology with the links of the perturbation. Throws as topology::Topology and topology::Links do.
  topology::Topology topology() const;
  /// Returns `collectives` with what the network model decides of them.
  collective::Options collective_options() const;
  network::DelayModel delays() const { return network::DelayModel(topology(), execution.network.rules); }
  /// Returns where a key was given; only its path if it was not.
  Place place_of(std::string_view path) const;

  /// Validates the options of every module, and that the traces hold every NPU once (where there are any).
  void validate(Faults& faults) const;

  /// Returns the configuration as CONFIG.yaml with all defaults written out and absolute paths: reading it gives an
  /// equal configuration. Without `with_run` it leaves out what no simulated result depends on.
  std::string to_yaml(bool with_run = true) const;

  /// True if the values of all keys are equal. Paths are equal if they name the same file from the current folder.
  friend bool operator==(const Configuration& a, const Configuration& b);

 private:
  std::vector<Workload*> own_workloads();
  void settle_streams();
  void settle_experts();
  void settle_switching();
  void settle_gpu();
};

}  // namespace orrery::config
