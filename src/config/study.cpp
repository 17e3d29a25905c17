#include "orrery/config/study.hpp"
#include "orrery/results/metric_registry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "orrery/base/quantity_text.hpp"
#include "orrery/base/text.hpp"
#include "section.hpp"

namespace orrery::config {
namespace {

using explore::Derived;
using explore::Expression;
using explore::Objective;
using explore::Parameter;
using explore::Strategy;
using explore::Study;

constexpr std::size_t most_values_of_parameter = 100'000;  ///< largest number of values of a parameter
constexpr std::uint32_t most_samples = 1'000'000;

/// Keys that decide what a run writes and whether it resumes from a checkpoint, none of which a trial does.
constexpr std::string_view keys_without_effect[] = {"run.output",
                                                    "run.force",
                                                    "run.quiet",
                                                    "run.progress",
                                                    "run.progress-interval",
                                                    "run.checkpoint",
                                                    "run.checkpoint-interval",
                                                    "run.restart",
                                                    "run.print-npus"};

/// Returns the key of CONFIG.yaml that a parameter or a derived value sets. Throws Error (bad_input) for one that has
/// no effect on a trial.
std::string key_of_trial(const Value& value, const std::string& path, std::string_view expected) {
  std::string key = as_text(value, path, expected);
  if (std::ranges::find(keys_without_effect, key) != std::end(keys_without_effect))
    throw Error(ErrorCode::bad_input, value.place(path), fmt::format("found '{}', which has no effect on a trial", key),
                "a key that decides what is simulated",
                "A study writes one file with all trials, and with --keep-results the results of trials.");
  return key;
}

/// Returns a value as YAML in one line, as --set takes it.
std::string flow_text(const Value& value) {
  std::string text;
  switch (value.kind) {
    case Value::Kind::null:
      return "null";
    case Value::Kind::scalar:
      return value.quoted ? fmt::format("\"{}\"", value.text) : value.text;
    case Value::Kind::sequence:
      for (const Value& item : value.items) text += (text.empty() ? "" : ", ") + flow_text(item);
      return "[" + text + "]";
    case Value::Kind::mapping:
      for (const auto& entry : value.entries)
        text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", entry.key, flow_text(entry.value));
      return "{" + text + "}";
  }
  return text;
}

/// A number of a range with the unit that it is written with.
struct Quantity {
  double number = 0;
  std::string unit;  ///< with the space before it
};

Quantity quantity_of(const Value& value, const std::string& key) {
  const std::string text = as_text(value, key, "a number");
  const std::size_t end = std::min(text.find_first_not_of("0123456789.eE+-"), text.size());
  const auto number = explore::value_of(text.substr(0, end));
  if (std::isnan(explore::as_real(number)) || std::isnan(explore::as_real(explore::value_of(text))))
    throw Error(ErrorCode::bad_input, value.place(key), fmt::format("found '{}'", text),
                "a number, or one with a unit");
  return {explore::as_real(number), text.substr(end)};
}

/// Reads the values from `from` to `to`, with the unit of both.
void read_range(Section& range, const Value& parent, Faults& faults, Parameter& parameter) {
  const Value* const from = range.need("from", "the first value");
  const Value* const to = range.need("to", "the last value");
  const Value* const factor = range.find("factor");
  const Value* const step_value = range.find("step");
  const Value* const steps = range.find("steps");
  const Value* const scale = range.find("scale");
  range.refuse_unknown();
  if (from == nullptr || to == nullptr || !faults.empty()) return;
  const Quantity first = quantity_of(*from, range.path("from")), last = quantity_of(*to, range.path("to"));
  const auto fail = [&](const Value& value, std::string_view name, std::string_view found, std::string_view expected) {
    throw Error(ErrorCode::bad_input, value.place(range.path(name)), found, expected);
  };
  if (first.unit != last.unit) fail(*to, "to", fmt::format("found the unit '{}'", last.unit), "that of `from`");
  if (last.number < first.number) fail(*to, "to", "found less than `from`", "`from` or more");
  if ((factor != nullptr) + (step_value != nullptr) + (steps != nullptr) > 1)
    fail(parent, "", "found several of factor, step and steps", "one of them, or none for all numbers");
  const bool is_log =
      scale != nullptr && as_word<bool>(*scale, range.path("scale"), {{"linear", false, ""}, {"log", true, ""}});
  if (is_log && first.number <= 0) fail(*from, "from", "found 0 or less", "more than 0, as scale is log");
  std::vector<double> numbers;
  if (factor == nullptr && step_value == nullptr && steps == nullptr) {
    parameter.interval = {first.number, last.number, first.unit, is_log};
    return;
  }
  if (steps != nullptr) {
    const std::uint32_t count = as_count(*steps, range.path("steps"), 2, most_values_of_parameter);
    for (std::uint32_t i = 0; i < count; ++i) {
      const double share = static_cast<double>(i) / (count - 1);
      numbers.push_back(is_log ? first.number * std::pow(last.number / first.number, share)
                               : first.number + (last.number - first.number) * share);
    }
    numbers.back() = last.number;
  } else {
    const Value& by = factor != nullptr ? *factor : *step_value;
    const std::string_view name = factor != nullptr ? "factor" : "step";
    const double size = quantity_of(by, range.path(name)).number;
    if (size <= (factor != nullptr ? 1 : 0) || (factor != nullptr && first.number <= 0))
      fail(by, name, "found a value that leads nowhere",
           "more than 1 for a factor from more than 0, more than 0 for a step");
    for (double number = first.number; number <= last.number * (1 + 1e-12);
         number = factor != nullptr ? number * size : number + size) {
      numbers.push_back(number);
      if (numbers.size() > most_values_of_parameter) fail(by, name, "found more than 100000 values", "fewer");
    }
  }
  for (const double number : numbers) parameter.values.push_back(fmt::format("{}{}", number, first.unit));
}

/// Reads the parts of a study. Faults are collected.
class StudyReader {
 public:
  StudyReader(const Value& root, Faults& faults) : root_(root), faults_(faults) {}

