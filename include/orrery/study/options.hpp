#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "orrery/config/read.hpp"

namespace orrery::study {

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
  bool write_configurations = false;  ///< configurations of the trials that are listed, beside the output
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
  std::string phase;                   ///< step of inference, "prefill" or "decode"; empty: of training
  std::string serve;                   ///< requests that are to be served, a file; empty: the model is trained
  std::string slo;                     ///< "ttft=500ms,tpot=50ms"; with `serve`
  ExploreCommand explore;              ///< without `file`
};

/// `orrery campaign CONFIG.yaml`: how much of weeks a job trains.
struct CampaignCommand {
  config::Inputs inputs;
  std::filesystem::path output;    ///< campaign.h5
  std::filesystem::path times;     ///< times that a campaign found before; empty: none
  bool optimise_interval = false;  ///< try intervals of checkpoints
  bool optimise_standby = false;   ///< try numbers of standbys
  bool keeps_times = true;         ///< write simulated times beside the output
  bool fold = false;               ///< simulate NPUs that are alike once
  bool force = false;              ///< replace existing files
};

}  // namespace orrery::study
