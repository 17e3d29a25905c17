#include <algorithm>
#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "orrery/base/output_file.hpp"
#include "orrery/base/text.hpp"
#include "orrery/config/read.hpp"
#include "orrery/workload/transformer.hpp"
#include "subcommands.hpp"

namespace orrery::app {
namespace {

/// Returns a preset or a file as another file may name it.
std::string name_for(const std::string& name) {
  return std::filesystem::is_regular_file(name) ? std::filesystem::absolute(name).string() : name;
}

std::vector<std::uint64_t> powers_of_two(std::uint64_t most) {
  std::vector<std::uint64_t> powers;
  for (std::uint64_t power = 1; power <= most; power *= 2) powers.push_back(power);
  return powers;
}

/// Returns the sizes of the system's dimensions for so many NPUs: the first ones are filled first, and the last one
/// takes what is left.
std::vector<std::uint32_t> sizes_for(std::uint32_t npus, const std::vector<topology::Dimension>& dimensions) {
  std::vector<std::uint32_t> sizes;
  std::uint32_t left = npus;
  for (std::size_t d = 0; d < dimensions.size(); ++d) {
    sizes.push_back(d + 1 == dimensions.size() ? left : std::min(left, dimensions[d].size));
    if (left % sizes.back() != 0)
      throw Error(ErrorCode::usage,
                  fmt::format("orrery best: --npus {}: {} NPUs do not fill groups of {}, dimension {} of the system. "
                              "Give a multiple.",
                              npus, left, sizes.back(), d));
    left /= sizes.back();
  }
  return sizes;
}

/// Returns the dimensions as CONFIG.yaml has them.
std::string dimensions_text(const config::Configuration& system) {
  constexpr std::string_view key = "    dimensions:\n";
  const std::string resolved = system.to_yaml(false);
  const std::size_t begin = resolved.find(key);
  ensure(begin != std::string::npos, "a resolved configuration has dimensions");
  std::size_t end = begin + key.size();
  while (resolved.compare(end, 6, "      ") == 0) end = resolved.find('\n', end) + 1;
  return resolved.substr(begin, end - begin);
}

/// Returns the configuration that the study changes: the system with dimensions that hold the NPUs.
std::string base_text(const config::BestCommand& command) {
  auto system = config::parse(fmt::format("system: {{base: {}}}\n", name_for(command.system)), "orrery best --on",
                              std::filesystem::current_path(), true);
  const std::vector<std::uint32_t> sizes = sizes_for(command.npus, system.dimensions);
  for (std::size_t d = 0; d < sizes.size(); ++d) system.dimensions[d].size = sizes[d];
  return fmt::format(
      "# The base of a study that `orrery best` has written.\n{}system:\n  base: {}\n  network:\n{}workload:\n"
      "  model: {}\n  parallel: {{dp: {}}}\n",
      command.stack.empty() ? "" : fmt::format("stack: {}\n", command.stack), name_for(command.system),
      dimensions_text(system), name_for(command.model), command.npus);
}

/// Returns the study. It leaves out what no user would run: fewer micro-batches than stages, and groups of tensor
/// parallelism beyond the first dimension.
std::string study_text(const config::BestCommand& command, const std::filesystem::path& base) {
  const auto system = config::read({.file = base, .overrides = command.explore.overrides, .system_only = true});
  const auto model = config::read_workload(base, command.explore.overrides).model;
  const auto* const transformer = std::get_if<workload::Transformer>(&model);
  if (transformer == nullptr)
    throw Error(ErrorCode::bad_input, {.key = "workload.model.kind"}, "no transformer", "a transformer",
                "Write a STUDY.yaml for `orrery explore` (docs/exploration.md).");
  std::string text = fmt::format(
      "# Which parallelism trains the model fastest, as `orrery best` asks it.\nstudy:\n  base: {}\n  parameters:\n"
      "    batch: {{values: [{}]}}\n    layers: {{values: [{}]}}\n",
      base.filename().string(), command.batch.value_or(command.npus), transformer->layers);
  const auto powers = [&](std::string_view name, std::string_view key, std::uint64_t most) {
    text += fmt::format("    {}: {{key: workload.parallel.{}, values: [{}]}}\n", name, key,
                        fmt::join(powers_of_two(std::max<std::uint64_t>(most, 1)), ", "));
  };
  powers("tp", "tp", system.dimensions.front().size);
  powers("pp", "pp", std::min<std::uint64_t>(transformer->layers, command.npus));
  powers("ep", "ep", std::min<std::uint64_t>({transformer->mlp.experts, command.npus, 64}));
  powers("micro_batch", "micro-batch", 4);
  text +=
      "    zero: {key: workload.parallel.zero, values: [0, 1, 3], when: tp * pp * ep < npus, else: 0}\n"
      "    recompute: {key: workload.parallel.recompute, values: [none, full]}\n"
      "  derived:\n"
      "    dp: {key: workload.parallel.dp, value: npus / (tp * pp * ep)}\n"
      "    micro_batches: {key: workload.parallel.micro-batches, value: batch / (dp * ep * micro_batch)}\n"
      "    sp: {key: workload.parallel.sp, value: tp > 1}\n"
      "  constraints:\n"
      "    - divides(tp * pp * ep, npus)\n"
      "    - divides(pp, layers)\n"
      "    - divides(dp * ep * micro_batch, batch)\n"
      "    - micro_batches >= pp\n"
      "    - zero < 3 or pp == 1\n"
      "  objectives: [{minimise: step_time}]\n"
      "  keep: 10\n"
      "  strategy: {kind: bounded}\n";
  if (!command.cost.empty()) text += fmt::format("cost: {}\n", name_for(command.cost));
  return text;
}

}  // namespace

void best(const config::BestCommand& command, const std::string& command_line, parallel::Communicator& world) {
  config::ExploreCommand explore_command = command.explore;
  std::filesystem::path base = command.explore.output;
  base.replace_extension(".base.yaml");
  explore_command.file = command.explore.output;
  explore_command.file.replace_extension(".study.yaml");
  world.agree([&] {
    if (!world.is_root()) return;
    // A job that ended early has left both files, and they are the same.
    const auto write = [&](const std::filesystem::path& file, const std::string& text) {
      if (std::filesystem::exists(file) && read_text(file) == text) return;
      check_output(file, command.explore.force);
      PartialFile partial(file);
      partial.write(text);
      partial.commit();
    };
    write(base, base_text(command));
    write(explore_command.file, study_text(command, base));
  });
  world.barrier();
  explore(explore_command, command_line, world);
}

}  // namespace orrery::app