  Study read() {
    Section top(&root_, "", root_, faults_);
    Section section = top.section("study");
    if (!section.present()) faults_.add(Error(ErrorCode::bad_input, root_.place("study"), "missing", "a study"));
    if (const Value* const base = section.need("base", "a CONFIG.yaml"))
      faults_.attempt([&] {
        study_.base = as_path(*base, section.path("base"));
        study_.base_place = base->place(section.path("base"));
      });
    each_entry(section, "parameters", true, [&](const auto& entry) { read_parameter(entry); });
    each_entry(section, "derived", false, [&](const auto& entry) { read_derived(entry); });
    each_item(section, "constraints", false, [&](const Value& item, const std::string& path) {
      study_.constraints.push_back(expression(item, path));
    });
    each_item(section, "objectives", true,
              [&](const Value& item, const std::string& path) { read_objective(item, path); });
    read_number(section, "keep", study_.keep);
    if (const Value* const seconds = section.find("max-seconds-per-trial"))
      faults_.attempt([&] { study_.most.seconds = as_seconds(*seconds, section.path("max-seconds-per-trial")); });
    if (const Value* const memory = section.find("max-memory-per-trial"))
      faults_.attempt([&] {
        const std::string key = section.path("max-memory-per-trial");
        study_.most.memory = parse_bytes(as_text(*memory, key, "a size"), memory->place(key), "4 GB").count();
      });
    read_truth(section, "fold", study_.fidelity.fold);
    read_truth(section, "sensitivity", study_.sensitivity);
    read_fidelity(section);
    read_strategy(section);
    const Value* const caveats = section.find("caveats");
    if (caveats != nullptr) faults_.attempt([&] { read_caveats(*caveats, section.path("caveats")); });
    if (const Value* const cost = top.find("cost"))
      faults_.attempt([&] {
        const auto file = as_path(*cost, "cost");
        study_.cost = std::filesystem::exists(file) ? file.string() : cost->text;
      });
    section.refuse_unknown();
    top.refuse_unknown();
    if (caveats == nullptr) study_.caveats = explore::default_caveats(study_);
    if (faults_.empty()) faults_.attempt([&] { validate(study_); });
    return std::move(study_);
  }

