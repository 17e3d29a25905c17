#include "orrery/results/study.hpp"

#include <limits>

#include "orrery/base/version.hpp"
#include "output.hpp"
#include "source.hpp"

namespace orrery::results {
namespace {

void write_texts(File& file, const std::string& path, const TextColumn& column, const Label& label) {
  file.strings(path, column.texts(), column.rows(), label);
}

/// Writes what was searched.
void write_question(File& file, const StudyTable& study) {
  file.group("/study", "what was searched");
  for (const auto& [name, text] : study.inputs) file.text("/study/" + name, text, {"1", name, "verbatim"});
  for (const auto& [name, text] : study.attributes) file.attribute("/study", name.c_str(), text);
  std::vector<std::string> metrics, directions;
  for (const auto& [metric, is_maximised] : study.objectives) {
    metrics.push_back(metric);
    directions.emplace_back(is_maximised ? "maximise" : "minimise");
  }
  file.group("/study/objectives", "what is best, the first one first");
  file.strings("/study/objectives/metric", metrics, {"1", "metric", "column of /trials"});
  file.strings("/study/objectives/direction", directions, {"1", "direction", "minimise or maximise"});
  file.strings("/study/constraints", study.constraints, {"1", "constraint", "what must hold"});
}

void write_trials(File& file, const StudyTable& study) {
  file.group("/trials", "one row for each legal configuration");
  file.column<std::uint64_t>("/trials/number", study.number, {"1", "number", "among the legal configurations"});
  write_texts(file, "/trials/status", study.status, {"1", "status", "how the trial ended"});
  write_texts(file, "/trials/error", study.error, {"1", "error", "why it is not done"});
  write_texts(file, "/trials/caveat", study.caveat, {"1", "caveat", "why its metrics may be too good"});
  for (const StudyColumn& column : study.metrics)
    file.column<double>("/trials/" + column.name, column.values, {column.units, column.name, column.description});
  file.group("/parameters", "[trials] values of the study's names: numbers in SI units if all are numbers, else texts");
  file.group("/settings", "texts of the study's names, each once");
  for (const StudyParameter& parameter : study.parameters) {
    const Label as_text{"1", parameter.name, "value as the configuration has it"};
    const std::string settings = "/settings/" + parameter.name;
    file.group(settings, "values as the configuration has them");
    file.strings(settings + "/text", parameter.values.texts(), {"1", "text", "distinct values"});
    file.column<std::uint32_t>(settings + "/row", parameter.values.rows(), {"1", "row", "[trials] position in text"});
    if (parameter.numbers.empty()) {
      write_texts(file, "/parameters/" + parameter.name, parameter.values, as_text);
      continue;
    }
    std::vector<double> numbers;
    for (const std::uint32_t row : parameter.values.rows()) numbers.push_back(parameter.numbers[row]);
    file.column<double>("/parameters/" + parameter.name, numbers, {parameter.units, parameter.name, "value"});
  }
}

void write_found(File& file, const StudyTable& study) {
  const bool is_front = study.objectives.size() > 1;
  file.column<std::uint64_t>(
      is_front ? "/front" : "/top", study.best,
      {"1", is_front ? "front" : "top",
       is_front ? "numbers of the trials of the Pareto front" : "numbers of the best trials, the best one first"});
  file.column<std::uint64_t>("/best", study.best, {"1", "best", "the same as /top or /front"});
  file.group("/funnel", "how many configurations fell to what");
  std::vector<std::string> reasons;
  std::vector<std::uint64_t> counts;
  for (const auto& [reason, count] : study.funnel) {
    reasons.push_back(reason);
    counts.push_back(count);
  }
  file.strings("/funnel/reason", reasons, {"1", "reason", "constraint or status"});
  file.column<std::uint64_t>("/funnel/count", counts, {"1", "count", "configurations"});
}

void write_main_effects(File& file, const StudyTable& study) {
  std::vector<std::string> parameters;
  std::vector<double> effects;
  for (const auto& [parameter, effect] : study.main_effects) {
    parameters.push_back(parameter);
    effects.push_back(effect);
  }
  file.group("/sensitivity/main_effect", "share of each parameter in the variance of the first objective");
  file.strings("/sensitivity/main_effect/parameter", parameters, {"1", "parameter", "name"});
  file.column<double>("/sensitivity/main_effect/effect", effects,
                      {"1", "effect", "variance of the means at each value, over the variance of all that are done"});
}

void write_tornado(File& file, const StudyTable& study) {
  std::vector<std::string> parameters, low_values, high_values;
  std::vector<double> low, high;
  for (const TornadoBar& bar : study.tornado) {
    parameters.push_back(bar.parameter);
    low_values.push_back(bar.low_value);
    high_values.push_back(bar.high_value);
    low.push_back(bar.low);
    high.push_back(bar.high);
  }
  const std::string group = "/sensitivity/tornado";
  file.group(group, "the first objective if one parameter of the best trial has another value");
  file.strings(group + "/parameter", parameters, {"1", "parameter", "name"});
  file.strings(group + "/low_value", low_values, {"1", "low value", "the lowest one that can be used"});
  file.strings(group + "/high_value", high_values, {"1", "high value", "the highest one that can be used"});
  file.column<double>(group + "/low", low, {"1", "low", "the first objective with the low value, in its units"});
  file.column<double>(group + "/high", high, {"1", "high", "the first objective with the high value, in its units"});
}

void write_kernel(File& file, const StudyTable& study, int num_ranks) {
  file.group("/kernel", "how it was searched; the rest of the file does not depend on it");
  file.attribute("/kernel", "command_line", study.command_line);
  file.attribute("/kernel", "num_ranks", std::int64_t{num_ranks});
  file.attribute("/kernel", "revision", revision());
  file.attribute("/kernel", "shard", study.shard);
  std::vector<std::string> names;
  std::vector<std::uint64_t> digests;
  for (const auto& [name, digest] : study.identity) {
    names.push_back(name);
    digests.push_back(digest);
  }
  file.strings("/kernel/inputs", names, {"1", "input", "what the trials depend on"});
  file.column<std::uint64_t>("/kernel/digests", digests, {"1", "digest", "of each input"});
  file.column<std::uint64_t>("/kernel/extra", study.extra,
                             {"1", "extra", "trials that were simulated although their bounds rule them out"});
}

}  // namespace

void TextColumn::add(const std::string& text) {
  const auto [entry, is_new] = position_of_.try_emplace(text, static_cast<std::uint32_t>(texts_.size()));
  if (is_new) texts_.push_back(text);
  rows_.push_back(entry->second);
}

std::filesystem::path write_study(const std::filesystem::path& path, const StudyTable& study, bool force,
                                  parallel::Communicator& world) {
  Output output(path, world);
  output.on_root([&](File& file) {
    file.attribute("/", "format", "orrery-explore");
    file.attribute("/", "format_version", std::int64_t{1});
    file.attribute("/", "orrery_version", version());
    write_question(file, study);
    write_kernel(file, study, world.size());
    write_trials(file, study);
    write_found(file, study);
    if (!study.main_effects.empty() || !study.tornado.empty())
      file.group("/sensitivity", "what the first objective depends on");
    if (!study.main_effects.empty()) write_main_effects(file, study);
    if (!study.tornado.empty()) write_tornado(file, study);
  });
  return output.commit(force);
}

StoredStudy read_study(const std::filesystem::path& path, std::span<const std::string> columns) {
  const Source source(path);
  if (source.text("format") != "orrery-explore") source.fail("holds no study");
  StoredStudy study;
  study.shard = source.text_of("/kernel", "shard");
  const auto names = source.texts("/kernel/inputs");
  const auto digests = source.column<std::uint64_t>("/kernel/digests");
  study.number = source.column<std::uint64_t>("/trials/number");
  study.status = source.texts("/trials/status");
  study.error = source.texts("/trials/error");
  bool is_whole = names.size() == digests.size() && study.status.size() == study.number.size() &&
                  study.error.size() == study.number.size();
  for (const std::string& column : columns) {
    const std::string dataset = "/trials/" + column;
    study.metrics.push_back(source.has(dataset.c_str())
                                ? source.column<double>(dataset)
                                : std::vector(study.number.size(), std::numeric_limits<double>::quiet_NaN()));
    is_whole &= study.metrics.back().size() == study.number.size();
  }
  if (!is_whole) source.fail("its tables are not whole");
  for (std::size_t i = 0; i < names.size(); ++i) study.identity.emplace_back(names[i], digests[i]);
  return study;
}

}  // namespace orrery::results
