#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "allocation.hpp"
#include "key_table.hpp"
#include "orrery/config/configuration.hpp"
#include "orrery/workload/description.hpp"

namespace orrery::config {

// The descriptors of the keys of CONFIG.yaml. To add a key, add its descriptor to the function of its subject.

/// Returns all keys of CONFIG.yaml, by subject, in the order in which they are read.
std::span<const Keys<Configuration>* const> configuration_keys();
/// Returns the descriptor of a key; null if no key of CONFIG.yaml has this path.
const AnyKey* find_key(std::string_view path);

/// A key that a subcommand has a flag for.
struct FlagKey {
  const KeyInfo* info = nullptr;
  /// Throws Error (bad_input) for a value that the key cannot have. `option` is the flag with its dashes.
  std::function<void(const std::string& text, const std::string& option)> check;
};
/// Returns the keys that a subcommand has flags for, in the order of their tables.
std::vector<FlagKey> flag_keys(Taker command);

/// Gives dimensions that lie on a graph the latency of a link and the bandwidth of its routes.
void take_delays_of_graph(Configuration& target, const Place& place);

const Keys<Configuration>& system_keys();
const Keys<Configuration>& network_keys();
const Keys<Configuration>& packet_keys();
const Keys<Configuration>& tcp_keys();
const Keys<Configuration>& collective_keys();
const Keys<Configuration>& gpu_keys();
const Keys<Configuration>& collective_library_keys();
const Keys<Configuration>& custom_collective_keys();
const Keys<Configuration>& compute_keys();
const Keys<Configuration>& communication_keys();
const Keys<Configuration>& remote_memory_keys();
const Keys<Configuration>& perturbation_keys();
const Keys<Configuration>& cost_keys();
const Keys<Configuration>& campaign_keys();
const Keys<Configuration>& generated_workload_keys();
const Keys<Configuration>& workload_keys();
const Keys<Configuration>& job_list_keys();
const Keys<Configuration>& provenance_keys();
const Keys<Configuration>& run_keys();

/// Where the defaults of the rules of flits come from.
enum class FlitPreset : std::uint8_t { booksim, garnet };
/// The rules of a dimension that is simulated flit by flit.
struct FlitEntry {
  network::FlitRules rules;
  FlitPreset preset = FlitPreset::booksim;
  bool is_torus = false;
};
const Keys<FlitEntry>& flit_keys();

/// An entry of system.network.dimensions, which stands for one dimension, or for several of one shape and bandwidth.
struct DimensionEntry {
  ShapeWord shape;
  std::vector<std::uint32_t> sizes;  ///< sizes of each of its dimensions; 0: not known
  topology::Dimension dimension;     ///< all but the size
  std::optional<FlitEntry> flits = {};
  bool lies_on_graph = false;  ///< bandwidth and latency are those of system.network.graph
};
const Keys<DimensionEntry>& dimension_keys();
void read_flits(const Value& value, const std::string& path, DimensionEntry& entry, Reading& reading);
/// Returns the dimensions, from `first` on, that an entry with flits stands for, and gives the entry the latency of a
/// hop. Throws Error (bad_input) below `place`, that of the entry, for what contradicts it.
network::FlitDimensions flits_of(DimensionEntry& entry, std::uint32_t first, const Place& place);
/// Returns the entry that stands for dimensions with flits.
DimensionEntry entry_of(const network::FlitDimensions& flits, std::span<const topology::Dimension> dimensions);

/// The family of workload.model, which decides its other keys.
struct ModelChoice {
  std::size_t family = 0;  ///< its number in workload::model_families()
};
const Keys<ModelChoice>& model_keys();

/// An entry of workload.model.layers.
struct LayerEntry {
  workload::LayerList::Layer layer;
  std::uint32_t repeat = 1;
};
const Keys<workload::Transformer>& transformer_keys();
const Keys<workload::Dlrm>& dlrm_keys();
const Keys<workload::Dlrm::Table>& table_keys();
const Keys<workload::LayerList>& layer_list_keys();
const Keys<LayerEntry>& layer_keys();
const Keys<workload::LayerList::Late>& late_keys();
const Keys<workload::Parallel>& parallel_keys();
/// Reads the list of modules that the backward pass computes again; an empty one names none.
workload::RecomputedModules as_recomputed_modules(const Value& value, const std::string& path);
std::string text_of(const workload::RecomputedModules& modules);
constexpr std::string_view recomputed_modules_expected = "a list of norms, swiglu, latent, mlp and moe";

/// An entry of perturbation.links.
struct LinkEntry {
  Perturbation::Links links;
  bool has_factors = false;  ///< it gives a bandwidth or a latency
};
const Keys<Perturbation::SlowNpus>& slow_npu_keys();
const Keys<Variation>& distribution_keys();
const Keys<campaign::TierOptions>& tier_keys_of_campaign();
/// An entry of campaign.failures, whose rate may be given as a mean time between failures.
struct FailureEntry {
  campaign::ProcessOptions options;
  campaign::Nanoseconds mtbf = 0;  ///< 0: `rate` says it
};
const Keys<FailureEntry>& failure_keys();
const Keys<Configuration>& cluster_keys();
const Keys<cluster::JobClass>& job_class_keys();
/// An entry of cluster.jobs.
struct ClusterJob {
  cluster::Job job;
  std::string job_class;
};
const Keys<ClusterJob>& cluster_job_keys();
const Keys<cost::Tier>& tier_keys();
/// Throws Error (bad_input) for a distribution whose parameters contradict each other or what it is drawn for.
void require_sound(const Variation& variation, Place place);
/// Returns the factors of a text with one in each line; lines that are empty or begin with # do not count. Throws Error
/// (bad_input) with the line of what is no factor.
std::vector<double> parse_factors(const std::string& text, const std::string& file);
const Keys<LinkEntry>& link_keys();

/// An entry of workload.traces.
struct TraceEntry {
  std::optional<NpuRange> npus;
  std::filesystem::path file;
};
const Keys<TraceEntry>& trace_keys();

/// An entry of jobs.
struct JobEntry {
  std::string name;                   ///< empty: the number of the job gives it
  std::optional<std::uint32_t> npus;  ///< none: as many as the allocation lists, or the workload has
  Allocation allocation;
  Time start;
  Configuration holder;  ///< configuration of the workload: its keys are read into it
};
const Keys<JobEntry>& job_keys();
/// Reads jobs[`number`].workload. The entry has its other keys already.
void read_job_workload(const Value& value, const std::string& path, JobEntry& entry, Reading& reading);

/// Returns the headings of all tables of keys, with what stands in them.
std::vector<KeySection> key_sections();

/// Returns how a `base` is read, which follow_references has replaced by what the file holds: not at all.
template <class Target = Configuration>
constexpr Handling<Target> replaced_before() {
  return {[](const Value&, const std::string&, Target&, Reading&) {}};
}

/// Returns one algorithm for each item of a list. Faults are noted, and what is faulty becomes the ring.
std::vector<collective::Algorithm> parse_algorithms(const std::vector<Value>& items, const std::string& key,
                                                    std::string_view expected, Faults& faults);

/// Returns the name of the file of a custom collective, as a format takes it.
using PathOf = std::filesystem::path (*)(const Value& value, const std::string& key);
/// Reads the file, or the files for communicators of several sizes, that spell out the collectives of a kind. The texts
/// of XML go to the inputs.
void read_custom(const Value& value, const std::string& path, collective::Kind kind, PathOf path_of,
                 Configuration& result, Faults& faults);
/// Reads the files of nodes, `ID: PREFIX`.
void read_custom_nodes(const Value& mapping, const std::string& path, PathOf path_of, Configuration& result,
                       Faults& faults);

/// Returns the traces PREFIX.<npu>.et of all NPUs; the prefix itself if "{npu}" is in it or there is such a file.
TraceFiles traces_of_prefix(const std::string& prefix, std::uint32_t num_npus);
/// Returns what a fault of links is to topology::Links.
topology::LinkFault link_fault(const Perturbation::Links& links);
/// Returns [num_npus] the factors of compute speed, also those that are drawn once, those for the same NPU multiplied;
/// none if no NPU has one.
std::vector<double> compute_speeds(const Perturbation& perturbation, const Variations& variations,
                                   std::uint32_t num_npus);
/// Throws Error (bad_input) at `place` unless `found` divides `of`, a number of `what`; 0 is not known.
void require_divisor(std::uint32_t found, std::uint32_t of, std::string_view what, const Place& place);

}  // namespace orrery::config
