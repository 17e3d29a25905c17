#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "orrery/base/output_file.hpp"
#include "orrery/base/text.hpp"
#include "orrery/base/utf8.hpp"
#include "orrery/config/preset_files.hpp"
#include "orrery/config/read.hpp"
#include "orrery/config/yaml_name.hpp"
#include "orrery/show/preset_facts.hpp"
#include "orrery/workload/figures.hpp"
#include "orrery/workload/model.hpp"
#include "orrery/workload/transformer.hpp"

#include "command.hpp"
#include "option_values.hpp"
#include "options.hpp"

namespace orrery::cli {
namespace {

namespace fs = std::filesystem;
using workload::Axis;

constexpr double share_to_fill = 0.85;  ///< share of the memory, which leaves room for buffers

/// Returns a preset of a kind, such as "models", or a file as the configuration may name it, wherever it is written and
/// whatever other files stand beside it.
std::string name_in_file(const std::string& name, std::string_view kind) {
  std::error_code failure;
  if (const auto preset = config::preset_named(kind, name); preset && !fs::exists(name, failure))
    return fmt::format("{}/{}", kind, preset->stem().string());
  return config::yaml_name(name);
}

/// Reads what an argument names. A fault of it names the argument.
config::Configuration read_argument(const std::string& text, const char* argument) {
  const std::string origin = "orrery init";
  try {
    return config::parse(text, origin, fs::current_path(), true);
  } catch (const Error& error) {
    if (error.place().file != origin) throw;
    throw Error(error.code(), {.file = fmt::format("{}: {}", origin, argument)}, error.text());
  }
}

/// A way to divide a model among NPUs.
struct Division {
  workload::Parallel parallel;
  bool fits = false;
};

std::vector<std::uint32_t> powers_up_to(std::uint64_t most) {
  std::vector<std::uint32_t> powers;
  for (std::uint64_t power = 1; power <= most; power *= 2) powers.push_back(static_cast<std::uint32_t>(power));
  return powers;
}

/// Says whether a division is one of the model, and whether its states and activations fit into a memory.
Division judge(const workload::Model& model, workload::Parallel parallel, std::uint64_t room) {
  const auto figures = workload::figures({.model = model, .parallel = parallel});
  const auto need = [](const workload::StageFigures& stage) { return stage.local.total(); };
  const std::uint64_t most = need(*std::ranges::max_element(figures.stages, {}, need));
  return {std::move(parallel), room == 0 || static_cast<double>(most) <= share_to_fill * static_cast<double>(room)};
}

/// Returns the divisions of a batch among the NPUs, those that divide the model least first.
std::vector<workload::Parallel> divisions_of(const workload::Transformer& model, std::uint32_t npus,
                                             std::uint32_t batch, std::uint32_t server) {
  std::vector<workload::Parallel> all;
  for (const auto recompute : {workload::Recompute::none, workload::Recompute::full})
    for (const std::uint32_t pp : powers_up_to(std::min<std::uint64_t>(model.layers, npus)))
      for (const std::uint32_t tp : powers_up_to(server))
        for (const std::uint32_t ep : powers_up_to(std::clamp<std::uint64_t>(model.mlp.experts, 1, 64))) {
          const std::uint64_t of_model = std::uint64_t{tp} * pp * ep;
          if (npus % of_model != 0) continue;
          workload::Parallel parallel;
          parallel[Axis::tp] = tp;
          parallel[Axis::pp] = pp;
          parallel[Axis::ep] = ep;
          parallel[Axis::dp] = static_cast<std::uint32_t>(npus / of_model);
          if (batch % parallel.num_replicas() != 0) continue;
          parallel.micro_batches = batch / parallel.num_replicas();
          if (parallel.micro_batches < pp) continue;
          parallel.sequence_parallel = tp > 1;
          parallel.sharding.zero = parallel[Axis::dp] > 1 ? 1 : 0;
          parallel.recompute = recompute;
          all.push_back(std::move(parallel));
        }
  std::ranges::stable_sort(all, {}, [](const workload::Parallel& parallel) {
    return std::tuple(parallel.recompute, parallel[Axis::tp] * parallel[Axis::pp] * parallel[Axis::ep],
                      parallel[Axis::pp], parallel[Axis::ep]);
  });
  return all;
}

/// Returns the first division that fits; else the last one that the model has.
Division choose_division(const workload::Model& model, std::uint32_t npus, std::uint32_t batch, std::uint32_t server,
                         std::uint64_t room) {
  const auto* const transformer = std::get_if<workload::Transformer>(&model);
  if (transformer == nullptr)
    throw Error(ErrorCode::bad_input, {.file = "orrery init: --model"}, "no transformer", "a transformer",
                "Write a configuration of other models by hand (docs/workloads.md).");
  std::optional<Division> last;
  for (const workload::Parallel& parallel : divisions_of(*transformer, npus, batch, server)) {
    try {
      last = judge(model, parallel, room);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::bad_input) throw;
      continue;  // heads or experts that it does not divide
    }
    if (last->fits) break;
  }
  if (!last)
    throw Error(ErrorCode::bad_input, {.file = "orrery init: --batch"},
                fmt::format("no parallelism of {} NPUs divides {} sequences", npus, batch),
                fmt::format("a batch with whole micro-batches for all replicas, such as {}", npus));
  return *last;
}

std::string line_of(const std::string& key, const std::string& value, const std::string& comment) {
  return fmt::format("{:<28} # {}\n", fmt::format("{}: {}", key, value), comment);
}

std::string parallel_text(const Division& division, bool has_experts) {
  const workload::Parallel& parallel = division.parallel;
  std::string text = "  parallel:\n";
  const auto add = [&](const char* key, const std::string& value, const char* comment) {
    text += line_of(fmt::format("    {}", key), value, comment);
  };
  add("tp", fmt::to_string(parallel[Axis::tp]), "tensor parallelism: NPUs that share each matrix, within a server");
  if (parallel.sequence_parallel) add("sp", "true", "these divide norms and dropout too");
  add("pp", fmt::to_string(parallel[Axis::pp]), "pipeline stages, of any numbers of layers (stage-layers)");
  if (has_experts) add("ep", fmt::to_string(parallel[Axis::ep]), "expert parallelism: NPUs that share the experts");
  add("dp", fmt::to_string(parallel[Axis::dp]), "data parallelism: copies of the model");
  add("micro-batch", "1", "sequences that pass the layers together");
  add("micro-batches", fmt::to_string(parallel.micro_batches), "of each copy in a step: the batch is the product");
  add("zero", fmt::to_string(parallel.sharding.zero), "1 and 3: copies share the optimizer's state, or all states");
  add("recompute", parallel.recompute == workload::Recompute::full ? "full" : "none",
      "full: activations are computed again, which saves memory");
  return text;
}

void init(const InitCommand& command) {
  const std::string system = name_in_file(command.system, "systems");
  const auto of_system =
      read_argument(fmt::format("system: {{base: {}, npus: {}}}\n", system, command.npus), "--system and --npus");
  const auto& processor = of_system.execution.compute.products.processor;
  const auto stack = command.stack.empty() ? show::usual_stack(processor ? std::string(processor->name()) : "",
                                                               std::filesystem::path(command.system).stem().string())
                                           : std::optional(command.stack);
  const std::string named_model = name_in_file(command.model, "models");
  if (stack)
    read_argument(
        fmt::format("stack: {}\nsystem: {{base: {}, npus: {}}}\nworkload: {{model: {}, parallel: {{dp: {}}}}}\n",
                    *stack, system, command.npus, named_model, command.npus),
        "--stack");
  const auto model =
      config::read_workload({}, {fmt::format("workload.model={}", named_model), "workload.parallel={dp: 1}"}).model;
  const std::uint32_t batch = command.batch.value_or(command.npus);
  const Division division = choose_division(model, command.npus, batch, of_system.dimensions.front().size,
                                            of_system.execution.room().count());
  const std::string file = as_typed(command.output.string());
  std::string text;
  if (const auto schema = config::schema_file())
    text = fmt::format("# yaml-language-server: $schema={}\n", schema->string());
  text += fmt::format(
      "# One training step of {0} on {1} NPUs of {2}, as `orrery init` wrote it.\n"
      "#   orrery run {3}                simulates it\n"
      "#   orrery check {3}              finds mistakes\n"
      "#   orrery best {0} --on {2} --npus {1} --batch {4}{5}\n"
      "#                                 finds the fastest parallelism\n"
      "# `orrery show keys` lists all keys, and docs/configuration.md explains them.\n\n",
      as_typed(command.model), command.npus, as_typed(command.system), file, batch,
      stack ? fmt::format(" --stack {}", *stack) : "");
  if (!division.fits)
    text += "# No parallelism with ZeRO 1 fits into the memory: this one needs most NPUs for the model.\n";
  if (stack)
    text += line_of("stack", fmt::format("stacks/{}", *stack),
                    "what hardware reaches with its software (orrery show stacks)");
  else
    text += "# stack: NAME               # no stack is known for the processor: NPUs reach their peaks\n";
  text +=
      "system:\n" + line_of("  base", system, "a preset (orrery show systems), or a file") +
      line_of("  npus", fmt::to_string(command.npus), "whole servers first") +
      "  # compute: {local-memory: {size: 80 GB}}   # replaces a value of the preset\n" + "workload:\n  model:\n" +
      line_of("    base", named_model, "a preset (orrery show models), a file, or a config.json") +
      line_of("    sequence", fmt::to_string(std::get<workload::Transformer>(model).sequence), "tokens of a sequence") +
      parallel_text(division, std::get<workload::Transformer>(model).mlp.experts > 0);
  check_output(command.output, command.force);
  PartialFile partial(command.output);
  partial.write(text);
  partial.commit();
  fmt::print("wrote {}\nnext: orrery run {}\n", printable(command.output.string()), file);
}

const Subcommand& init_subcommand() {
  static const Subcommand command{
      "init",
      "Write a commented CONFIG.yaml of a model on a system, to start from.",
      "",
      "  orrery init --model qwen3-32b --system dgx-h100 --npus 128\n"
      "  orrery init --model models/Qwen3-8B/config.json --system dgx-h100 --npus 64 --batch 256 --output my.yaml",
      {{"What",
        {{"model", "MODEL", "preset, file, or config.json of Hugging Face; needed (orrery show models)"},
         {"system", "SYSTEM", "preset or file; needed (orrery show systems)"},
         {"npus", "N", "number of NPUs, whole servers; needed"},
         {"batch", "N", "sequences of a step (default: as many as there are NPUs)"},
         {"stack", "STACK", "hardware and software (default: the usual stack of the processor; orrery show stacks)"}}},
       {"Output",
        {{"output", "FILE", "name of the file (default: CONFIG.yaml)"}, {"force", "", "replace an existing file"}}}}};
  return command;
}

InitCommand make_init(const Arguments& arguments) {
  InitCommand command;
  command.model = needed(arguments, "init", "model", "llama3-8b");
  command.system = needed(arguments, "init", "system", "dgx-h100-superpod");
  command.stack = arguments.text("stack").value_or("");
  needed(arguments, "init", "npus", "128");
  command.npus = *arguments.count("npus");
  command.batch = arguments.count("batch");
  command.output = arguments.text("output").value_or("CONFIG.yaml");
  command.force = arguments.flag("force").value_or(false);
  return command;
}

}  // namespace

extern const CommandEntry init_entry;
const CommandEntry init_entry{init_subcommand,
                              [](const Arguments& arguments) { return once(make_init(arguments), init); }};

}  // namespace orrery::cli
