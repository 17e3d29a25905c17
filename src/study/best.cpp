#include <algorithm>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "best_serving.hpp"
#include "orrery/base/output_file.hpp"
#include "orrery/base/text.hpp"
#include "orrery/base/wrapped.hpp"
#include "orrery/config/read.hpp"
#include "orrery/config/study.hpp"
#include "orrery/config/yaml_name.hpp"
#include "orrery/explore/space.hpp"
#include "orrery/study/explore.hpp"
#include "orrery/workload/transformer.hpp"
#include "study_table.hpp"

namespace orrery::study {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t many_npus = 256;  ///< from which on plans are left out that are not the best on so many
bool is_large(const BestCommand& command) { return command.npus >= many_npus; }

constexpr const char* best_origin = "orrery best";  ///< origin of texts made up from the command's arguments

/// Reads a configuration that the arguments make up. Throws as config::parse, but a fault of the value of `key` names
/// the argument.
config::Configuration parse_arguments(const std::string& text, bool system_only, std::string_view key,
                                      const std::string& argument) {
  try {
    return config::parse(text, best_origin, fs::current_path(), system_only);
  } catch (const Error& error) {
    if (error.place().file != best_origin || error.place().key != key) throw;
    throw Error(error.code(), {.file = fmt::format("{}: {}", best_origin, argument)}, error.text());
  }
}

/// Returns the system alone as a configuration.
std::string system_text(const BestCommand& command) {
  return fmt::format("system: {{base: {}}}\n", config::yaml_name(command.system));
}

std::vector<std::uint64_t> powers_of_two(std::uint64_t most) {
  std::vector<std::uint64_t> powers;
  for (std::uint64_t power = 1; power <= most; power *= 2) powers.push_back(power);
  return powers;
}

/// Returns the configuration that the study changes: the system with so many NPUs.
std::string base_text(const BestCommand& command) {
  return fmt::format(
      "# The base of a study that `orrery best` has written.\n{}system: {{base: {}, npus: {}}}\nworkload:\n"
      "  model: {}\n  parallel: {{{}dp: {}}}\n",
      command.stack.empty() ? "" : fmt::format("stack: {}\n", command.stack), config::yaml_name(command.system),
      command.npus, config::yaml_name(command.model),
      command.phase.empty() ? "" : fmt::format("phase: {}, ", command.phase), command.npus);
}

/// Checks that the arguments name what there is. Throws Error that names the argument which does not.
void check_arguments(const BestCommand& command, const std::string& base) {
  parse_arguments(system_text(command), true, "system.base", "--on");
  parse_arguments(fmt::format("system: {{base: {}, npus: {}}}\n", config::yaml_name(command.system), command.npus),
                  true, "system.npus", "--npus");
  if (!command.cost.empty())
    parse_arguments(fmt::format("cost: {}\n{}", config::yaml_name(command.cost), system_text(command)), true, "cost",
                    "--cost");
  BestCommand plain = command;
  plain.stack.clear();
  const auto configuration = parse_arguments(base_text(plain), false, "workload.model", "MODEL");
  if (!std::holds_alternative<workload::Transformer>(configuration.workload.generated->model))
    throw Error(ErrorCode::bad_input, {.file = fmt::format("{}: MODEL", best_origin)},
                fmt::format("'{}' is no transformer", cited(command.model)), "a transformer",
                "Write a STUDY.yaml for `orrery explore` (docs/exploration.md).");
  parse_arguments(base, false, "stack", "--stack");
}

constexpr std::uint64_t most_context = 8;             ///< degree of context parallelism
constexpr std::uint64_t least_context_tokens = 1024;  ///< tokens of a sequence on an NPU
constexpr std::uint64_t most_interleaving = 8;
constexpr std::uint64_t most_experts_apart = 64;  ///< degree of expert parallelism

/// Returns modules that the backward pass may compute again in place of whole layers.
std::string modules_of(const workload::Transformer& model) {
  std::vector<std::string_view> modules = {"norms"};
  if (model.mlp.gated) modules.emplace_back("swiglu");
  if (model.is_latent()) modules.emplace_back("latent");
  return fmt::format("[{}]", fmt::join(modules, ", "));
}

/// Returns the study of a step of inference, whose base will be named `base`. All plans are simulated.
std::string inference_text(const BestCommand& command, const std::string& base, std::uint64_t fastest_links,
                           const workload::Transformer& model) {
  const auto powers = [](std::uint64_t most) {
    return fmt::format("{}", fmt::join(powers_of_two(std::max<std::uint64_t>(most, 1)), ", "));
  };
  return fmt::format(
      "# Which parallelism takes the shortest {} step, as `orrery best` asks it.\nstudy:\n  base: {}\n  parameters:\n"
      "    batch: {{values: [{}]}}\n"
      "    tp: {{key: workload.parallel.tp, values: [{}]}}\n"
      "    pp: {{key: workload.parallel.pp, values: [{}]}}\n"
      "    ep: {{key: workload.parallel.ep, values: [{}]}}\n"
      "    micro_batches: {{key: workload.parallel.micro-batches, values: [1, 2, 4, 8], when: pp > 1, else: 1}}\n"
      "  derived:\n"
      "    dp: {{key: workload.parallel.dp, value: npus / (tp * pp * ep)}}\n"
      "    micro_batch: {{key: workload.parallel.micro-batch, value: batch / (dp * ep * micro_batches)}}\n"
      "  constraints:\n"
      "    - divides(tp * pp * ep, npus)\n"
      "    - divides(dp * ep * micro_batches, batch)\n"
      "    - micro_batches <= 2 * pp\n"
      "  objectives: [{{minimise: step_time}}]\n"
      "  keep: 10\n",
      command.phase, base, command.batch.value_or(command.npus), powers(fastest_links),
      powers(std::min<std::uint64_t>(model.layers, command.npus)),
      powers(std::min<std::uint64_t>({model.mlp.experts, command.npus, most_experts_apart})));
}

/// Returns the study, whose base will be named `base` and has its text in the file `text_of_base` now. It leaves out
/// what no user would run: fewer micro-batches than stages, and groups of tensor parallelism beyond the first
/// dimension.
std::string study_text(const BestCommand& command, const std::string& base, const fs::path& text_of_base) {
  const auto system = config::read({.file = text_of_base, .overrides = command.explore.overrides, .system_only = true});
  const auto model = config::read_workload(text_of_base, command.explore.overrides).model;
  const auto* const transformer = std::get_if<workload::Transformer>(&model);
  if (transformer == nullptr)
    throw Error(ErrorCode::bad_input, {.key = "workload.model.kind"}, "no transformer", "a transformer");
  const std::string prices = command.cost.empty() ? "" : fmt::format("cost: {}\n", config::yaml_name(command.cost));
  if (!command.phase.empty())
    return inference_text(command, base, system.dimensions.front().size, *transformer) + prices;
  std::string text = fmt::format(
      "# Which parallelism trains the model fastest, as `orrery best` asks it.\nstudy:\n  base: {}\n  parameters:\n"
      "    batch: {{values: [{}]}}\n    layers: {{values: [{}]}}\n",
      base, command.batch.value_or(command.npus), transformer->layers);
  const auto add = [&](std::string_view name, std::string_view key, std::string_view values,
                       std::string_view more = "") {
    text += fmt::format("    {}: {{key: workload.parallel.{}, values: [{}]{}}}\n", name, key, values, more);
  };
  const auto powers = [&](std::string_view name, std::string_view key, std::uint64_t most, std::string_view more = "") {
    add(name, key, fmt::format("{}", fmt::join(powers_of_two(std::max<std::uint64_t>(most, 1)), ", ")), more);
  };
  const std::uint64_t layers = transformer->layers;
  const bool has_experts = transformer->mlp.experts > 0;
  powers("tp", "tp", system.dimensions.front().size);
  powers("cp", "cp", std::min(most_context, transformer->sequence / least_context_tokens));
  powers("pp", "pp", std::min<std::uint64_t>(layers, command.npus));
  powers("ep", "ep", std::min<std::uint64_t>({transformer->mlp.experts, command.npus, most_experts_apart}));
  powers("micro_batch", "micro-batch", 4);
  powers("chunks", "interleaving", std::min(most_interleaving, layers / 2), ", when: pp > 1, else: 1");
  add("schedule", "schedule", "1f1b, zb-h1, zb-v", ", when: pp > 1 and chunks == 1, else: 1f1b");
  add("zero", "zero", "0, 1, 3", ", when: tp * cp * pp * ep < npus, else: 0");
  add("recompute", "recompute", "none, full");
  add("modules", "recompute-modules", fmt::format("[], {}", modules_of(*transformer)),
      ", when: \"recompute == 'none'\", else: []");
  text +=
      "  derived:\n"
      "    dp: {key: workload.parallel.dp, value: npus / (tp * cp * pp * ep)}\n"
      "    micro_batches: {key: workload.parallel.micro-batches, value: batch / (dp * ep * micro_batch)}\n"
      "    sp: {key: workload.parallel.sp, value: tp > 1}\n"
      "  constraints:\n"
      "    - divides(tp * cp * pp * ep, npus)\n"
      "    - divides(dp * ep * micro_batch, batch)\n"
      "    - micro_batches >= pp\n"
      "    - chunks == 1 or (micro_batches % pp == 0 and pp * chunks <= layers)\n"
      "    - \"schedule == '1f1b' or schedule == 'zb-h1' or (2 * pp <= layers and micro_batches >= 2 * pp)\"\n"
      "    - zero < 3 or pp == 1\n";
  if (is_large(command))
    text +=
        "    - tp * cp <= 16\n"
        "    - pp == 1 or (micro_batches >= 2 * pp and micro_batch < 4)\n"
        "    - zero > 0 or dp == 1 or pp == 1\n";
  if (has_experts) text += "    - cp == 1 or ep == 1\n";
  text +=
      "  objectives: [{minimise: step_time}]\n"
      "  keep: 10\n"
      "  strategy: {kind: bounded}\n";
  return text + prices;
}

/// Says which plans the study leaves out.
void print_left_out(const BestCommand& command) {
  if (!command.phase.empty())
    return fmt::print(
        "A step makes {}. Not tried: tensor parallelism over servers, other\nprecisions. --serve ranks plans by the "
        "requests that meet bounds of latency.\n",
        command.phase == "decode" ? "one more token of each sequence, so its time is that of a token"
                                  : "the first token of each sequence");
  std::vector<std::string> left_out = {"tensor parallelism over servers",
                                       "ZeRO 2 and 3 with pipelines",
                                       "DualPipe",
                                       "stages whose layers differ by more than one (stage-layers)",
                                       "recompute-layers",
                                       "offload",
                                       "other orders of groups (placement)",
                                       "fp8"};
  if (is_large(command))
    left_out.insert(left_out.begin(), {"tp x cp above 16", "fewer than two micro-batches for each stage"});
  constexpr std::size_t columns = 90;
  const std::string text =
      fmt::format("Not tried: {}. A STUDY.yaml can try them (orrery explore).", fmt::join(left_out, ", "));
  for (const std::string& line : wrapped(text, columns)) fmt::print("{}\n", line);
}

/// The files that a call writes before it simulates. Unless they are kept, they are as they were before when it ends.
class StudyFiles {
 public:
  StudyFiles() = default;
  ~StudyFiles() {
    for (const auto& [file, before] : written_) {
      try {
        if (before)
          replace(file, *before);
        else
          fs::remove(file);
      } catch (const std::exception&) {  // the failure that has led here is what the user needs to know
      }
    }
  }
  StudyFiles(const StudyFiles&) = delete;
  StudyFiles& operator=(const StudyFiles&) = delete;

