#include "orrery/config/read.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "astra_sim/astra_sim.hpp"
#include "hugging_face.hpp"
#include "idle_keys.hpp"
#include "keys/keys.hpp"
#include "keys/packets.hpp"
#include "orrery/base/suggestion.hpp"
#include "orrery/base/text.hpp"
#include "orrery/config/provenance.hpp"
#include "orrery/partition/strategy.hpp"
#include "orrery/trace/store.hpp"
#include "orrery/workload/generator.hpp"
#include "references.hpp"
#include "resolution.hpp"
#include "system_size.hpp"

namespace orrery::config {
namespace {

/// Returns the number of names in the path of a setting.
std::ptrdiff_t depth(const std::string& setting) {
  return std::count(setting.begin(), std::ranges::find(setting, '='), '.');
}

/// Returns the values of a text, with all that it refers to and the settings of --set; every text goes to `inputs`.
/// A setting of a whole mapping, which may name a file, comes before those of the keys in it.
Value read_values(std::string text, const Origin& origin, std::vector<std::string> overrides,
                  std::vector<InputText>& inputs, Faults& faults) {
  Value root = parse_yaml(text, std::make_shared<const Origin>(origin), faults);
  inputs.emplace_back("configuration.yaml", std::move(text));
  follow_base(root, inputs, faults);
  // A stack stands below what the file itself says, which is known only before the file's references are followed.
  const auto rest = std::ranges::stable_partition(overrides, names_reference).begin();
  if (rest != overrides.begin()) make_references_mappings(root);
  for (auto setting = overrides.begin(); setting != rest; ++setting)
    faults.attempt([&] { apply_override(root, *setting, faults); });
  overrides.erase(overrides.begin(), rest);
  follow_references(root, inputs, faults);
  std::ranges::stable_sort(overrides, {}, depth);
  for (const auto& setting : overrides) {
    faults.attempt([&] { apply_override(root, setting, faults); });
    follow_references(root, inputs, faults);
  }
  fill_dimensions(root, faults);
  return root;
}

/// What `orrery generate` writes where no file says so: a step of a transformer on 64 NPUs.
constexpr std::string_view default_workload =
    "workload:\n"
    "  model: {layers: 32, hidden: 4096, heads: 32, sequence: 2048}\n"
    "  parallel: {tp: 4, pp: 4, dp: 4, micro-batches: 8, placement: [tp, cp, ep, pp, dp]}\n";

/// Refuses a workload of all NPUs beside jobs, which have workloads of their own.
void refuse_workload_beside_jobs(const Value& root, Faults& faults) {
  if (const Value* const workload = root.find("workload"); workload != nullptr && root.find("jobs") != nullptr)
    faults.add(Error(ErrorCode::bad_input, workload->place("workload"), "jobs are given too", "one of them",
                     "Each job has a workload of its own: jobs: [{workload: ...}, ...]."));
}

/// Notes keys of the file that the user wrote, or options, that have no effect. Presets and stacks may say more than a
/// file that names them needs.
void warn_of_idle_keys(const std::string& file, Configuration& result) {
  for (std::string& warning : warnings_of_idle_keys(result, file)) result.warnings.push_back(std::move(warning));
}

/// Notes a congestion control that cannot act as it should, if nothing else is wrong.
void warn_of_control(Configuration& result, const Faults& faults) {
  if (!faults.empty()) return;
  if (auto warning = warning_of_control(result)) result.warnings.push_back(std::move(*warning));
}

/// Notes dimensions outside servers whose bandwidth is more than that of any network card: it may be meant in Gb/s.
void warn_of_fast_cards(Configuration& result) {
  constexpr double fastest_card = 200;  // GB/s: four times what the cards of 2025 reach
  const auto& library = result.collectives.library;
  for (std::size_t d = 0; d < result.dimensions.size(); ++d) {
    const auto& dimension = result.dimensions[d];
    const bool is_outside = dimension.port == "nic" || (library.library && d >= library.node_dimensions);
    if (is_outside && dimension.size > 1 && dimension.bandwidth.bytes_per_ns() > fastest_card)
      result.warnings.push_back(
          fmt::format("system.network.dimensions.{}.bandwidth is {:.6g} GB/s outside the server, {:.6g} Gb/s: network "
                      "cards have less. Is it meant in Gb/s?",
                      d, dimension.bandwidth.bytes_per_ns(), 8 * dimension.bandwidth.bytes_per_ns()));
  }
}

/// Notes dimensions whose routes are minimal although real switches of the shape choose among routes.
void warn_of_minimal_routes(Configuration& result) {
  const network::Options& network = result.execution.network;
  if (!network.model->simulates_links() || result.rule_set == RuleSet::astra_sim || result.may_choose_routes()) return;
  for (std::size_t d = 0; d < result.dimensions.size() && !network.graph; ++d)
    if (const auto& dimension = result.dimensions[d];
        dimension.shape->has_alternatives && dimension.routing == topology::Routing::automatic && dimension.size > 1)
      result.warnings.push_back(fmt::format(
          "system.network.dimensions.{}.routing is minimal here, so messages that meet on a link of the {} share it: a "
          "ring takes up to twice as long as with adaptive routing. Give `routing: minimal` if that is meant, or {}",
          d, dimension.shape.name(),
          network.model->sends_packets
              ? "system.network.model: congestion-aware, or system.network.graph: {generate: dragonfly+} with "
                "system.network.packets.routing: adaptive"
              : "no packet-size and no circuits"));
}

/// Notes settings that have no effect together with others, or one that nobody wants.
void warn_of_settings(Configuration& result) {
  const auto& network = result.execution.network;
  const bool draws = result.execution.noise.amplitude > 0 || !result.execution.noise.variations.all().empty();
  if (result.perturbation.repetitions > 1 && (!draws || result.execution.replay_only))
    result.warnings.emplace_back(
        "perturbation.repetitions repeats one and the same run: nothing is drawn. Give perturbation.distributions or "
        "perturbation.noise, and no workload.replay-only");
  if (result.execution.replay_only && (draws || !result.perturbation.empty()))
    result.warnings.emplace_back(
        "perturbation has no effect with workload.replay-only: every node takes what was recorded");
  if (!network.model->simulates_links() && network.switching == network::Switching::cut_through)
    result.warnings.emplace_back(
        "system.network.switching has no effect in the congestion-unaware network: a message pays the bandwidth once "
        "in each dimension, as with cut-through");
  const auto& compute = result.execution.compute;
  if (compute.model == compute::ModelName("products") && !compute.products.processor)
    result.warnings.push_back(fmt::format(
        "system.compute.processor is not given: products take what they take on {}. Name {}",
        compute::ProcessorName().name(), names_where<compute::Processor>([](const auto&) { return true; })));
  if (const auto& kernel = compute.products.attention.kernel; kernel && compute.products.attention_share == 0) {
    const auto processor = compute.products.processor.value_or(compute::ProcessorName()).name();
    if (!(*kernel)->share(processor, {}))
      result.warnings.push_back(fmt::format(
          "system.compute.attention-kernel: no rate of {} on {} is known: attention takes the share of the processor",
          kernel->name(), processor));
  }
  for (auto& warning : outside_of_ranges(provenance_of(result), result)) result.warnings.push_back(std::move(warning));
  for (const Workload* const each : std::as_const(result).workloads()) {
    if (!each->generated) continue;
    if (auto warning = each->generated->parallel.pipeline_warning()) result.warnings.push_back(std::move(*warning));
    if (each->estimates == nullptr) continue;
    Faults of_model;  // which Validation reports, with their places
    of_model.attempt([&] {
      for (auto& doubt : workload::doubts(*each->generated, *each->estimates))
        result.warnings.push_back("system.compute: " + std::move(doubt));
    });
  }
  warn_of_fast_cards(result);
  warn_of_minimal_routes(result);
  if (network.model->simulates_links() && result.collectives.chunks.overlap_latency)
    result.warnings.emplace_back(
        "system.collectives.overlap-latency has no effect in the congestion-aware network: a chunk holds its links "
        "for its bytes only, and its place among the active chunks until it is through");
}

/// Checks the partition, and reads the rank map's file, whoever named it.
void settle_partition(const Inputs& inputs, Configuration& result) {
  const auto& partition = result.run.partition;
  const Place named_by = result.place_of("run.partition");
  if (!partition.is_rank_map() || (inputs.system_only && !inputs.flag("run.partition"))) return;
  const std::filesystem::path file = partition.parameter();
  if (std::error_code failure; !std::filesystem::exists(file, failure) && !failure) {
    std::vector<std::string_view> strategies;
    for (const auto& strategy : partition::named_strategies()) strategies.push_back(strategy.example);
    throw Error(ErrorCode::bad_input, named_by, fmt::format("{}: no such file", file.string()),
                "a strategy or a rank map", suggestion(file.filename().string(), strategies));
  }
  result.partition_text = {"partition.txt", read_text(file, named_by.file.empty() ? Place{} : named_by)};
}

std::optional<Configuration> resolve(const Inputs& inputs, Faults& faults) {
  std::optional<Configuration> result;
  faults.attempt([&] {
    if (inputs.astra_sim)
      result = read_astra_sim(*inputs.astra_sim, inputs.system_only, faults);
    else
      result = read_keys_of(read_text(inputs.file), {inputs.file.string(), inputs.file.parent_path()}, inputs.overrides,
                            inputs.system_only, faults)
                   .configuration;
    resolve_whole(inputs, *result, faults);
  });
  return result;
}

/// Returns what a faulty configuration has that suffices to read the traces; none unless it says how many NPUs there
/// are and where their traces are.
std::optional<Configuration> enough_for_traces(const Configuration& faulty) {
  Configuration result;
  result.follow(faulty.rule_set);
  result.dimensions = faulty.dimensions;
  result.workload = faulty.workload;
  result.execution.replay_only = faulty.execution.replay_only;
  result.inputs = faulty.inputs;
  result.warnings = faulty.warnings;
  Faults faults;
  faults.attempt([&] { result.validate(faults); });
  const bool has_workload =
      !result.workload.jobs.empty() || result.workload.generated.has_value() || !result.workload.traces.empty();
  return faults.empty() && has_workload ? std::optional(result) : std::nullopt;
}

/// Says what a file of YAML or JSON is that is no configuration, and which command takes it; nothing if it may be one.
std::optional<std::string> describe_values(const std::filesystem::path& file) {
  struct Kind {
    std::string_view key;  ///< key of the whole file
    std::string_view description;
  };
  constexpr Kind kinds[] = {{"study", "a study: 'orrery explore FILE' takes it"},
                            {"flows", "a list of flows: 'orrery flows FILE' takes it"},
                            {"hidden", "a model: name it as workload.model of a configuration, or ask 'orrery best'"},
                            {"source", "prices: name them as cost of a configuration"},
                            {"network", "a system: name it as system.base of a configuration"}};
  Faults unused;
  std::optional<std::string> description;
  unused.attempt([&] {
    const Origin origin{file.string(), file.parent_path()};
    const Value root = parse_yaml(read_text(file), std::make_shared<const Origin>(origin), unused);
    if (root.find("system") != nullptr || root.find("workload") != nullptr) return;
    if (is_hugging_face(root))
      description =
          "a model of Hugging Face Transformers: name it as workload.model of a configuration, or ask "
          "'orrery best'";
    for (const Kind& kind : kinds)
      if (!description && root.find(kind.key) != nullptr) description = kind.description;
  });
  return description;
}

/// Puts one fault in place of all others if the file is something else than a configuration.
void name_other_file(const std::filesystem::path& file, Findings& findings) {
  std::error_code failure;
  if (!std::filesystem::is_regular_file(file, failure)) return;
  auto other = trace::describe_other(file);
  if (!other) other = describe_values(file);
  if (!other) return;
  findings = {};
  findings.faults.add(Error(ErrorCode::bad_input, {.file = file.string()}, fmt::format("the file is {}", *other),
                            "a configuration, CONFIG.yaml"));
}

/// Reads the model and its parallelisation, whatever else a CONFIG.yaml holds. Returns all its values.
Value read_generated(const std::filesystem::path& file, const std::vector<std::string>& overrides,
                     Configuration& configuration, Faults& faults) {
  Reading reading{configuration, faults};
  const Origin origin = file.empty() ? Origin{"orrery generate", {}} : Origin{file.string(), file.parent_path()};
  Value root = read_values(file.empty() ? std::string(default_workload) : read_text(file), origin, overrides,
                           configuration.inputs, faults);
  if (const Value* const jobs = root.find("jobs"))
    throw Error(ErrorCode::bad_input, jobs->place("jobs"), "found jobs, each of which has a workload of its own",
                "one workload", "Put the workload of the job that is meant into a file of its own.");
  Sections sections(Section(&root, "", root, faults));
  Section& workload = sections.at("workload");
  read_keys(generated_workload_keys(), sections, configuration, reading);
  if (!configuration.workload.generated)
    workload.need("model", find_key("workload.model")->info().expected(std::string_view()));
  for (const auto& key : workload_keys())
    workload.find(std::string_view(key->info().path).substr(std::string_view("workload.").size()));
  workload.refuse_unknown();
  if (faults.empty()) configuration.workload.generated->validate();
  return root;
}

/// Reads the keys on which the nodes of a generated workload depend beside its own (Configuration::share_settings):
/// those that decide how NPUs take communication nodes, and those of compute. What is given of a system without
/// dimensions counts as far as it can be read.
void read_settings_of_generation(const Value& root, Configuration& configuration, Faults& faults) {
  const Value* const system = root.find("system");
  const Value* const network = system != nullptr ? system->find("network") : nullptr;
  const bool is_whole = network != nullptr && network->find("dimensions") != nullptr;
  Faults ignored;
  Reading reading{configuration, is_whole ? faults : ignored, true};
  Sections sections(Section(&root, "", root, reading.faults));
  for (const auto* const keys :
       {&system_keys(), &network_keys(), &collective_keys(), &compute_keys(), &communication_keys()})
    read_keys(*keys, sections, configuration, reading);
  Reading of_workload{configuration, faults, true};
  for (const std::string_view path : {"workload.streams", "workload.replay-only"}) {
    const Value* const value = root.find("workload")->find(path.substr(std::string_view("workload.").size()));
    if (value == nullptr) continue;
    faults.attempt([&] { find_key(path)->read(*value, std::string(path), &configuration, of_workload); });
  }
}

/// Returns the file that holds the layers of the model, unless it is the configuration itself.
std::string file_of_model(const Value& root, const std::string& own) {
  const Value* at = &root;
  for (const std::string_view key : {"workload", "model", "layers"}) at = at == nullptr ? nullptr : at->find(key);
  const bool is_elsewhere = at != nullptr && at->origin && at->origin->name != own && at->line;
  return is_elsewhere ? at->origin->name : "";
}

}  // namespace

KeysRead read_keys_of(std::string text, const Origin& origin, const std::vector<std::string>& overrides,
                      bool system_only, Faults& faults) {
  KeysRead result;
  Configuration& configuration = result.configuration;
  result.root = read_values(std::move(text), origin, overrides, configuration.inputs, faults);
  configuration.warnings = result.root.all_notes();
  configuration.model_file = file_of_model(result.root, origin.name);
  refuse_workload_beside_jobs(result.root, faults);
  Reading reading{configuration, faults, system_only};
  Sections sections(Section(&result.root, "", result.root, faults));
  for (const auto* const keys : configuration_keys()) read_keys(*keys, sections, configuration, reading);
  sections.refuse_unknown();
  return result;
}

void apply_flags(const std::vector<FlagValue>& flags, Configuration& result, Faults& faults) {
  Reading reading{result, faults};
  for (const FlagValue& flag : flags) {
    if (!result.workload.jobs.empty() && flag.key.starts_with("workload.")) {
      faults.add(Error(ErrorCode::bad_input, {.key = flag.option}, "found it beside jobs",
                       fmt::format("{} in each job that it is meant for", flag.key)));
      continue;
    }
    const auto* const key = find_key(flag.key);
    ensure(key != nullptr, "the flag of a key");
    const Value value = option_value(flag.text);
    faults.attempt([&] { key->read(value, flag.option, &result, reading); });
    result.places[flag.key] = {.key = flag.option};
    if (!key->is_default(&result, reading)) result.changed_keys[flag.key].clear();
  }
}

Value read_root(const Inputs& inputs, Configuration& configuration, Faults& faults) {
  return read_values(read_text(inputs.file), {inputs.file.string(), inputs.file.parent_path()}, inputs.overrides,
                     configuration.inputs, faults);
}

void resolve_whole(const Inputs& inputs, Configuration& configuration, Faults& faults) {
  apply_flags(inputs.flags, configuration, faults);
  configuration.share_settings();
  warn_of_settings(configuration);
  if (!inputs.system_only) warn_of_idle_keys(inputs.file.string(), configuration);
  faults.attempt([&] { settle_partition(inputs, configuration); });
  // Defaults stand for faulty values, so that a look at the whole would tell faults that are none.
  if (faults.empty()) configuration.validate(faults);
  warn_of_control(configuration, faults);
}

std::optional<std::string> Inputs::flag(std::string_view key) const {
  const auto found = std::ranges::find(flags, key, &FlagValue::key);
  return found == flags.end() ? std::nullopt : std::optional(found->text);
}

Findings examine(const Inputs& inputs) {
  Findings findings;
  findings.configuration = resolve(inputs, findings.faults);
  if (!findings.faults.empty() && !inputs.file.empty()) name_other_file(inputs.file, findings);
  if (findings.configuration && !findings.faults.empty())
    findings.configuration = enough_for_traces(*findings.configuration);
  return findings;
}

Faults faults_of_keys(const Inputs& inputs) {
  Faults faults;
  faults.attempt([&] {
    read_keys_of(read_text(inputs.file), {inputs.file.string(), inputs.file.parent_path()}, inputs.overrides,
                 inputs.system_only, faults);
  });
  return faults;
}

Configuration read(const Inputs& inputs) {
  Findings findings = examine(inputs);
  findings.faults.raise();
  return std::move(*findings.configuration);
}

Configuration parse(std::string_view text, const std::string& name, const std::filesystem::path& folder,
                    bool system_only) {
  Faults faults;
  Configuration result = read_keys_of(std::string(text), {name, folder}, {}, system_only, faults).configuration;
  result.share_settings();
  warn_of_settings(result);
  if (!system_only) warn_of_idle_keys(name, result);
  if (faults.empty()) result.validate(faults);
  warn_of_control(result, faults);
  faults.raise();
  return result;
}

workload::Description read_workload(const std::filesystem::path& file, const std::vector<std::string>& overrides) {
  Faults faults;
  Configuration configuration;
  faults.attempt([&] { read_generated(file, overrides, configuration, faults); });
  faults.raise();
  return std::move(*configuration.workload.generated);
}

Workload read_generation(const std::filesystem::path& file, const std::vector<std::string>& overrides) {
  Faults faults;
  Configuration configuration;
  faults.attempt([&] {
    const Value root = read_generated(file, overrides, configuration, faults);
    if (faults.empty()) read_settings_of_generation(root, configuration, faults);
  });
  faults.raise();
  configuration.share_settings();
  return std::move(configuration.workload);
}

}  // namespace orrery::config
