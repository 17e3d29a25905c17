#include "orrery/show/preset_facts.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "orrery/base/text.hpp"
#include "orrery/config/preset_files.hpp"
#include "orrery/config/read.hpp"

namespace orrery::show {
namespace {

/// A small system and a step on which a stack stands while its keys are read.
constexpr std::string_view any_system =
    "  network: {dimensions: [{shape: Switch, size: 2, bandwidth: 1 GB/s, latency: 1 us}]}\n"
    "  compute: {peak: 1 TFLOPS, local-memory: {bandwidth: 1 GB/s}}\n";
constexpr std::string_view any_workload =
    "workload: {model: {layers: 2, hidden: 64, heads: 2, sequence: 64}, parallel: {dp: 2}}\n";

/// Returns the first sentence of the comment with which the text of a preset begins.
std::string summary_of_preset(const std::string& text) {
  std::string comment;
  for (std::size_t at = 0; at < text.size() && text[at] == '#';) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    comment += (comment.empty() ? "" : " ") + std::string(trimmed(text.substr(at + 1, end - at - 1)));
    at = end + 1;
  }
  const std::size_t end = std::min(comment.find(". "), comment.size());
  return std::string(trimmed(comment.substr(0, end), ". "));
}

}  // namespace

std::string SystemFacts::sizes() const {
  std::vector<std::uint32_t> all;
  for (const auto& dimension : configuration.dimensions) all.push_back(dimension.size);
  return fmt::format("{}", fmt::join(all, " x "));
}

std::string SystemFacts::processor() const {
  const auto& processor = configuration.execution.compute.products.processor;
  return processor ? std::string(processor->name()) : std::string();
}

std::vector<SystemFacts> preset_systems() {
  std::vector<SystemFacts> systems;
  for (const auto& file : config::preset_files("systems"))
    systems.push_back(
        {file.stem().string(), config::parse(fmt::format("system: {}\n", file.string()), file.string(), {}, true)});
  return systems;
}

std::vector<StackFacts> preset_stacks() {
  std::vector<StackFacts> stacks;
  for (const auto& file : config::preset_files("stacks")) {
    const auto read = config::parse(fmt::format("stack: {}\nsystem:\n{}{}", file.string(), any_system, any_workload),
                                    file.string(), {}, true);
    const auto& processor = read.execution.compute.products.processor;
    const auto& library = read.collectives.library;
    stacks.push_back({file.stem().string(), processor ? std::string(processor->name()) : "",
                      library.library ? std::string(library.library->name()) : "", summary_of_preset(read_text(file))});
  }
  return stacks;
}

std::vector<PriceFacts> preset_prices() {
  std::vector<PriceFacts> all;
  for (const auto& file : config::preset_files("prices")) {
    const auto read =
        config::parse(fmt::format("cost: {}\nsystem:\n{}", file.string(), any_system), file.string(), {}, true);
    all.push_back({file.stem().string(), read.prices.date, read.prices.source, summary_of_preset(read_text(file))});
  }
  return all;
}

std::optional<std::string> usual_stack(const std::string& processor, const std::string& system) {
  if (processor.empty()) return {};
  constexpr std::array<std::string_view, 4> frameworks = {"-nemo", "-megatron", "-maxtext", "-primus"};
  const auto stacks = preset_stacks();
  // A stack of the system fits best, then one of the processor, that with a version, and one of other systems with it.
  const auto fit = [&](const std::string& name, std::string_view framework) {
    const std::string hardware = name.substr(0, name.find('-')), whole = processor + std::string(framework);
    if (system.starts_with(hardware) && name == hardware + std::string(framework)) return 4;
    return name == whole ? 3 : name.starts_with(whole) ? 2 : name.find(framework) != std::string::npos ? 1 : 0;
  };
  for (const int wanted : {4, 3, 2, 1})
    for (const std::string_view framework : frameworks)
      for (const StackFacts& stack : stacks)
        if (stack.processor == processor && fit(stack.name, framework) == wanted) return stack.name;
  return {};
}

}  // namespace orrery::show
