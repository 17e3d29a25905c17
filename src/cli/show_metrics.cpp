#include <cstdint>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "command.hpp"
#include "config_options.hpp"
#include "option_values.hpp"
#include "orrery/results/metric_registry.hpp"
#include "orrery/results/metric_text.hpp"

namespace orrery::cli {
namespace {

using nlohmann::ordered_json;
using results::MetricInfo;

enum class MetricForm : std::uint8_t { text, json, markdown };
struct ShowMetricsCommand {
  MetricForm form = MetricForm::text;
};

constexpr std::string_view origins[] = {"step", "campaign", "cluster", "serving", "bound"};

std::string_view origin_of(const MetricInfo& metric) { return origins[static_cast<std::size_t>(metric.origin)]; }
std::string_view better_of(const MetricInfo& metric) {
  return metric.better == results::Better::more ? "more" : "less";
}

ordered_json as_json() {
  ordered_json list = ordered_json::array();
  for (const MetricInfo& metric : results::metric_registry())
    if (!metric.name.empty())
      list.push_back({{"name", metric.name},
                      {"units", metric.units},
                      {"title", results::title_of(metric.name)},
                      {"description", metric.description},
                      {"better", better_of(metric)},
                      {"of", origin_of(metric)},
                      {"column", metric.column},
                      {"is_share", metric.is_share},
                      {"needs_prices", metric.needs_prices},
                      {"place", metric.place}});
  return list;
}

void print_markdown() {
  fmt::print("<!-- keys: metrics -->\n| metric | unit | of | better | what it is |\n|---|---|---|---|---|\n");
  for (const MetricInfo& metric : results::study_metrics())
    fmt::print("| `{}` | {} | {} | {} | {} |\n", metric.name, metric.units, origin_of(metric), better_of(metric),
               metric.description);
  fmt::print("<!-- end of keys -->\n");
}

void print_text() {
  fmt::print("{:<27} {:<6} {:<9} {:<6} {}\n", "metric", "unit", "of", "better", "what it is");
  for (const MetricInfo& metric : results::study_metrics())
    fmt::print("{:<27} {:<6} {:<9} {:<6} {}\n", metric.name, metric.units, origin_of(metric), better_of(metric),
               metric.description);
}

void show_metrics(const ShowMetricsCommand& command) {
  if (command.form == MetricForm::json) return fmt::print("{}\n", as_json().dump(2));
  return command.form == MetricForm::markdown ? print_markdown() : print_text();
}

const Subcommand& show_metrics_subcommand() {
  static const Subcommand command{"show metrics",
                                  "Print the metrics that a study may name: unit, better direction, meaning.",
                                  "",
                                  "  orrery show metrics\n"
                                  "  orrery show metrics --json",
                                  {{"Output", {json_option(), {"markdown", "", "print the table of the documents"}}}}};
  return command;
}

ShowMetricsCommand make_show_metrics(const Arguments& arguments) {
  const bool json = arguments.flag("json").value_or(false), markdown = arguments.flag("markdown").value_or(false);
  if (json && markdown) refuse_usage("orrery show metrics: both --json and --markdown are given. Give one of them.");
  return {json ? MetricForm::json : markdown ? MetricForm::markdown : MetricForm::text};
}

}  // namespace

extern const CommandEntry show_metrics_entry;
const CommandEntry show_metrics_entry{show_metrics_subcommand, [](const Arguments& arguments) {
                                        return once(make_show_metrics(arguments), show_metrics);
                                      }};

}  // namespace orrery::cli
