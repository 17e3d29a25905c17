#include "references.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <span>
#include <unordered_map>

#include "hugging_face.hpp"
#include "orrery/base/text.hpp"
#include "orrery/trace/store.hpp"
#include "presets.hpp"
#include "section.hpp"

namespace orrery::config {
namespace {

constexpr std::size_t most_files = 64;  // in a chain of bases

/// Returns the value of a key of a mapping; null if there is none.
Value* entry(Value& mapping, std::string_view key) {
  for (auto& entry : mapping.entries)
    if (entry.key == key) return &entry.value;
  return nullptr;
}

/// Puts entries of `above` in the place of those of `base`; mappings that both have are merged. Cost O(entries).
void put_above(Value& base, const Value& above) {
  base.notes.insert(base.notes.end(), above.notes.begin(), above.notes.end());
  std::unordered_map<std::string, std::size_t> positions;
  for (std::size_t i = 0; i < base.entries.size(); ++i) positions.emplace(base.entries[i].key, i);
  for (const auto& own : above.entries) {
    const auto there = positions.find(own.key);
    if (there == positions.end()) {
      base.entries.push_back(own);
      continue;
    }
    Value& value = base.entries[there->second].value;
    if (value.kind == Value::Kind::mapping && own.value.kind == Value::Kind::mapping)
      put_above(value, own.value);
    else
      value = own.value;
  }
}

/// A key that may name a file.
struct Reference {
  std::string key;
  std::string input;         ///< name of the file's text in the results
  std::string_view presets;  ///< the folder of its presets
};

const Reference references[] = {{"system", "system.yaml", "systems"},
                                {"perturbation", "perturbation.yaml", "perturbations"},
                                {"cost", "cost.yaml", "prices"},
                                {"workload.model", "model.yaml", "models"},
                                {"campaign", "campaign.yaml", "campaigns"},
                                {"serving.model", "model.yaml", "models"}};
const Reference &system_reference = references[0], &model_reference = references[3];

/// Returns what a reference's key holds; null if the root does not have it.
Value* entry_of(Value& root, const Reference& reference) {
  Value* at = &root;
  for (std::string_view rest = reference.key; at != nullptr && !rest.empty();) {
    const auto end = rest.find('.');
    at = entry(*at, rest.substr(0, end));
    rest = end == std::string_view::npos ? "" : rest.substr(end + 1);
  }
  return at;
}

/// Returns the file that a name of a model means: in a folder of Hugging Face's hub, its config.json.
std::filesystem::path file_of_model(std::filesystem::path named) {
  std::error_code failure;
  if (const auto inside = named / "config.json"; std::filesystem::is_regular_file(inside, failure)) return inside;
  return named;
}

/// Refuses a file of another tool that is given for a model, such as the arguments of a training program.
void refuse_foreign_model(const std::filesystem::path& path) {
  if (const auto other = trace::describe_other(path))
    throw Error(ErrorCode::bad_input, {.file = path.string()}, fmt::format("the file is {}", *other),
                "a model of Orrery, or the config.json of one of Hugging Face Transformers");
}

/// Reads a model from a file. A config.json of Hugging Face Transformers is read as the keys that it stands for.
Value read_model(std::string_view text, const std::filesystem::path& path, Faults& faults) {
  const auto origin = std::make_shared<const Origin>(Origin{path.string(), path.parent_path()});
  Value held;
  try {
    held = parse_yaml(text, origin, faults);
  } catch (const Error&) {
    refuse_foreign_model(path);
    throw;
  }
  if (is_hugging_face(held)) return model_of_hugging_face(held);
  const auto has = [&](std::string_view key) { return held.find(key) != nullptr; };
  if (!has("kind") && !has("layers") && !has("base")) refuse_foreign_model(path);
  return held;
}

/// Replaces what names a file by what the file holds. `through`: the files that lead here.
void follow(Value* value, const Reference& reference, std::vector<InputText>& inputs, Faults& faults,
            std::vector<std::filesystem::path> through = {}) {
  if (value == nullptr || value->faulty) return;
  const bool whole = value->kind == Value::Kind::scalar;
  const Value* const name = whole ? value : entry(*value, "base");
  if (name == nullptr) return;
  const std::string name_key = whole ? reference.key : reference.key + ".base";
  value->faulty = true;
  faults.attempt([&] {
    const bool is_model = reference.presets == model_reference.presets;
    auto path = find_preset(*name, name_key, reference.presets);
    if (is_model) path = file_of_model(std::move(path));
    if (std::ranges::find(through, path) != through.end())
      throw Error(ErrorCode::bad_input, name->place(name_key),
                  fmt::format("found {}, which stands on this file", path.string()), "another file, or none");
    if (through.size() == most_files)
      throw Error(ErrorCode::bad_input, name->place(name_key), fmt::format("found {}", path.string()),
                  fmt::format("at most {} files that stand on each other", most_files));
    through.push_back(path);
    std::string text = read_text(path, name->place(name_key));
    Value held =
        is_model ? read_model(text, path, faults)
                 : parse_yaml(text, std::make_shared<const Origin>(Origin{path.string(), path.parent_path()}), faults);
    inputs.emplace_back(reference.input, std::move(text));
    if (held.kind == Value::Kind::mapping)
      follow(&held, {reference.key, "base." + reference.input, reference.presets}, inputs, faults, through);
    if (!whole) {
      std::erase_if(value->entries, [](const auto& entry) { return entry.key == "base"; });
      put_above(held, *value);
    }
    *value = std::move(held);
  });
}

constexpr std::string_view stack_input = "stack.yaml", provenance_key = "provenance";
constexpr std::string_view unsaid_basis = "a stack that does not say what it was fitted to";

/// Makes a scalar a mapping in which it stands under a key; by default one that stands on the file of this name.
void make_mapping(Value& value, std::string_view key = "base") {
  if (value.kind != Value::Kind::scalar) return;
  Value mapping;
  mapping.kind = Value::Kind::mapping;
  mapping.line = value.line;
  mapping.origin = value.origin;
  mapping.entries.push_back({std::string(key), value.line, value});
  value = std::move(mapping);
}

/// Returns the processor that the keys of a configuration name; null if none do.
const Value* processor_in(const Value& root) {
  const Value* at = &root;
  for (const std::string_view key : {"system", "compute", "processor"})
    if (at != nullptr) at = at->find(key);
  return at != nullptr && at->kind == Value::Kind::scalar ? at : nullptr;
}

/// Notes in `root`, which a stack is about to be put below, that the stack is of another processor than the system.
void compare_processors(const Value& stack, Value& root, const Value& name) {
  Value alone = root;
  std::vector<InputText> unused_inputs;
  Faults unused_faults;  // those of the system are found again when the stack is below it
  follow(entry(alone, "system"), system_reference, unused_inputs, unused_faults);
  const Value *const of_stack = processor_in(stack), *const of_system = processor_in(alone);
  if (of_stack != nullptr && of_system != nullptr && of_stack->text != of_system->text)
    root.notes.emplace_back(
        Error(ErrorCode::bad_input, name.place("stack"),
              fmt::format("the stack {} has figures of the processor {}, but the NPUs of the system are {} ({})",
                          cited(name.text), cited(of_stack->text), cited(of_system->text), of_system->origin->name),
              "a stack of this processor, or a system of that one")
            .what());
}

/// Puts the workload of a stack below that of each job.
void share_workload(Value& stack, Value& jobs) {
  const Value* const shared = stack.find("workload");
  if (shared == nullptr) return;
  for (Value& job : jobs.items) {
    Value* const own = job.kind == Value::Kind::mapping ? entry(job, "workload") : nullptr;
    if (own == nullptr || own->kind != Value::Kind::mapping) continue;
    Value merged = *shared;
    put_above(merged, *own);
    *own = std::move(merged);
  }
  std::erase_if(stack.entries, [](const auto& entry) { return entry.key == "workload"; });
}

/// Gives serving what it has of the workload of a stack: the host's time for a layer.
void share_with_serving(Value& stack, Faults& faults) {
  const Value* at = &stack;
  for (const char* const key : {"workload", "parallel", "layer-time"})
    if (at != nullptr) at = at->find(key);
  if (at == nullptr) return;
  Value time = *at;
  apply_override(stack, "serving.host.layer=0 s", faults);
  Value* to = &stack;
  for (const char* const key : {"serving", "host", "layer"}) to = entry(*to, key);
  *to = std::move(time);
}

/// Puts the measured figures of a hardware and software stack below what the file itself says, and above the files that
/// it stands on.
void apply_stack(Value& root, std::vector<InputText>& inputs, Faults& faults) {
  const Value* const name = root.find("stack");
  if (name == nullptr) return;
  faults.attempt([&] {
    const auto path = find_preset(*name, "stack", "stacks");
    std::string text = read_text(path, name->place("stack"));
    Value stack = parse_yaml(text, std::make_shared<const Origin>(Origin{path.string(), path.parent_path()}), faults);
    if (stack.kind != Value::Kind::mapping || stack.find("stack") != nullptr || stack.find("base") != nullptr)
      throw Error(ErrorCode::bad_input, name->place("stack"), fmt::format("found {}", path.string()),
                  "a file that has keys of `system` and `workload`, and names no other stack");
    inputs.emplace_back(std::string(stack_input), std::move(text));
    if (stack.find(provenance_key) == nullptr)
      apply_override(stack, fmt::format("{}.basis={}", provenance_key, unsaid_basis), faults);
    compare_processors(stack, root, *name);
    if (Value* const system = entry(root, "system")) make_mapping(*system);
    const bool is_serving = root.find("serving") != nullptr;
    if (is_serving) share_with_serving(stack, faults);
    if (Value* const jobs = entry(root, "jobs")) share_workload(stack, *jobs);
    if (is_serving) std::erase_if(stack.entries, [](const auto& entry) { return entry.key == "workload"; });
    put_above(stack, root);
    root = std::move(stack);
  });
  std::erase_if(root.entries, [](const auto& entry) { return entry.key == "stack"; });
}

/// Replaces the names of the models of jobs by what their files hold.
void follow_models_of_jobs(Value& root, std::vector<InputText>& inputs, Faults& faults) {
  Value* const jobs = root.kind == Value::Kind::mapping ? entry(root, "jobs") : nullptr;
  if (jobs == nullptr) return;
  for (std::size_t i = 0; i < jobs->items.size(); ++i)
    if (Value& job = jobs->items[i]; job.kind == Value::Kind::mapping) {
      const std::string at = fmt::format("jobs.{}", i);
      follow(entry_of(job, model_reference),
             {fmt::format("{}.{}", at, model_reference.key), fmt::format("{}.{}", at, model_reference.input),
              model_reference.presets},
             inputs, faults);
    }
}

}  // namespace

void follow_references(Value& root, std::vector<InputText>& inputs, Faults& faults) {
  if (root.kind == Value::Kind::mapping) apply_stack(root, inputs, faults);
  for (const Reference& reference : references) follow(entry_of(root, reference), reference, inputs, faults);
  follow_models_of_jobs(root, inputs, faults);
  // `library: nccl-h100` is short for a mapping with this name.
  Value* const system = entry(root, "system");
  Value* const collectives = system == nullptr ? nullptr : entry(*system, "collectives");
  if (Value* const library = collectives == nullptr ? nullptr : entry(*collectives, "library"))
    make_mapping(*library, "name");
}

bool names_reference(std::string_view setting) {
  const std::string_view key = setting.substr(0, setting.find('='));
  return key == "stack" || std::ranges::any_of(references, [&](const Reference& reference) {
           return key == fmt::format("{}.base", reference.key);
         });
}

namespace {

// Deviations of predictions without a stack that gives one. A third of the rows of docs/validation.md was left out with
// all rows of their software: their logarithms deviate by 0.16 to 0.28. What nothing was fitted to errs more.
constexpr double unfitted_deviation = 0.28, data_sheet_deviation = 0.4;

/// Returns the value of a name of a mapping; null if it has none.
const Value* in_mapping(const Value* mapping, std::string_view name) {
  return mapping != nullptr && mapping->kind == Value::Kind::mapping ? mapping->find(name) : nullptr;
}

/// Returns the items of a list of mappings; none if there is none.
std::span<const Value> items_in(const Value& provenance, std::string_view name) {
  const Value* const list = in_mapping(&provenance, name);
  return list != nullptr ? std::span<const Value>(list->items) : std::span<const Value>();
}

double number_in(const Value& mapping, std::string_view name, double otherwise) {
  const Value* const found = in_mapping(&mapping, name);
  return found != nullptr ? as_number(*found, fmt::format("{}.{}", provenance_key, name)) : otherwise;
}

std::string text_in(const Value& mapping, std::string_view name) {
  const Value* const found = in_mapping(&mapping, name);
  return found != nullptr ? found->text : std::string();
}

/// Returns the value at the path of a key; null if there is none.
const Value* at_path(const Value& root, std::string_view path) {
  const Value* at = &root;
  while (at != nullptr && !path.empty()) {
    const std::size_t dot = path.find('.');
    at = in_mapping(at, path.substr(0, dot));
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
  return at;
}

}  // namespace

Provenance provenance_of(const Configuration& configuration) {
  if (configuration.provenance.empty()) {
    if (configuration.execution.compute.model->estimates_operations)
      return {"no stack: figures of kernels, and nothing fitted to steps", unfitted_deviation, {}, {}};
    return {"no stack: data sheets, and nothing fitted", data_sheet_deviation, {}, {}};
  }
  Faults faults;
  return read_provenance(parse_yaml(configuration.provenance, std::make_shared<const Origin>(), faults));
}

Provenance read_provenance(const Value& said) {
  Provenance made;
  const std::string basis = text_in(said, "basis");
  made.basis = basis.empty() ? unsaid_basis : basis;
  made.deviation = number_in(said, "deviation", unfitted_deviation);
  for (const Value& item : items_in(said, "ranges"))
    made.ranges.push_back({text_in(item, "key"), number_in(item, "least", 0), number_in(item, "most", 0)});
  for (const Value& item : items_in(said, "steps"))
    made.steps.push_back({text_in(item, "name"), number_in(item, "npus", 1), number_in(item, "parameters", 1),
                          number_in(item, "sequence", 1)});
  return made;
}

std::string nearest_step(const Provenance& provenance, double npus, double parameters, double sequence) {
  const auto distance = [&](const Provenance::Known& step) {
    const auto apart = [](double a, double b) { return a > 0 && b > 0 ? std::abs(std::log(a / b)) : 0.0; };
    return apart(step.npus, npus) / 2 + apart(step.parameters, parameters) + apart(step.sequence, sequence);
  };
  const auto nearest = std::ranges::min_element(provenance.steps, {}, distance);
  return nearest == provenance.steps.end() ? std::string() : nearest->name;
}

std::vector<std::string> outside_of_ranges(const Provenance& provenance, const Configuration& configuration) {
  std::vector<std::string> warnings;
  if (provenance.ranges.empty()) return warnings;
  Faults faults;
  const Value root =
      parse_yaml(configuration.to_yaml(), std::make_shared<const Origin>(Origin{"configuration", {}}), faults);
  for (const auto& [key, least, most] : provenance.ranges) {
    const Value* const value = at_path(root, key);
    if (value == nullptr || value->kind != Value::Kind::scalar) continue;
    const double found = as_number(*value, key);
    if (found < least || found > most)
      warnings.push_back(
          fmt::format("{}: found {}, outside of {} to {}, in which the stack was fitted: its interval is too narrow",
                      key, value->text, least, most));
  }
  return warnings;
}

void follow_base(Value& root, std::vector<InputText>& inputs, Faults& faults) {
  std::vector<std::filesystem::path> through;
  std::vector<Value> above;
  while (root.kind == Value::Kind::mapping) {
    const Value* const name = root.find("base");
    if (name == nullptr) break;
    const auto path = as_path(*name, "base").lexically_normal();
    if (std::ranges::find(through, path) != through.end() || through.size() == most_files)
      throw Error(ErrorCode::bad_input, name->place("base"),
                  through.size() == most_files ? fmt::format("found a chain of {} files", most_files)
                                               : fmt::format("found {}, which stands on this file", path.string()),
                  "another CONFIG.yaml, or none");
    through.push_back(path);
    std::string text = read_text(path, name->place("base"));
    Value held = parse_yaml(text, std::make_shared<const Origin>(Origin{path.string(), path.parent_path()}), faults);
    if (held.kind != Value::Kind::mapping)
      throw Error(ErrorCode::bad_input, {.file = path.string()}, fmt::format("found {}", held.description()),
                  "the keys of a CONFIG.yaml, because `base` of another file names this one");
    inputs.emplace_back(fmt::format("base-{}.yaml", through.size()), std::move(text));
    std::erase_if(root.entries, [](const auto& entry) { return entry.key == "base"; });
    make_references_mappings(root);
    above.push_back(std::move(root));
    root = std::move(held);
  }
  if (above.empty()) return;
  make_references_mappings(root);
  for (auto own = above.rbegin(); own != above.rend(); ++own) put_above(root, *own);
}

void make_references_mappings(Value& root) {
  for (const Reference& reference : references)
    if (Value* const value = entry_of(root, reference)) make_mapping(*value);
}

}  // namespace orrery::config
