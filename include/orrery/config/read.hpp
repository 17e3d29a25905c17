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
  std::filesystem::path network;        ///< network.yml, or config.txt of ns-3
  std::filesystem::path remote_memory;  ///< remote_memory.json; may be empty with Inputs::system_only
  std::filesystem::path groups;         ///< comm_group.json; empty: none
  std::filesystem::path logical = {};   ///< the sizes of dimensions on ns-3's topology; empty: none
  std::uint32_t num_queues_per_dim = 1;
  double injection_scale = 1;  ///< multiplies the endpoint delay of system.json
  double comm_scale = 1;       ///< without effect, as in ASTRA-sim: a warning unless 1
  double compute_scale = 1;    ///< the same
  bool rendezvous = false;
  std::vector<std::string> ignored = {};  ///< names of flags that were given and have no meaning here: a warning
};

/// The value of a key that an option of the command line gives. It stands above the configuration file; a path in it
/// is relative to the current folder.
struct FlagValue {
  std::string key;     ///< "run.output"
  std::string text;    ///< as it was given
  std::string option;  ///< as the command calls it: "--output"
};

/// All that a command names as its configuration: exactly one of `file` and `astra_sim`.
struct Inputs {
  std::filesystem::path file = {};          ///< CONFIG.yaml
  std::vector<std::string> overrides = {};  ///< "key.path=value" of --set, applied in order; with `file` only
  std::optional<AstraSimInputs> astra_sim = {};
  std::vector<FlagValue> flags = {};
  bool system_only = false;  ///< the command needs no workload: it may be absent, and is not looked for

  /// Returns the text that a flag gives for a key; none if none does.
  std::optional<std::string> flag(std::string_view key) const;
};

/// Reads, resolves (defaults < CONFIG.yaml < --set < flags) and validates a configuration. Does not look whether trace
/// files are there. Throws all faults as one Error (Faults::raise): bad_input with file, line and key, what was found,
/// what was expected and what to do; usage for a --set that is no "key=value". Reads text files only; not collective;
/// cost O(size of the files).
Configuration read(const Inputs& inputs);

/// The result of `examine`. With faults, the configuration has the sizes of the dimensions, the workload and
/// `replay_only`, all else at its default: or nothing, if that much is not known.
struct Findings {
  std::optional<Configuration> configuration;
  Faults faults;
};
/// Does the same as `read` for `orrery check`, which goes on to the traces.
Findings examine(const Inputs& inputs);

/// Returns the faults of single keys, values, units and files of a CONFIG.yaml and its settings. Does not look at the
/// whole, so that what is found does not depend on how keys fit together. Throws no faults of the input.
Faults faults_of_keys(const Inputs& inputs);

/// Reads `workload.model` and `workload.parallel` of a CONFIG.yaml, whatever else it holds, with the settings of --set;
/// without a file those of a transformer on 64 NPUs (docs/workloads.md). Throws as `read`.
workload::Description read_workload(const std::filesystem::path& file, const std::vector<std::string>& overrides);
/// Reads the workload that a run of this CONFIG.yaml would generate: that of `read_workload`, with what it takes from
/// the system, as far as there is one. Throws as `read`.
Workload read_generation(const std::filesystem::path& file, const std::vector<std::string>& overrides);

/// Reads the text of a CONFIG.yaml. `name` stands for the file in messages; relative paths start from `folder`. Throws
/// as `read`.
Configuration parse(std::string_view text, const std::string& name, const std::filesystem::path& folder = {},
                    bool system_only = false);

}  // namespace orrery::config
