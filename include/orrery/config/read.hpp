#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/base/faults.hpp"
#include "orrery/config/configuration.hpp"

namespace orrery::config {

/// ASTRA-sim's own files and flags, as they are given. Rules are then `astra-sim`.
struct AstraSimInputs {
  std::string workload;                 ///< PREFIX of PREFIX.<npu>.et; may be empty with Inputs::system_only
  std::filesystem::path system;         ///< system.json
  std::filesystem::path network;        ///< network.yml
  std::filesystem::path remote_memory;  ///< remote_memory.json; may be empty with Inputs::system_only
  std::filesystem::path groups;         ///< comm_group.json; empty: none
  std::uint32_t num_queues_per_dim = 1;
  double injection_scale = 1;  ///< multiplies the endpoint delay of system.json
  double comm_scale = 1;       ///< without effect, as in ASTRA-sim: a warning unless 1
  double compute_scale = 1;    ///< the same
  bool rendezvous = false;
  std::vector<std::string> ignored = {};  ///< names of flags that were given and have no meaning here: a warning
};

/// Settings of the command line; each stands above the configuration file where it is given. Paths are relative to the
/// current folder.
struct Flags {
  std::optional<std::filesystem::path> output = {};
  std::optional<bool> force = {};
  std::optional<bool> fold = {};
  std::optional<std::string> partition = {};     ///< a strategy or a file (partition::PartitionOptions)
  std::string partition_option = "--partition";  ///< what the command calls it
  std::optional<bool> timeline = {};
  std::optional<std::uint32_t> record_iterations = {};
  std::optional<network::Model> network = {};
  std::optional<ExcessPolicy> memory = {};
  std::optional<Bytes> local_memory_size = {};
  std::optional<Progress> progress = {};
  std::optional<double> progress_interval_s = {};
  std::optional<double> max_walltime_s = {};
  std::optional<std::uint32_t> iterations = {};
  std::optional<double> compute_noise = {};
  std::optional<std::uint32_t> noise_seed = {};
  std::optional<bool> quiet = {};
  std::optional<bool> print_npus = {};
  std::optional<trace::Dependencies> dependencies = {};
  std::optional<trace::Streams> streams = {};
};

/// All that a command names as its configuration: exactly one of `file` and `astra_sim`.
struct Inputs {
  std::filesystem::path file = {};          ///< CONFIG.yaml
  std::vector<std::string> overrides = {};  ///< "key.path=value" of --set, applied in order; with `file` only
  std::optional<AstraSimInputs> astra_sim = {};
  Flags flags = {};
  bool system_only = false;  ///< the command needs no workload: it may be absent, and is not looked for
};

/// Reads, resolves (defaults < CONFIG.yaml < --set < flags) and validates. Existence of trace files is not checked
/// here. Throws all faults as one Error (Faults::raise): bad_input with file, line and key, what was found, what was
/// expected and what to do; usage for a --set that is no "key=value". Reads text files only; not collective; cost
/// O(size of the files).
Configuration read(const Inputs& inputs);

/// The same for `orrery check`, which goes on to the traces. With faults, the configuration has the sizes of the
/// dimensions, the workload and `replay_only`, all else at its default: or nothing, if that much is not known.
struct Findings {
  std::optional<Configuration> configuration;
  Faults faults;
};
Findings examine(const Inputs& inputs);

/// `workload.model` and `workload.parallel` of a CONFIG.yaml, whatever else it holds, with the settings of --set;
/// without a file those of a transformer on 64 NPUs (docs/workloads.md). Throws as `read`.
workload::Description read_workload(const std::filesystem::path& file, const std::vector<std::string>& overrides);

/// Reads the text of a CONFIG.yaml. `name` stands for the file in messages, relative paths start from `folder`.
Configuration parse(std::string_view text, const std::string& name, const std::filesystem::path& folder = {},
                    bool system_only = false);

}  // namespace orrery::config