  /// Writes a file. One that is the same stays: a job that ended early has left it.
  void write(const fs::path& file, const std::string& text, bool force) {
    const bool is_there = fs::exists(file);
    const std::optional<std::string> before = is_there ? std::optional(read_text(file)) : std::nullopt;
    if (before == text) return;
    check_output(file, force);
    written_.emplace_back(file, before);
    replace(file, text);
  }
  void keep() { written_.clear(); }

 private:
  static void replace(const fs::path& file, const std::string& text) {
    PartialFile partial(file);
    partial.write(text);
    partial.commit();
  }

  std::vector<std::pair<fs::path, std::optional<std::string>>> written_;
};

/// Refuses a batch that no parallelism of these NPUs divides.
void require_configurations(const BestCommand& command, const fs::path& study_file) {
  const explore::Study study = config::read_study(study_file);
  const explore::Space space(study, {{"npus", std::int64_t{command.npus}}});
  const auto funnel = space.visit([](const explore::Point&) { return false; });  // ends at the first one
  if (funnel.legal > 0) return;
  print_funnel(study, funnel);
  throw Error(
      ErrorCode::bad_input, {.file = best_origin},
      fmt::format("no parallelism of {} NPUs divides --batch {}", command.npus, command.batch.value_or(command.npus)),
      fmt::format("a batch with whole micro-batches for all replicas, at least as many as stages, such as {}",
                  command.npus));
}

/// Writes the study and its base, after all checks of what they are made from.
void write_study_files(const BestCommand& command, const fs::path& base, const fs::path& study, StudyFiles& files) {
  const std::string text = base_text(command);
  check_arguments(command, text);
  check_output(command.explore.output, command.explore.force);
  if (!command.explore.csv.empty()) check_output(command.explore.csv, command.explore.force);
  std::string asked;
  {
    const PartialFile unnamed(base);  // is removed again: it is read with the settings of --set
    unnamed.write(text);
    asked = study_text(command, base.filename().string(), unnamed.partial());
  }
  files.write(base, text, command.explore.force);
  files.write(study, asked, command.explore.force);
  require_configurations(command, study);
}

/// Returns when a file was written last; nothing if there is none.
std::optional<fs::file_time_type> time_of(const fs::path& file) {
  std::error_code failure;
  const auto time = fs::last_write_time(file, failure);
  return failure ? std::nullopt : std::optional(time);
}

}  // namespace

void best(const BestCommand& command, const std::string& command_line, parallel::Communicator& world) {
  if (!command.serve.empty()) return best_serving(command, world);
  ExploreCommand explore_command = command.explore;
  fs::path base = command.explore.output;
  base.replace_extension(".base.yaml");
  explore_command.file = command.explore.output;
  explore_command.file.replace_extension(".study.yaml");
  StudyFiles files;  // of rank 0
  world.agree([&] {
    if (world.is_root()) write_study_files(command, base, explore_command.file, files);
  });
  world.barrier();
  const auto before = time_of(command.explore.output);
  try {
    explore(explore_command, command_line, world);
  } catch (const Error& error) {
    // A job that goes on later needs the study, and so does who reads why no configuration is left.
    if (error.code() == ErrorCode::interrupted || time_of(command.explore.output) != before) files.keep();
    throw;
  }
  files.keep();
  if (world.is_root()) print_left_out(command);
}

}  // namespace orrery::study