 private:
  /// Calls `body` for the entries of a mapping.
  template <class Body>
  void each_entry(Section& section, std::string_view key, bool is_needed, Body body) {
    const Value* const value = is_needed ? section.need(key, "a mapping of names") : section.find(key);
    if (value == nullptr) return;
    faults_.attempt([&] {
      if (value->kind != Value::Kind::mapping || value->entries.empty())
        throw Error(ErrorCode::bad_input, value->place(section.path(key)),
                    fmt::format("found {}", value->description()), "a mapping of names");
    });
    for (const auto& entry : value->entries) faults_.attempt([&] { body(entry); });
  }
  template <class Body>
  void each_item(Section& section, std::string_view key, bool is_needed, Body body) {
    const Value* const value = is_needed ? section.need(key, "a list") : section.find(key);
    if (value == nullptr) return;
    faults_.attempt([&] {
      const auto& items = as_list(*value, section.path(key), "a list");
      for (std::size_t i = 0; i < items.size(); ++i)
        faults_.attempt([&] { body(items[i], fmt::format("{}.{}", section.path(key), i)); });
    });
  }
  void read_number(Section& section, std::string_view key, std::uint32_t& number) {
    if (const Value* const value = section.find(key))
      faults_.attempt([&] { number = as_count(*value, section.path(key)); });
  }
  void read_truth(Section& section, std::string_view key, bool& truth) {
    if (const Value* const value = section.find(key))
      faults_.attempt([&] { truth = as_bool(*value, section.path(key)); });
  }
  void read_fidelity(Section& section) {
    Section fidelity = section.section("fidelity");
    read_truth(fidelity, "fold", study_.fidelity.fold);
    for (const auto& [name, key] :
         {std::pair("network", "system.network.model"), {"iterations", "workload.iterations"}})
      if (const Value* const value = fidelity.find(name))
        faults_.attempt(
            [&] { study_.fidelity.settings.emplace_back(key, as_text(*value, fidelity.path(name), "a value")); });
    fidelity.refuse_unknown();
  }
  void read_strategy(Section& section) {
    Section strategy = section.section("strategy");
    if (const Value* const kind = strategy.find("kind"))
      faults_.attempt([&] {
        study_.strategy = as_word<Strategy>(*kind, strategy.path("kind"),
                                            {{"grid", Strategy::grid, "simulates all"},
                                             {"bounded", Strategy::bounded, "simulates what may be best"},
                                             {"random", Strategy::random, "draws independent samples"},
                                             {"latin-hypercube", Strategy::latin_hypercube, "draws stratified samples"},
                                             {"sobol", Strategy::sobol, "draws samples that fill the space"}});
      });
    explore::Sampling& sampling = study_.sampling;
    read_number(strategy, "samples", sampling.samples);
    const Value* const samples = strategy.find("samples");
    const Value* const seed = strategy.find("seed");
    if (seed != nullptr) faults_.attempt([&] { sampling.seed = as_count(*seed, strategy.path("seed"), 0); });
    strategy.refuse_unknown();
    Section refine = section.section("refine");
    if (refine.present()) {
      sampling.rounds = 1;
      read_number(refine, "rounds", sampling.rounds);
      if (const Value* const factor = refine.find("factor"))
        faults_.attempt([&] { sampling.factor = as_number(*factor, refine.path("factor"), "1 or more"); });
    }
    refine.refuse_unknown();
    faults_.attempt([&] {
      const auto fail = [](const Value& value, const std::string& key, std::string_view found,
                           std::string_view expected) {
        throw Error(ErrorCode::bad_input, value.place(key), found, expected);
      };
      if (sampling.samples > most_samples)
        fail(*samples, strategy.path("samples"), "found more than a million", "fewer");
      if (refine.present() && sampling.factor < 1) fail(root_, refine.path("factor"), "found less than 1", "1 or more");
      if (explore::draws_samples(study_.strategy)) return;
      const std::string expected = "strategy: {kind: random}, latin-hypercube or sobol, which draw samples";
      if (samples != nullptr || seed != nullptr)
        fail(samples != nullptr ? *samples : *seed, strategy.path(samples != nullptr ? "samples" : "seed"),
             fmt::format("the strategy {} draws no samples", name(study_.strategy)), expected);
      if (refine.present())
        fail(root_, section.path("refine"), fmt::format("the strategy {} tries all values", name(study_.strategy)),
             expected);
    });
  }
  void read_caveats(const Value& value, const std::string& path) {
    if (value.kind != Value::Kind::sequence)
      throw Error(ErrorCode::bad_input, value.place(path), fmt::format("found {}", value.description()),
                  "a list of {when: EXPRESSION, text: TEXT}, which may be empty");
    for (std::size_t i = 0; i < value.items.size(); ++i)
      faults_.attempt([&] {
        Section caveat(&value.items[i], fmt::format("{}.{}", path, i), value.items[i], faults_);
        const Value* const when = caveat.need("when", "an expression");
        const Value* const text = caveat.need("text", "what to say of the trial");
        caveat.refuse_unknown();
        if (when == nullptr || text == nullptr) return;
        study_.caveats.push_back(
            {expression(*when, caveat.path("when")), as_text(*text, caveat.path("text"), "what to say of the trial")});
      });
  }
  Expression expression(const Value& value, const std::string& path) {
    return Expression::parse(as_text(value, path, "an expression"), value.place(path));
  }

