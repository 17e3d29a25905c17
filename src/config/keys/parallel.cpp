#include <algorithm>
#include <limits>

#include "calls.hpp"
#include "keys.hpp"
#include "orrery/base/text.hpp"
#include "orrery/config/units.hpp"

namespace orrery::config {
namespace {

using workload::Axis;
using workload::Offload;
using workload::Parallel;
using workload::Precision;

Flag parallel_flag(Text name) {
  return {.name = name, .heading = Heading::generated_parallel, .argument = "N", .commands = {Taker::generate}};
}

struct AxisKey {
  Axis axis;
  Text name, path, help;
};
constexpr AxisKey axis_keys[] = {
    {Axis::tp, "tp", "workload.parallel.tp", "NPUs that share each layer (tensor parallel)"},
    {Axis::cp, "cp", "workload.parallel.cp", "NPUs that share each sequence (context parallel)"},
    {Axis::ep, "ep", "workload.parallel.ep", "NPUs that share the experts of each layer"},
    {Axis::dp, "dp", "workload.parallel.dp", "replicas (data parallel)"},
    {Axis::pp, "pp", "workload.parallel.pp", "pipeline stages"},
};

constexpr std::string_view placement_expected =
    "a list of tp, cp, ep, dp and pp, innermost first, each once; an axis of 1 may be left out";

/// Axes of one NPU need no place; those that have none come last.
std::array<Axis, workload::num_axes> as_placement(const Value& value, const std::string& path,
                                                  const Parallel& parallel) {
  std::vector<Axis> placement;
  for (const Value& item : as_list(value, path, placement_expected)) {
    const auto found = std::ranges::find(workload::axis_names, as_text(item, path, placement_expected));
    const auto axis = static_cast<Axis>(found - workload::axis_names.begin());
    if (found == workload::axis_names.end() || std::ranges::find(placement, axis) != placement.end())
      throw Error(ErrorCode::bad_input, item.place(path), fmt::format("found {}", item.description()),
                  placement_expected);
    placement.push_back(axis);
  }
  for (const Axis axis : Parallel().placement) {
    if (std::ranges::find(placement, axis) != placement.end()) continue;
    if (parallel[axis] > 1)
      throw Error(ErrorCode::bad_input, value.place(path),
                  fmt::format("{} is {} and has no place", workload::axis_names[static_cast<std::size_t>(axis)],
                              parallel[axis]),
                  placement_expected);
    placement.push_back(axis);
  }
  std::array<Axis, workload::num_axes> result{};
  std::ranges::copy(placement, result.begin());
  return result;
}

Handling<Parallel> placement() {
  return {[](const Value& value, const std::string& path, Parallel& parallel, Reading&) {
            parallel.placement = as_placement(value, path, parallel);
          },
          [](const Parallel& parallel, Writer& writer) {
            std::vector<std::string_view> names;
            for (const Axis axis : parallel.placement)
              names.push_back(workload::axis_names[static_cast<std::size_t>(axis)]);
            writer.put("workload.parallel.placement", fmt::format("[{}]", fmt::join(names, ", ")));
          },
          [](const Parallel& a, const Parallel& b) { return a.placement == b.placement; }};
}

const Words<bool Offload::*>& offload_states() {
  static const Words<bool Offload::*> words = {{"parameters", &Offload::parameters, "the parameters"},
                                               {"gradients", &Offload::gradients, "their gradients"},
                                               {"optimizer", &Offload::optimizer, "the state of the optimizer"}};
  return words;
}

const Words<bool>& offload_collectives() {
  static const Words<bool> words = {{"network", false, "the network between NPUs"},
                                    {"path", true, "the switches on the way to a hierarchical-pool"}};
  return words;
}

const Words<Precision>& gradient_precisions() {
  static const Words<Precision> words = {{"bf16", Precision::bf16, "2 bytes for each value"},
                                         {"fp32", Precision::fp32, "4 bytes for each value"}};
  return words;
}

Handling<Parallel> offload() {
  return {[](const Value& value, const std::string& path, Parallel& parallel, Reading&) {
            if (value.kind == Value::Kind::sequence && value.items.empty()) return;
            for (const Value& item : as_list(value, path, "a list of parameters, gradients and optimizer")) {
              bool& is_offloaded = parallel.sharding.offload.*as_word(item, path, offload_states());
              if (is_offloaded)
                throw Error(ErrorCode::bad_input, item.place(path), fmt::format("found {} twice", item.text),
                            "each once");
              is_offloaded = true;
            }
          },
          [](const Parallel& parallel, Writer& writer) {
            std::vector<std::string_view> states;
            for (const auto& state : offload_states())
              if (parallel.sharding.offload.*state.value) states.push_back(state.text);
            writer.put("workload.parallel.offload", fmt::format("[{}]", fmt::join(states, ", ")));
          },
          [](const Parallel& a, const Parallel& b) { return a.sharding.offload == b.sharding.offload; }};
}

/// Reads the samples of the whole step as micro-batches of a replica, of which alone the configuration knows.
Handling<Parallel> global_batch() {
  return {[](const Value& value, const std::string& path, Parallel& parallel, Reading& reading) {
            const std::uint64_t samples = large_count().read(value, path, reading);
            const std::uint64_t each = std::max<std::uint64_t>(parallel.micro_batch * parallel.num_replicas(), 1);
            if (samples == 0 || samples % each != 0 || samples / each > std::numeric_limits<std::uint32_t>::max())
              throw Error(ErrorCode::bad_input, value.place(path), fmt::format("found {}", samples),
                          fmt::format("a multiple of micro-batch * dp * ep, which is {}", each));
            parallel.micro_batches = static_cast<std::uint32_t>(samples / each);
          },
          [](const Parallel&, Writer&) {}, [](const Parallel&, const Parallel&) { return true; }};
}

Type<std::optional<std::uint32_t>> count_or_all() {
  return {count(0).info,
          [](const Value& value, const std::string& key, const Reading& reading) {
            return std::optional(count(0).read(value, key, reading));
          },
          [](const std::optional<std::uint32_t>& number) {
            return number ? std::optional(fmt::to_string(*number)) : std::nullopt;
          }};
}

Type<std::optional<Bytes>> size_or_auto() {
  static constexpr std::string_view word = "auto";
  const Type<Bytes> plain = size(0, "25 MB");
  TypeInfo info = plain.info;
  info.name = "size or auto";
  info.expected += ", or auto";
  info.range += "; auto";
  return {info,
          [plain, info](const Value& value, const std::string& key, const Reading& reading) -> std::optional<Bytes> {
            if (value.kind == Value::Kind::scalar && value.text == word) return std::nullopt;
            return plain.read(value, key, reading);
          },
          [plain](const std::optional<Bytes>& bytes) {
            return bytes ? plain.text(*bytes) : std::optional(std::string(word));
          }};
}

void add_axes(Keys<Parallel>& keys) {
  for (const auto& [axis, name, path, help] : axis_keys)
    keys.add(
        {.path = path, .help = help, .example = "4", .otherwise = Default::built_in(), .flag = parallel_flag(name)},
        count(), [axis = axis](auto& parallel) -> auto& { return parallel.sizes[static_cast<std::size_t>(axis)]; });
  keys.add({.path = "workload.parallel.placement",
            .help = "axes, innermost first: NPU ids count along the first axis fastest",
            .example = "[tp, cp, ep, pp, dp]",
            .otherwise = Default::described("[tp, cp, ep, dp, pp]")},
           {"list", std::string(placement_expected), "-", "each axis once"}, placement());
  keys.add(
      {.path = "workload.parallel.sp",
       .help = "divide norms and dropout by tp too (sequence parallel)",
       .example = "true",
       .otherwise = Default::built_in()},
      boolean(), [](auto& parallel) -> auto& { return parallel.sequence_parallel; });
}

/// Adds how experts are divided and used.
void add_experts(Keys<Parallel>& keys) {
  keys.add(
      {.path = "workload.parallel.expert-capacity",
       .help = "rows that experts compute, of an even share of the tokens: fewer are padded, more are dropped",
       .example = "1.25",
       .otherwise = Default::built_in(),
       .see = "workloads.md, *Models*"},
      factor(), [](auto& parallel) -> auto& { return parallel.experts.capacity; });
  keys.add(
      {.path = "workload.parallel.expert-tp",
       .help = "NPUs that share an expert: tp, or 1 if each NPU of a tp group has experts of its own; 0: tp",
       .example = "1",
       .otherwise = Default::built_in(),
       .see = "workloads.md, *Experts*"},
      count(0), [](auto& parallel) -> auto& { return parallel.experts.tp; });
  keys.add(
      {.path = "workload.parallel.expert-imbalance",
       .help = "how much more some experts of a layer are used than others: the standard deviation of the logarithm of "
               "their loads, which are drawn",
       .example = "0.3",
       .otherwise = Default::built_in(),
       .see = "workloads.md, *Experts*"},
      number("0 to 4"), [](auto& parallel) -> auto& { return parallel.experts.imbalance; });
  keys.add(
      {.path = "workload.parallel.expert-seed",
       .help = "seed of the loads of experts",
       .example = "7",
       .otherwise = Default::built_in()},
      count(0), [](auto& parallel) -> auto& { return parallel.experts.seed; });
}

/// Adds how communication and compute overlap.
void add_overlap(Keys<Parallel>& keys) {
  keys.add(
      {.path = "workload.parallel.tp-overlap",
       .help = "share of the products next to tensor-parallel collectives that is computed beside these",
       .example = "0.8",
       .otherwise = Default::built_in(),
       .see = "workloads.md, *Overlap*"},
      share(), [](auto& parallel) -> auto& { return parallel.overlap.tensor; });
  keys.add(
      {.path = "workload.parallel.cp-exchange",
       .help = "how context parallelism brings keys and values to all",
       .example = "ring",
       .otherwise = Default::built_in(),
       .see = "workloads.md, *Overlap*"},
      word(context_exchanges()), [](auto& parallel) -> auto& { return parallel.overlap.context; });
  keys.add(
      {.path = "workload.parallel.expert-overlap",
       .help = "experts that every token passes are computed while tokens travel to the others",
       .example = "true",
       .otherwise = Default::built_in(),
       .see = "workloads.md, *Overlap*"},
      boolean(), [](auto& parallel) -> auto& { return parallel.overlap.experts; });
  keys.add(
      {.path = "workload.parallel.exposed-share",
       .help = "share of the bytes of ZeRO 3's collectives for which compute waits; the rest moves beside it",
       .example = "0.3",
       .otherwise = Default::built_in(),
       .see = "workloads.md, *Overlap*"},
      share(), [](auto& parallel) -> auto& { return parallel.sharding.exposed_share; });
  keys.add(
      {.path = "workload.parallel.gather-before-forward",
       .help = "ZeRO 1 and 2: gather new parameters before each layer's first forward pass, not after the update",
       .example = "true",
       .otherwise = Default::built_in(),
       .see = "workloads.md, *Overlap*"},
      boolean(), [](auto& parallel) -> auto& { return parallel.sharding.gather_before_forward; });
  keys.add(
      {.path = "workload.parallel.between-steps",
       .help =
           "time before each step in which NPUs do nothing of the model: loading data, logging, waiting for the host; "
           "only compute models that use durations know it",
       .example = "20 ms",
       .otherwise = Default::described("0 ns"),
       .see = "workloads.md, *Overlap*"},
      duration(), [](auto& parallel) -> auto& { return parallel.between_steps; });
}

void add_batches(Keys<Parallel>& keys) {
  keys.add(
      {.path = "workload.parallel.micro-batch",
       .help = "samples of a micro-batch",
       .example = "2",
       .otherwise = Default::built_in()},
      large_count(1), [](auto& parallel) -> auto& { return parallel.micro_batch; });
  keys.add(
      {.path = "workload.parallel.micro-batches",
       .help = "micro-batches of a step and replica; there are dp * ep replicas",
       .example = "8",
       .otherwise = Default::built_in(),
       .flag = parallel_flag("micro-batches")},
      count(), [](auto& parallel) -> auto& { return parallel.micro_batches; });
  keys.add({.path = "workload.parallel.global-batch",
            .help = "in place of `micro-batches`: samples of the whole step",
            .example = "1024",
            .otherwise = Default::none()},
           large_count(1).info, global_batch())
      .excludes("workload.parallel.micro-batches");
}

/// Adds what a step is, and what inference asks for.
void add_phase(Keys<Parallel>& keys) {
  keys.add(
      {.path = "workload.parallel.phase",
       .help = "what a step is",
       .example = "decode",
       .otherwise = Default::built_in(),
       .see = "workloads.md, *Inference*"},
      word(phases()), [](auto& parallel) -> auto& { return parallel.pipeline.phase; });
  keys.add(
      {.path = "workload.parallel.output-tokens",
       .help = "with `phase: request`, tokens that are made for each sequence",
       .example = "512",
       .otherwise = Default::built_in(),
       .see = "workloads.md, *Inference*"},
      large_count(1), [](auto& parallel) -> auto& { return parallel.pipeline.request.tokens; });
  keys.add(
      {.path = "workload.parallel.decode-samples",
       .help = "with `phase: request`, number of the tokens after the first whose steps are simulated, evenly spaced; "
               "the times of the others lie between; 0: all",
       .example = "8",
       .otherwise = Default::built_in(),
       .see = "workloads.md, *Inference*"},
      large_count(), [](auto& parallel) -> auto& { return parallel.pipeline.request.samples; });
}

void add_pipeline(Keys<Parallel>& keys) {
  keys.add(
      {.path = "workload.parallel.interleaving",
       .help = "virtual stages on each NPU, for 1f1b; above 1, `micro-batches` is a multiple of pp",
       .example = "2",
       .otherwise = Default::built_in()},
      count(), [](auto& parallel) -> auto& { return parallel.interleaving; });
  keys.add(
      {.path = "workload.parallel.schedule",
       .help = "order of the passes in the pipeline",
       .example = "gpipe",
       .otherwise = Default::built_in()},
      word(schedules()), [](auto& parallel) -> auto& { return parallel.pipeline.schedule; });
  keys.add(
      {.path = "workload.parallel.delayed-weight-gradients",
       .help = "compute the gradients of weights after those of inputs have been sent; zero-bubble schedules always do",
       .example = "true",
       .otherwise = Default::built_in(),
       .see = "workloads.md, *Schedules*"},
      boolean(), [](auto& parallel) -> auto& { return parallel.pipeline.delayed_weight_gradients; });
  keys.add(
      {.path = "workload.parallel.scattered-messages",
       .help =
           "without sp, each NPU of tp sends its share of what it hands to the next stage, which an all-gather makes "
           "whole",
       .example = "true",
       .otherwise = Default::built_in(),
       .see = "workloads.md, *Communication*"},
      boolean(), [](auto& parallel) -> auto& { return parallel.pipeline.scattered_messages; });
  keys.add(
      {.path = "workload.parallel.stage-layers",
       .help = "layers of each virtual stage, without embedding and output layer; their sum is that of the model",
       .example = "[7, 9, 9, 7]",
       .otherwise = Default::described("as evenly as possible")},
      large_counts(), [](auto& parallel) -> auto& { return parallel.pipeline.stage_layers; });
  keys.add(
      {.path = "workload.parallel.recompute",
       .help = "what the backward pass computes again instead of keeping it",
       .example = "selective",
       .otherwise = Default::built_in()},
      word(recompute_policies()), [](auto& parallel) -> auto& { return parallel.recompute; });
  keys.add(
      {.path = "workload.parallel.recompute-layers",
       .help = "with `recompute: full`, how many layers of each virtual stage are computed again",
       .example = "2",
       .otherwise = Default::described("all of them")},
      count_or_all(), [](auto& parallel) -> auto& { return parallel.pipeline.recompute_layers; });
}

void add_memory_keys(Keys<Parallel>& keys) {
  keys.add(
      {.path = "workload.parallel.zero",
       .help = "stage of ZeRO: 1 divides the optimizer, 2 the gradients too, 3 the parameters too",
       .example = "1",
       .otherwise = Default::built_in(),
       .flag = parallel_flag("zero")},
      count(0, 3), [](auto& parallel) -> auto& { return parallel.sharding.zero; });
  keys.add(
      {.path = "workload.parallel.replicas",
       .help = "number of sets of NPUs that hold all states (HSDP): ZeRO divides them within each set",
       .example = "2",
       .otherwise = Default::built_in()},
      count(1), [](auto& parallel) -> auto& { return parallel.sharding.replicas; });
  keys.add(
      {.path = "workload.parallel.offload",
       .help = "what lives in remote memory",
       .example = "[optimizer]",
       .otherwise = Default::described("[]")},
      {"list of words", "a list of parameters, gradients and optimizer", "-", "each once", info_of(offload_states())},
      offload());
  keys.add(
      {.path = "workload.parallel.offload-collectives",
       .help = "what gathers and adds up what is offloaded",
       .example = "path",
       .otherwise = Default::built_in()},
      word(offload_collectives()), [](auto& parallel) -> auto& { return parallel.sharding.offload.on_path; });
  keys.add(
      {.path = "workload.parallel.prefetch",
       .help = "layers whose parameters are gathered (ZeRO 3) or loaded ahead",
       .example = "2",
       .otherwise = Default::built_in()},
      count(0), [](auto& parallel) -> auto& { return parallel.sharding.prefetch; });
}

/// Adds how the embedding tables of a recommendation model are divided.
void add_tables(Keys<Parallel>& keys) {
  keys.add(
      {.path = "workload.parallel.table-sharding",
       .help = "how NPUs share embedding tables that have no `sharding` of their own",
       .example = "table",
       .otherwise = Default::built_in(),
       .see = "workloads.md, *Tables*"},
      word(table_shardings()), [](auto& parallel) -> auto& { return parallel.sharding.tables.sharding; });
  keys.add(
      {.path = "workload.parallel.table-balance",
       .help = "what NPUs have as evenly as possible that hold whole tables, or columns of them",
       .example = "lookups",
       .otherwise = Default::built_in(),
       .see = "workloads.md, *Tables*"},
      word(table_balances()), [](auto& parallel) -> auto& { return parallel.sharding.tables.balance; });
  keys.add(
      {.path = "workload.parallel.table-columns",
       .help = "columns of a part of a table that is divided by columns",
       .example = "64",
       .otherwise = Default::built_in(),
       .see = "workloads.md, *Tables*"},
      large_count(1), [](auto& parallel) -> auto& { return parallel.sharding.tables.columns; });
}

void add_gradients(Keys<Parallel>& keys) {
  keys.add(
      {.path = "workload.parallel.bucket",
       .help = "size from which on gradients are summed; `0 B`: after each layer; `auto`: the rule of Megatron-Core",
       .example = "25 MB",
       .otherwise = Default::built_in(),
       .see = "workloads.md, *Communication*"},
      size_or_auto(), [](auto& parallel) -> auto& { return parallel.sharding.bucket; });
  keys.add(
      {.path = "workload.parallel.bucket-buffers",
       .help = "ZeRO 2 and 3: buckets of gradients that are filled or summed at a time; 0: any number",
       .example = "1",
       .otherwise = Default::built_in(),
       .see = "workloads.md, *Communication*"},
      count(0), [](auto& parallel) -> auto& { return parallel.sharding.bucket_buffers; });
  keys.add(
      {.path = "workload.parallel.norm-sums",
       .help =
           "before the update, sum the gradients of norms over tp (with sp), and the norm of all gradients over all "
           "NPUs",
       .example = "true",
       .otherwise = Default::built_in(),
       .see = "workloads.md, *Communication*"},
      boolean(), [](auto& parallel) -> auto& { return parallel.sharding.norm_sums; });
  keys.add(
      {.path = "workload.parallel.overlap",
       .help = "sum gradients beside the backward pass; else after it",
       .example = "false",
       .otherwise = Default::built_in()},
      boolean(), [](auto& parallel) -> auto& { return parallel.sharding.overlap; });
  keys.add(
      {.path = "workload.parallel.precision",
       .help = "precision of values; it decides bytes, and which system.compute.peak counts",
       .example = "fp8",
       .otherwise = Default::built_in()},
      word(precisions()), [](auto& parallel) -> auto& { return parallel.precision; });
  keys.add(
          {.path = "workload.parallel.gradients",
           .help = "precision in which gradients are kept and summed",
           .example = "fp32",
           .otherwise = Default::described("bf16; fp32 with precision: fp32")},
          word(gradient_precisions()), [](auto& parallel) -> auto& { return parallel.gradients; })
      .prepare([](Parallel& parallel) {
        parallel.gradients = parallel.precision == Precision::fp32 ? Precision::fp32 : Precision::bf16;
      });
  keys.add(
      {.path = "workload.parallel.detail",
       .help = "grain of the compute nodes",
       .example = "operator",
       .otherwise = Default::built_in()},
      word(details()), [](auto& parallel) -> auto& { return parallel.detail; });
}

}  // namespace

const Keys<Parallel>& parallel_keys() {
  static const Keys<Parallel> all = [] {
    Keys<Parallel> keys("workload.parallel", "workload.parallel");
    add_axes(keys);
    add_memory_keys(keys);
    add_batches(keys);
    add_phase(keys);
    add_pipeline(keys);
    add_gradients(keys);
    add_experts(keys);
    add_tables(keys);
    add_overlap(keys);
    add_calls(keys);
    return keys;
  }();
  return all;
}

}  // namespace orrery::config
