#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "formats.hpp"
#include "orrery/config/units.hpp"
#include "section.hpp"

namespace orrery::config {
namespace {

using workload::Axis;
using workload::Detail;
using workload::Dlrm;
using workload::LayerList;
using workload::Offload;
using workload::Precision;
using workload::Recompute;
using workload::Schedule;
using workload::Transformer;

/// The number of each family of models by its name.
std::vector<std::pair<std::string_view, std::size_t>> model_kinds() {
  std::vector<std::pair<std::string_view, std::size_t>> kinds;
  for (const auto& family : workload::model_families()) kinds.emplace_back(family.name, kinds.size());
  return kinds;
}
const std::vector<std::pair<std::string_view, Schedule>> schedules = {{"1f1b", Schedule::one_forward_one_backward},
                                                                      {"gpipe", Schedule::gpipe}};
const std::vector<std::pair<std::string_view, Recompute>> recomputes = {
    {"none", Recompute::none}, {"selective", Recompute::selective}, {"full", Recompute::full}};
const std::vector<std::pair<std::string_view, Detail>> details = {{"block", Detail::block}, {"operator", Detail::op}};

const std::vector<std::pair<std::string_view, bool Offload::*>> states = {
    {"parameters", &Offload::parameters}, {"gradients", &Offload::gradients}, {"optimizer", &Offload::optimizer}};
const std::vector<std::pair<std::string_view, bool>> offload_collectives = {{"network", false}, {"path", true}};

constexpr std::uint64_t largest_number = std::uint64_t{1} << 53U;
constexpr std::uint32_t most_layers = 1U << 20U;  // that one entry of a list may stand for

std::uint64_t as_number_of_things(const Value& value, const std::string& key) {
  if (value.kind != Value::Kind::scalar || value.quoted)
    throw Error(ErrorCode::bad_input, value.place(key), fmt::format("found {}", value.description()), "a whole number");
  return parse_count(value.text, 0, largest_number, value.place(key));
}

/// Whole numbers of any of the types that the models have.
template <class T>
void read_number(Section& section, std::string_view key, T& value) {
  value = section.get(key, value, [](const Value& given, const std::string& path) {
    if constexpr (sizeof(T) == sizeof(std::uint32_t))
      return as_count(given, path, 0);
    else
      return as_number_of_things(given, path);
  });
}

void read_time(Section& section, std::string_view key, Time& value) {
  value = section.get(key, value, [](const Value& given, const std::string& path) {
    return duration_from_ns(as_nanoseconds(given, path), Rounding::up_to_ps);
  });
}

void read_flag(Section& section, std::string_view key, bool& value) { value = section.get(key, value, as_bool); }

std::vector<std::uint64_t> read_numbers(Section& section, std::string_view key) {
  const std::string expected = "a list of whole numbers";
  return section.require(key, expected, std::vector<std::uint64_t>{}, [&](const Value& value, const std::string& path) {
    std::vector<std::uint64_t> numbers;
    for (const Value& item : as_list(value, path, expected))
      section.faults().attempt([&] { numbers.push_back(as_number_of_things(item, path)); });
    return numbers;
  });
}

// The keys of a transformer, once for reading and writing.
template <class Model, class Number, class Flag>
void each_key(Model& model, Number number, Flag flag) {
  number("layers", model.layers);
  number("hidden", model.hidden);
  number("heads", model.attention.heads);
  number("kv-heads", model.attention.kv_heads);
  number("head-size", model.attention.head_size);
  number("ffn", model.mlp.width);
  number("vocabulary", model.embedding.vocabulary);
  number("sequence", model.sequence);
  number("experts", model.mlp.experts);
  number("top-k", model.mlp.top_k);
  flag("gated", model.mlp.gated);
  flag("biases", model.biases);
  flag("dropout", model.dropout);
  flag("learned-positions", model.embedding.learned_positions);
  flag("tied-embeddings", model.embedding.tied);
  flag("fused-attention", model.attention.fused);
}

void read_keys(Section& section, Transformer& model) {
  for (const char* key : {"layers", "hidden", "heads", "sequence"}) section.need(key, "a whole number, 1 or more");
  each_key(
      model, [&](std::string_view key, auto& value) { read_number(section, key, value); },
      [&](std::string_view key, bool& value) { read_flag(section, key, value); });
}

void read_keys(Section& section, Dlrm& model) {
  read_number(section, "dense-features", model.dense_features);
  read_number(section, "pooling", model.pooling);
  model.bottom = read_numbers(section, "bottom");
  model.tables = read_numbers(section, "tables");
  model.top = read_numbers(section, "top");
}

/// With FLOPs, or with times.
LayerList::Layer read_layer(Section& item, const std::string& name) {
  LayerList::Layer layer;
  layer.name = item.get("name", name,
                        [](const Value& value, const std::string& path) { return as_text(value, path, "a name"); });
  item.need("parameters", "a whole number");
  read_number(item, "parameters", layer.parameters);
  read_number(item, "activations", layer.activations);
  if (const Value* const flops = item.find("flops")) {
    item.need("activations", "a whole number");
    read_number(item, "flops", layer.flops);
    for (const char* time : {"forward", "backward", "update"})
      if (const Value* const given = item.find(time))
        item.faults().add(Error(ErrorCode::bad_input, given->place(item.path(time)), "the layer has flops too",
                                "flops, or the times forward, backward and update"));
    if (layer.flops == 0)
      item.faults().add(Error(ErrorCode::bad_input, flops->place(item.path("flops")), "found 0", "1 or more"));
  }
  read_time(item, "forward", layer.forward);
  read_time(item, "backward", layer.backward);
  read_time(item, "update", layer.update);
  return layer;
}

std::optional<LayerList::Late> read_late(Section section) {
  if (!section.present()) return {};
  LayerList::Late late;
  read_time(section, "first", late.first);
  read_time(section, "step", late.step);
  read_number(section, "stride", late.stride);
  section.refuse_unknown();
  return late;
}

void read_keys(Section& section, LayerList& model) {
  constexpr std::string_view expected =
      "a list such as [{name: conv1, parameters: 9408, flops: 236027904, activations: 802816}]";
  const Value* const list = section.need("layers", expected);
  if (list == nullptr) return;
  section.faults().attempt([&] {
    const std::string key = section.path("layers");
    const auto& items = as_list(*list, key, expected);
    for (std::size_t i = 0; i < items.size(); ++i) {
      Section item(&items[i], fmt::format("{}.{}", key, i), items[i], section.faults());
      const auto repeat = item.get("repeat", 1U, [](const Value& value, const std::string& path) {
        const std::uint32_t count = as_count(value, path, 1);
        if (count > most_layers)
          throw Error(ErrorCode::bad_input, value.place(path), fmt::format("found {}", count),
                      fmt::format("1 to {}", most_layers));
        return count;
      });
      const auto layer = read_layer(item, fmt::format("layer_{}", i));
      item.refuse_unknown();
      model.layers.resize(model.layers.size() + repeat, layer);
    }
  });
  model.late = read_late(section.section("late"));
}

workload::Model read_model(Section section) {
  workload::Model model = workload::default_model(section.choose("kind", std::size_t{0}, model_kinds()));
  std::visit([&](auto& family) { read_keys(section, family); }, model);
  section.refuse_unknown();
  return model;
}

/// Axes of one NPU need no place; those that have none come last.
std::array<Axis, workload::num_axes> as_placement(const Value& value, const std::string& key,
                                                  const workload::Parallel& parallel) {
  const std::string expected =
      "a list of tp, cp, ep, dp and pp, innermost first, each once; an axis of 1 may be left out";
  std::vector<Axis> placement;
  for (const Value& item : as_list(value, key, expected)) {
    const auto found = std::ranges::find(workload::axis_names, as_text(item, key, expected));
    const auto axis = static_cast<Axis>(found - workload::axis_names.begin());
    if (found == workload::axis_names.end() || std::ranges::find(placement, axis) != placement.end())
      throw Error(ErrorCode::bad_input, item.place(key), fmt::format("found {}", item.description()), expected);
    placement.push_back(axis);
  }
  for (const Axis axis : workload::Parallel().placement) {
    if (std::ranges::find(placement, axis) != placement.end()) continue;
    if (parallel[axis] > 1)
      throw Error(ErrorCode::bad_input, value.place(key),
                  fmt::format("{} is {} and has no place", workload::axis_names[static_cast<std::size_t>(axis)],
                              parallel[axis]),
                  expected);
    placement.push_back(axis);
  }
  std::array<Axis, workload::num_axes> result{};
  std::ranges::copy(placement, result.begin());
  return result;
}

/// Micro-batches of a replica, given as they are or by the samples of the whole step.
void read_batches(Section& section, workload::Parallel& parallel) {
  read_number(section, "micro-batch", parallel.micro_batch);
  read_number(section, "micro-batches", parallel.micro_batches);
  const Value* const global = section.find("global-batch");
  if (global == nullptr) return;
  section.faults().attempt([&] {
    const std::string key = section.path("global-batch");
    const std::uint64_t samples = as_number_of_things(*global, key);
    const std::uint64_t each = std::max<std::uint64_t>(parallel.micro_batch * parallel.num_replicas(), 1);
    if (section.find("micro-batches") != nullptr)
      throw Error(ErrorCode::bad_input, global->place(key), "both global-batch and micro-batches are given",
                  "one of them");
    if (samples == 0 || samples % each != 0 || samples / each > std::numeric_limits<std::uint32_t>::max())
      throw Error(ErrorCode::bad_input, global->place(key), fmt::format("found {}", samples),
                  fmt::format("a multiple of micro-batch * dp * ep, which is {}", each));
    parallel.micro_batches = static_cast<std::uint32_t>(samples / each);
  });
}

Offload as_offload(const Value& value, const std::string& key) {
  Offload offload;
  if (value.kind == Value::Kind::sequence && value.items.empty()) return offload;
  for (const Value& item : as_list(value, key, "a list of parameters, gradients and optimizer")) {
    bool& is_offloaded = offload.*as_word(item, key, states);
    if (is_offloaded)
      throw Error(ErrorCode::bad_input, item.place(key), fmt::format("found {} twice", item.text), "each once");
    is_offloaded = true;
  }
  return offload;
}

workload::Parallel read_parallel(Section section) {
  workload::Parallel parallel;
  for (std::size_t i = 0; i < workload::num_axes; ++i) read_number(section, workload::axis_names[i], parallel.sizes[i]);
  parallel.placement = section.get("placement", parallel.placement, [&](const Value& value, const std::string& key) {
    return as_placement(value, key, parallel);
  });
  read_number(section, "interleaving", parallel.interleaving);
  read_flag(section, "sp", parallel.sequence_parallel);
  read_number(section, "zero", parallel.sharding.zero);
  parallel.sharding.offload = section.get("offload", parallel.sharding.offload, as_offload);
  parallel.sharding.offload.on_path = section.choose("offload-collectives", false, offload_collectives);
  read_number(section, "prefetch", parallel.sharding.prefetch);
  read_batches(section, parallel);
  parallel.schedule = section.choose("schedule", parallel.schedule, schedules);
  parallel.recompute = section.choose("recompute", parallel.recompute, recomputes);
  parallel.sharding.bucket =
      section.get("bucket", parallel.sharding.bucket, [](const Value& value, const std::string& key) {
        return parse_bytes(as_text(value, key, "a size with its unit, such as '25 MB'"), value.place(key));
      });
  read_flag(section, "overlap", parallel.sharding.overlap);
  parallel.precision = section.choose("precision", parallel.precision, precisions());
  const Precision like_weights = parallel.precision == Precision::fp32 ? Precision::fp32 : Precision::bf16;
  parallel.gradients = section.choose("gradients", like_weights, precisions());
  parallel.detail = section.choose("detail", parallel.detail, details);
  section.refuse_unknown();
  return parallel;
}

std::string time_text(Time time) { return fmt::format("{} ps", time.ps()); }

std::string numbers_text(const std::vector<std::uint64_t>& numbers) {
  return fmt::format("[{}]", fmt::join(numbers, ", "));
}

std::string model_text(const Transformer& model) {
  std::string text = "    kind: transformer\n";
  const auto write = [&](std::string_view key, const auto& value) { text += fmt::format("    {}: {}\n", key, value); };
  each_key(model, write, write);
  return text;
}

std::string model_text(const Dlrm& model) {
  return fmt::format(
      "    kind: dlrm\n    dense-features: {}\n    pooling: {}\n    bottom: {}\n    tables: {}\n    top: {}\n",
      model.dense_features, model.pooling, numbers_text(model.bottom), numbers_text(model.tables),
      numbers_text(model.top));
}

std::string model_text(const LayerList& model) {
  std::string text = "    kind: layers\n    layers:\n";
  for (const auto& layer : model.layers) {
    text += fmt::format("      - {{name: {}, parameters: {}, activations: {}, ", in_quotes(layer.name),
                        layer.parameters, layer.activations);
    text += layer.is_timed() ? fmt::format("forward: {}, backward: {}, update: {}}}\n", time_text(layer.forward),
                                           time_text(layer.backward), time_text(layer.update))
                             : fmt::format("flops: {}}}\n", layer.flops);
  }
  if (model.late)
    text += fmt::format("    late: {{first: {}, step: {}, stride: {}}}\n", time_text(model.late->first),
                        time_text(model.late->step), model.late->stride);
  return text;
}

}  // namespace

const std::vector<std::pair<std::string_view, Precision>>& precisions() {
  static const std::vector<std::pair<std::string_view, Precision>> all = {
      {"bf16", Precision::bf16}, {"fp8", Precision::fp8}, {"fp32", Precision::fp32}};
  return all;
}

workload::Description read_description(Section& section) {
  section.need("model", "a model, or the name of a file that holds one");
  return {read_model(section.section("model")), read_parallel(section.section("parallel"))};
}

std::string to_text(const workload::Description& description) {
  const auto& parallel = description.parallel;
  std::string text = "  model:\n" + std::visit([](const auto& model) { return model_text(model); }, description.model);
  text += "  parallel:\n";
  const auto write = [&](std::string_view key, const auto& value) { text += fmt::format("    {}: {}\n", key, value); };
  std::vector<std::string_view> placement;
  for (std::size_t i = 0; i < workload::num_axes; ++i) {
    write(workload::axis_names[i], parallel.sizes[i]);
    placement.push_back(workload::axis_names[static_cast<std::size_t>(parallel.placement[i])]);
  }
  write("placement", fmt::format("[{}]", fmt::join(placement, ", ")));
  write("interleaving", parallel.interleaving);
  write("sp", parallel.sequence_parallel);
  write("zero", parallel.sharding.zero);
  std::vector<std::string_view> offloaded;
  for (const auto& [name, state] : states)
    if (parallel.sharding.offload.*state) offloaded.push_back(name);
  write("offload", fmt::format("[{}]", fmt::join(offloaded, ", ")));
  write("offload-collectives", word(offload_collectives, parallel.sharding.offload.on_path));
  write("prefetch", parallel.sharding.prefetch);
  write("micro-batch", parallel.micro_batch);
  write("micro-batches", parallel.micro_batches);
  write("schedule", word(schedules, parallel.schedule));
  write("recompute", word(recomputes, parallel.recompute));
  write("bucket", fmt::format("{} B", parallel.sharding.bucket.count()));
  write("overlap", parallel.sharding.overlap);
  write("precision", word(precisions(), parallel.precision));
  write("gradients", word(precisions(), parallel.gradients));
  write("detail", word(details, parallel.detail));
  return text;
}

}  // namespace orrery::config