  void read_parameter(const Value::Entry& entry) {
    const std::string path = "study.parameters." + entry.key;
    Section section(&entry.value, path, entry.value, faults_);
    Parameter parameter;
    parameter.name = entry.key;
    parameter.place = entry.value.place(path);
    const Value* const key = section.find("key");
    const Value* const file = section.find("file");
    if (key != nullptr) parameter.key = key_of_trial(*key, section.path("key"), "a key of CONFIG.yaml");
    if (file != nullptr) parameter.key = as_text(*file, section.path("file"), "a key of CONFIG.yaml that names a file");
    const Value* const values = section.find("values");
    const Value* const range_value = section.find("range");
    if ((values == nullptr) == (range_value == nullptr))
      throw Error(ErrorCode::bad_input, parameter.place, "found values and range, or none of them", "one of them");
    if (values != nullptr)
      for (const Value& item : as_list(*values, section.path("values"), "a list of values"))
        parameter.values.push_back(file != nullptr ? as_path(item, section.path("values")).string() : flow_text(item));
    Section range = section.section("range");
    if (range_value != nullptr) read_range(range, *range_value, faults_, parameter);
    if (const Value* const when = section.find("when")) parameter.when = expression(*when, section.path("when"));
    if (const Value* const otherwise = section.find("else")) parameter.otherwise = flow_text(*otherwise);
    section.refuse_unknown();
    study_.parameters.push_back(std::move(parameter));
  }
  void read_derived(const Value::Entry& entry) {
    Section section(&entry.value, "study.derived." + entry.key, entry.value, faults_);
    const Value* const key = section.find("key");
    const Value* const value = section.need("value", "an expression");
    const Value* const unit = section.find("unit");
    section.refuse_unknown();
    if (value == nullptr) return;
    const std::string of_key = unit == nullptr ? "" : as_text(*unit, section.path("unit"), "a unit");
    if (!of_key.empty() && !explore::is_unit(of_key))
      throw Error(ErrorCode::bad_input, unit->place(section.path("unit")), fmt::format("found '{}'", of_key),
                  "a unit of bytes, bandwidth, time or FLOPs, such as GB/s");
    study_.derived.push_back({entry.key,
                              key == nullptr ? "" : key_of_trial(*key, section.path("key"), "a key of CONFIG.yaml"),
                              expression(*value, section.path("value")), of_key});
  }
  void read_objective(const Value& item, const std::string& path) {
    Section section(&item, path, item, faults_);
    const Value* const least = section.find("minimise");
    const Value* const most = section.find("maximise");
    section.refuse_unknown();
    if ((least == nullptr) == (most == nullptr))
      throw Error(ErrorCode::bad_input, item.place(path), "found minimise and maximise, or none of them",
                  "one of them");
    const Value& named = least != nullptr ? *least : *most;
    const std::string name = as_text(named, path, "a metric");
    std::vector<std::string_view> known;
    for (const auto& metric : results::study_metrics()) known.push_back(metric.name);
    if (!explore::is_metric(name))
      throw Error(ErrorCode::bad_input, named.place(path), fmt::format("found '{}'", name), "a metric",
                  suggestion(name, known));
    study_.objectives.push_back({name, most != nullptr, named.place(path)});
  }

  const Value& root_;
  Faults& faults_;
  Study study_;
};

}  // namespace

explore::Study read_study(const std::filesystem::path& file) {
  Faults faults;
  Study study;
  faults.attempt([&] {
    if (std::error_code failure; std::filesystem::is_regular_file(file, failure))
      if (const auto other = trace::describe_other(file))
        throw Error(ErrorCode::bad_input, {.file = file.string()}, fmt::format("the file is {}", *other),
                    "a STUDY.yaml");
    std::string text = read_text(file);
    const Value root =
        parse_yaml(text, std::make_shared<const Origin>(Origin{file.string(), file.parent_path()}), faults);
    if (root.find("study") == nullptr && (root.find("system") != nullptr || root.find("workload") != nullptr))
      throw Error(ErrorCode::bad_input, {.file = file.string()}, "the file is a configuration and no study",
                  "a STUDY.yaml with the key study", "'orrery run FILE' takes a configuration.");
    study = StudyReader(root, faults).read();
    study.text = std::move(text);
  });
  faults.raise();
  return study;
}

}  // namespace orrery::config
