#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "orrery/base/text.hpp"
#include "orrery/config/preset_files.hpp"
#include "orrery/config/read.hpp"
#include "orrery/show/commands.hpp"
#include "orrery/show/preset_facts.hpp"
#include "orrery/workload/figures.hpp"
#include "orrery/workload/transformer.hpp"

namespace orrery::show {
namespace {

using nlohmann::ordered_json;
using PresetKind = ShowPresetsCommand::Kind;

/// A table of presets, and the same facts for programs.
struct PresetTable {
  std::vector<std::string> heads;
  std::vector<bool> is_text;  ///< [heads] columns of words, which begin on the left
  std::vector<std::vector<std::string>> rows;
  ordered_json json = ordered_json::array();
  std::string advice;  ///< advice on what to do with a name of the table
};

void print_table(const PresetTable& table) {
  constexpr std::size_t most_characters = 80;
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < table.heads.size(); ++c) {
    widths.push_back(table.heads[c].size());
    for (const auto& row : table.rows) widths[c] = std::max(widths[c], row[c].size());
  }
  const auto print_row = [&](const std::vector<std::string>& row) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c)
      line +=
          fmt::format(fmt::runtime(table.is_text[c] ? "{}{:<{}}" : "{}{:>{}}"), c == 0 ? "" : "  ", row[c], widths[c]);
    line.erase(line.find_last_not_of(' ') + 1);
    if (line.size() > most_characters) line = line.substr(0, most_characters - 3) + "...";
    fmt::print("{}\n", line);
  };
  print_row(table.heads);
  for (const auto& row : table.rows) print_row(row);
  fmt::print("{}\n", table.advice);
}

PresetTable table_of_models() {
  PresetTable table{.heads = {"model", "parameters", "active", "layers", "hidden", "experts", "sequence"},
                    .is_text = {true, false, false, false, false, false, false},
                    .rows = {},
                    .advice =
                        "workload.model: NAME, or orrery best NAME --on SYSTEM --npus N. The config.json\n"
                        "of a model of Hugging Face may stand in place of NAME."};
  for (const auto& file : config::preset_files("models")) {
    const std::string name = file.stem().string();
    const auto description =
        config::read_workload({}, {fmt::format("workload.model={}", file.string()), "workload.parallel={dp: 1}"});
    const auto figures = workload::figures_of_model(description);
    const auto* const transformer = std::get_if<workload::Transformer>(&description.model);
    ordered_json facts = {{"name", name},
                          {"kind", workload::model_families()[description.model.index()].name},
                          {"parameters", figures.parameters},
                          {"active_parameters", figures.active_parameters}};
    std::vector<std::string> row = {name, with_prefix(static_cast<double>(figures.parameters)),
                                    with_prefix(static_cast<double>(figures.active_parameters))};
    if (transformer != nullptr) {
      const auto& mlp = transformer->mlp;
      facts.update({{"layers", transformer->layers},
                    {"hidden", transformer->hidden},
                    {"heads", transformer->attention.heads},
                    {"experts", mlp.experts},
                    {"top_k", mlp.top_k},
                    {"sequence", transformer->sequence}});
      row.insert(row.end(), {fmt::to_string(transformer->layers), fmt::to_string(transformer->hidden),
                             mlp.experts == 0 ? "-" : fmt::format("{} of {}", mlp.top_k, mlp.experts),
                             fmt::to_string(transformer->sequence)});
    } else {
      row.insert(row.end(), 4, "-");
    }
    table.rows.push_back(std::move(row));
    table.json.push_back(std::move(facts));
  }
  return table;
}

PresetTable table_of_systems() {
  PresetTable table{.heads = {"system", "NPUs", "dimensions", "GB/s", "TFLOPS", "GB"},
                    .is_text = {true, false, true, true, false, false},
                    .rows = {},
                    .advice = "system: {base: NAME, npus: N}. GB/s of a link, TFLOPS of bf16, GB of memory"};
  for (const SystemFacts& system : preset_systems()) {
    const auto& configuration = system.configuration;
    std::vector<std::string> rates;
    ordered_json dimensions = ordered_json::array();
    std::uint64_t npus = 1;
    for (const auto& dimension : configuration.dimensions) {
      npus *= dimension.size;
      rates.push_back(fmt::format("{:.4g}", dimension.bandwidth.bytes_per_ns()));
      dimensions.push_back({{"size", dimension.size}, {"bandwidth", dimension.bandwidth.bytes_per_ns() * 1e9}});
    }
    const auto bf16 = configuration.peaks.find(workload::Precision::bf16);
    const double peak = bf16 == configuration.peaks.end() ? configuration.execution.compute.peak_flops : bf16->second;
    const auto memory = configuration.execution.local_memory.size.count();
    table.rows.push_back({system.name, fmt::to_string(npus), system.sizes(), fmt::format("{}", fmt::join(rates, ", ")),
                          fmt::format("{:.4g}", peak * 1e-12),
                          memory == 0 ? "-" : fmt::format("{:.4g}", static_cast<double>(memory) * 1e-9)});
    table.json.push_back({{"name", system.name},
                          {"npus", npus},
                          {"processor", system.processor()},
                          {"dimensions", dimensions},
                          {"bf16_peak", peak},
                          {"memory", memory},
                          {"memory_bandwidth", configuration.execution.compute.local_memory.bytes_per_ns() * 1e9}});
  }
  return table;
}

PresetTable table_of_stacks() {
  PresetTable table{.heads = {"stack", "processor", "library", "fitted to"},
                    .is_text = {true, true, true, true},
                    .rows = {},
                    .advice = "stack: NAME, for systems of the processor; docs/validation.md has the errors"};
  for (const StackFacts& stack : preset_stacks()) {
    table.rows.push_back({stack.name, stack.processor, stack.library, stack.summary});
    table.json.push_back(
        {{"name", stack.name}, {"processor", stack.processor}, {"library", stack.library}, {"summary", stack.summary}});
  }
  return table;
}

PresetTable table_of_prices() {
  PresetTable table{.heads = {"prices", "date", "what"},
                    .is_text = {true, true, true},
                    .rows = {},
                    .advice = "cost: NAME; docs/cost.md says how systems are priced"};
  for (const PriceFacts& prices : preset_prices()) {
    table.rows.push_back({prices.name, prices.date, prices.summary});
    table.json.push_back(
        {{"name", prices.name}, {"date", prices.date}, {"source", prices.source}, {"summary", prices.summary}});
  }
  return table;
}

PresetTable table_of(PresetKind kind) {
  switch (kind) {
    case PresetKind::models:
      return table_of_models();
    case PresetKind::systems:
      return table_of_systems();
    case PresetKind::stacks:
      return table_of_stacks();
    case PresetKind::prices:
      break;
  }
  return table_of_prices();
}

}  // namespace

void show_presets(const ShowPresetsCommand& command) {
  const PresetTable table = table_of(command.kind);
  if (command.json)
    fmt::print("{}\n", table.json.dump(2));
  else
    print_table(table);
}

}  // namespace orrery::show
