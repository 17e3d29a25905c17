#include "orrery/show/brief_summary.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "orrery/base/text.hpp"
#include "orrery/base/utf8.hpp"
#include "orrery/base/wrapped.hpp"
#include "orrery/results/breakdown.hpp"
#include "orrery/results/metric_text.hpp"
#include "orrery/show/summary.hpp"
#include "orrery/workload/parallel.hpp"

namespace orrery::show {
namespace {

constexpr std::size_t most_lines = 20;
constexpr std::size_t narrowest = 40;  ///< columns, below which lines are not broken
constexpr double least_part = 0.005;   ///< share of the time, below which parts are summed up
constexpr double highest_mfu = 0.7;    ///< MFU that training reaches on real machines, and a little more

using Lines = std::vector<std::string>;  ///< lines of a text

/// Returns what the user calls the model: the name of its file; empty if it has none.
std::string name_of_model(const config::Configuration& configuration) {
  const auto& place = configuration.model_file;
  if (place.empty()) return {};
  const std::filesystem::path file(place);
  if (file.stem() == "config" && file.has_parent_path()) return file.parent_path().filename().string();
  return file.stem().string();
}

/// Returns "llama3-8b on 64 NPUs (tp 4, dp 4, pp 4)".
std::string subject(const results::Gathered& all, const config::Configuration& configuration) {
  const std::string npus = counted(all.npus.size(), "NPU");
  if (!configuration.workload.jobs.empty())
    return fmt::format("{} on {}", counted(configuration.workload.jobs.size(), "job"), npus);
  const auto& generated = configuration.workload.generated;
  if (!generated) return fmt::format("traces of {}", npus);
  std::vector<std::string> degrees;
  for (const workload::Axis axis : generated->parallel.placement)
    if (const std::uint32_t size = generated->parallel[axis]; size > 1)
      degrees.push_back(fmt::format("{} {}", workload::axis_names[static_cast<std::size_t>(axis)], size));
  if (generated->parallel.sharding.zero > 0)
    degrees.push_back(fmt::format("zero {}", generated->parallel.sharding.zero));
  const std::string name = name_of_model(configuration);
  return fmt::format("{} on {}{}", name.empty() ? "a model" : printable(name), npus,
                     degrees.empty() ? "" : fmt::format(" ({})", fmt::join(degrees, ", ")));
}

/// Returns the rates that are known, each as "MFU 56.3 %".
Lines rates(const results::Metrics& metrics) {
  Lines parts;
  const auto& training = metrics.training;
  if (training.model_flops_utilisation) parts.push_back("MFU " + results::percent(*training.model_flops_utilisation));
  if (training.time_to_first_token)
    parts.push_back(fmt::format("first token after {:.4g} ms", 1e3 * *training.time_to_first_token));
  if (training.time_per_output_token)
    parts.push_back(fmt::format("{:.4g} ms per token", 1e3 * *training.time_per_output_token));
  if (training.tokens_per_second)
    parts.push_back(fmt::format("{} tokens/s", with_prefix(*training.tokens_per_second)));
  else if (training.samples_per_second)
    parts.push_back(fmt::format("{} samples/s", with_prefix(*training.samples_per_second)));
  return parts;
}

/// Returns "18.21 of 80.00 GB of memory"; nothing if it is not known what tensors need.
std::optional<std::string> memory(const results::Gathered& all, const config::Configuration& configuration) {
  const auto peak = all.npus.most(&npu::NpuRecord::peak_local_memory).first.peak_local_memory.count();
  if (peak == 0) return {};
  const auto size = configuration.execution.local_memory.size.count();
  if (size == 0) return fmt::format("{} of memory", size_text(peak, 1));
  const auto text = [](std::uint64_t bytes) { return fmt::format("{:.4g}", static_cast<double>(bytes) * 1e-9); };
  return peak < 1'000'000'000 ? fmt::format("{} of {} GB of memory", size_text(peak, 1), text(size))
                              : fmt::format("{} of {} GB of memory", text(peak), text(size));
}

std::string headline(const results::Gathered& all, const results::RunDescription& run,
                     const config::Configuration& configuration, Time end) {
  const bool has_steps = all.metrics && all.metrics->iterations > 1;
  std::string text =
      fmt::format("step time {}: {}", readable(has_steps ? all.metrics->step_time : end), subject(all, configuration));
  Lines parts = all.metrics ? rates(*all.metrics) : Lines();
  if (auto part = memory(all, configuration)) parts.push_back(std::move(*part));
  if (has_steps) parts.push_back(fmt::format("mean of {} steps", all.metrics->iterations));
  if (run.repetitions.size() > 1) parts.push_back(fmt::format("first of {} repetitions", run.repetitions.size()));
  // Each part stays in one line.
  for (std::string& part : parts) {
    std::ranges::replace(part, ' ', no_break);
    text += ", " + part;
  }
  return text;
}

/// A row of the table of causes.
struct CauseRow {
  std::string name;
  double share = 0;
  std::string remedy;
};

/// Returns the parts of the time, the largest first, with the remedies that shorten them most.
std::vector<CauseRow> causes(const results::Metrics& metrics, const study::Advice& advice) {
  std::vector<CauseRow> rows;
  double rest = 0;
  for (std::size_t part = 0; part < metrics.breakdown.size(); ++part) {
    const double share = metrics.breakdown[part];
    if (share < least_part) {
      rest += share;
      continue;
    }
    CauseRow row{std::string(results::breakdown_name(part)), share, ""};
    const auto found = std::ranges::find(advice.remedies, part, &study::Remedy::part);
    if (found != advice.remedies.end()) row.remedy = fmt::format("{:+.1f} %: {}", -100 * found->gain, found->change);
    rows.push_back(std::move(row));
  }
  std::ranges::stable_sort(rows, std::greater(), &CauseRow::share);
  if (rest >= least_part) rows.push_back({"rest", rest, ""});
  return rows;
}

Lines cause_lines(const std::vector<CauseRow>& rows, const Terminal& terminal) {
  constexpr std::size_t longest_bar = 20;
  const std::string strong = terminal.has_colours ? "\033[1m" : "", plain = terminal.has_colours ? "\033[0m" : "",
                    blue = terminal.has_colours ? "\033[34m" : "";
  Lines lines;
  for (const CauseRow& row : rows) {
    const auto length = static_cast<std::size_t>(std::lround(row.share * longest_bar));
    std::string bar = std::string(length, '#');
    std::string remedy = row.remedy;
    const std::size_t before = 2 + 12 + 9 + longest_bar + 2;
    if (before + remedy.size() > terminal.columns) remedy.clear();
    if (!remedy.empty()) bar.resize(longest_bar, ' ');
    if (bar.empty()) bar = "|";
    lines.push_back(fmt::format("  {}{:<12}{}{:>7}  {}{}{}{}{}", strong, row.name, plain, results::percent(row.share),
                                blue, bar, plain, remedy.empty() ? "" : "  ", remedy));
  }
  return lines;
}

/// Returns a line for each job, the first ones if there are many.
Lines job_lines(const std::vector<results::JobFigures>& figures, const std::vector<results::JobDescription>& jobs) {
  constexpr std::size_t most_jobs = 8;
  Lines lines;
  for (std::size_t j = 0; j < std::min(figures.size(), most_jobs); ++j)
    lines.push_back(fmt::format("  {:<20}{:>8} NPUs  {:>14}{}", cited(jobs[j].name, 20), figures[j].npus,
                                readable(figures[j].run_time),
                                figures[j].alone ? fmt::format("  slowdown {:.4f}", figures[j].slowdown()) : ""));
  if (figures.size() > most_jobs) lines.push_back(fmt::format("  and {} more", figures.size() - most_jobs));
  return lines;
}

/// Returns what cannot be on a real machine.
Lines warnings(const results::Metrics& metrics) {
  Lines found;
  const auto& training = metrics.training;
  const auto add = [&](const std::string& text) { found.push_back("warning: " + text); };
  if (training.hardware_flops_utilisation && *training.hardware_flops_utilisation > 1)
    add(fmt::format("HFU {} is above the peak: is system.compute.peak that of the precision?",
                    results::percent(*training.hardware_flops_utilisation)));
  else if (training.model_flops_utilisation && *training.model_flops_utilisation > highest_mfu)
    add(fmt::format("MFU {} is more than training reaches: name a stack (orrery show stacks)",
                    results::percent(*training.model_flops_utilisation)));
  return found;
}

/// Returns a warning of NPUs whose tensors need more than their memory; none if all fit.
std::optional<std::string> warning_of_memory(const results::NpuRecords& npus, Bytes room) {
  const std::uint64_t exceed = room > Bytes(0) ? npus_beyond(npus, room) : 0;
  if (exceed == 0) return {};
  return fmt::format("warning: {} of {} need more memory than they have", exceed, counted(npus.size(), "NPU"));
}

/// Returns what repetitions and prices say.
Lines more_figures(const results::Gathered& all, const results::RunDescription& run) {
  Lines lines;
  if (run.repetitions.size() > 1) {
    const auto figures = results::figures_of(run.repetitions);
    const auto text = [&](double ps) {
      return readable(Time::from_ps(std::llround(ps / static_cast<double>(run.iterations))));
    };
    lines.push_back(fmt::format("repetitions: mean {}, 95 % confidence {} to {}", text(figures.mean), text(figures.low),
                                text(figures.high)));
  }
  const auto& cost = all.metrics->cost.step;
  if (cost.capex || cost.price) {
    Lines parts;
    if (cost.capex) parts.push_back(fmt::format("the system {} USD", with_prefix(*cost.capex)));
    if (cost.price) parts.push_back(fmt::format("a step {:.4g} USD", *cost.price));
    lines.push_back(fmt::format("cost: {}", fmt::join(parts, ", ")));
  }
  return lines;
}

}  // namespace

Terminal terminal_of(config::Colours wanted) {
  constexpr std::size_t most_columns = 120;
  Terminal terminal;
  // Below mpirun standard output is a terminal of its own, whatever the user reads: standard error tells.
  const bool is_terminal = isatty(STDOUT_FILENO) == 1 && isatty(STDERR_FILENO) == 1;
  winsize size{};
  if (is_terminal && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    terminal.columns = std::clamp<std::size_t>(size.ws_col, narrowest, most_columns);
  const char* const refused = std::getenv("NO_COLOR");
  terminal.has_colours = wanted == config::Colours::always ||
                         (wanted == config::Colours::automatic && is_terminal && (refused == nullptr || *refused == 0));
  return terminal;
}

std::vector<std::string> brief_summary(const results::Gathered& all, const results::RunDescription& run,
                                       const config::Configuration& configuration, const study::Advice& advice,
                                       const Terminal& terminal) {
  const Time end = all.npus.most(&npu::NpuRecord::finish).first.finish;
  Lines lines = wrapped(headline(all, run, configuration, end), terminal.columns);
  const auto add = [&](const std::string& text) {
    for (std::string& line : wrapped(text, terminal.columns)) lines.push_back(std::move(line));
  };
  if (terminal.has_colours)
    for (std::string& line : lines) line = "\033[1m" + line + "\033[0m";
  if (all.metrics && all.metrics->certainty) add("  " + interval_text(*all.metrics));
  std::ranges::move(job_lines(all.jobs, run.jobs), std::back_inserter(lines));
  if (all.metrics) {
    std::ranges::move(cause_lines(causes(*all.metrics, advice), terminal), std::back_inserter(lines));
    for (const std::string& line : more_figures(all, run)) add(line);
    for (const std::string& line : warnings(*all.metrics)) add(line);
    if (const auto text = warning_of_memory(all.npus, configuration.execution.room())) add(*text);
    for (const std::string& fact : advice.facts) add("hint: " + fact);
    for (const study::Remedy& remedy : advice.remedies) add("hint: " + remedy.text());
  }
  const std::string file = as_typed(all.file.string());
  const Lines last = wrapped(fmt::format("results in {}; next: orrery show results {}", file, file), terminal.columns);
  if (lines.size() + last.size() > most_lines) lines.resize(most_lines - std::min(last.size(), most_lines));
  lines.insert(lines.end(), last.begin(), last.end());
  return lines;
}

std::vector<std::string> sensitivity_lines(const std::vector<study::Sensitivity>& found, Time step) {
  Lines lines = {fmt::format("{:<34}{:>16}{:>16}", "step time with", "10 % less", "10 % more")};
  const auto text = [step](Time time) { return fmt::format("{:+.2f} %", 100 * (time.seconds() / step.seconds() - 1)); };
  for (const study::Sensitivity& one : found)
    lines.push_back(fmt::format("  {:<32}{:>16}{:>16}", one.input, text(one.less), text(one.more)));
  return lines;
}

}  // namespace orrery::show
