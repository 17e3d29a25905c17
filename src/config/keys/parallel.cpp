#include <algorithm>
#include <limits>

#include "keys.hpp"
#include "orrery/base/quantity_text.hpp"
#include "orrery/base/text.hpp"

namespace orrery::config {
namespace {

using workload::Axis;
using workload::Offload;
using workload::Parallel;
using workload::Precision;

constexpr auto parallel_flag(Text name) { return flag(name, Heading::generated_parallel, "N", {Taker::generate}); }

/// Returns the row of the number of NPUs along an axis.
template <Axis axis>
consteval Row<Parallel> axis_row(Text name, Text path, Text help) {
  return {path,
          help,
          "4",
          Default::built_in(),
          count(),
          [](auto& parallel) { return &parallel.sizes[static_cast<std::size_t>(axis)]; },
          parallel_flag(name)};
}

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

constexpr Handling<Parallel> placement() {
  return {[](const Value& value, const std::string& path, Parallel& parallel, Reading&) {
            parallel.placement = as_placement(value, path, parallel);
          },
          [](const Parallel& parallel, std::string_view path, Writer& writer) {
            std::vector<std::string_view> names;
            for (const Axis axis : parallel.placement)
              names.push_back(workload::axis_names[static_cast<std::size_t>(axis)]);
            writer.put(path, fmt::format("[{}]", fmt::join(names, ", ")));
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

constexpr Handling<Parallel> offload() {
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
          [](const Parallel& parallel, std::string_view path, Writer& writer) {
            std::vector<std::string_view> states;
            for (const auto& state : offload_states())
              if (parallel.sharding.offload.*state.value) states.push_back(state.text);
            writer.put(path, fmt::format("[{}]", fmt::join(states, ", ")));
          },
          [](const Parallel& a, const Parallel& b) { return a.sharding.offload == b.sharding.offload; }};
}

constinit const ValueKind<std::optional<Precision>> precision_or_none = kind_of<std::optional<Precision>>(
    [](const Limits&) { return word<precisions>().info(); },
    [](const Limits&, const Value& value, const std::string& key, const Reading& reading) -> std::optional<Precision> {
      return word<precisions>().read(value, key, reading);
    },
    [](const Limits&, const std::optional<Precision>& precision) {
      return precision ? std::optional(std::string(text_of(precisions(), *precision))) : std::nullopt;
    });

constexpr Handling<Parallel> modules_of_step() {
  return {[](const Value& value, const std::string& path, Parallel& parallel, Reading&) {
            parallel.pipeline.recomputed_modules = as_recomputed_modules(value, path);
          },
          [](const Parallel& parallel, std::string_view path, Writer& writer) {
            if (parallel.pipeline.recomputed_modules) writer.put(path, text_of(*parallel.pipeline.recomputed_modules));
          },
          [](const Parallel& a, const Parallel& b) {
            return a.pipeline.recomputed_modules == b.pipeline.recomputed_modules;
          }};
}

/// Exchanges that the system decides are resolved before they are written.
constexpr Handling<Parallel> exchange_of_experts() {
  return {[](const Value& value, const std::string& path, Parallel& parallel, Reading& reading) {
            parallel.experts.exchange = word<expert_exchanges>().read(value, path, reading);
          },
          [](const Parallel& parallel, std::string_view path, Writer& writer) {
            const auto found = std::ranges::find(expert_exchanges(), parallel.experts.exchange,
                                                 [](const auto& word) { return word.value; });
            if (found != expert_exchanges().end()) writer.put(path, std::string(found->text));
          },
          [](const Parallel& a, const Parallel& b) { return a.experts.exchange == b.experts.exchange; }};
}

/// Reads the samples of the whole step as micro-batches of a replica, of which alone the configuration knows.
constexpr Handling<Parallel> global_batch() {
  return {[](const Value& value, const std::string& path, Parallel& parallel, Reading& reading) {
    const std::uint64_t samples = large_count().read(value, path, reading);
    const std::uint64_t each = std::max<std::uint64_t>(parallel.micro_batch * parallel.num_replicas(), 1);
    if (samples == 0 || samples % each != 0 || samples / each > std::numeric_limits<std::uint32_t>::max())
      throw Error(ErrorCode::bad_input, value.place(path), fmt::format("found {}", samples),
                  fmt::format("a multiple of micro-batch * dp * ep, which is {}", each));
    parallel.micro_batches = static_cast<std::uint32_t>(samples / each);
  }};
}

constinit const ValueKind<std::optional<std::uint32_t>> count_or_all =
    kind_of<std::optional<std::uint32_t>>([](const Limits&) { return count(0).info(); },
                                          [](const Limits&, const Value& value, const std::string& key,
                                             const Reading& reading) { return count(0).read(value, key, reading); },
                                          [](const Limits&, const std::optional<std::uint32_t>& number) {
                                            return number ? std::optional(fmt::to_string(*number)) : std::nullopt;
                                          });

constexpr std::string_view automatic = "auto";
constexpr auto plain_size = size(0, "25 MB");
constinit const ValueKind<std::optional<Bytes>> size_or_auto = kind_of<std::optional<Bytes>>(
    [](const Limits&) {
      TypeInfo info = plain_size.info();
      info.name = "size or auto";
      info.expected += ", or auto";
      info.range += "; auto";
      return info;
    },
    [](const Limits&, const Value& value, const std::string& key, const Reading& reading) -> std::optional<Bytes> {
      if (value.kind == Value::Kind::scalar && value.text == automatic) return std::nullopt;
      return plain_size.read(value, key, reading);
    },
    [](const Limits&, const std::optional<Bytes>& bytes) {
      return bytes ? plain_size.text(*bytes) : std::optional(std::string(automatic));
    });

constexpr Row<Parallel> parallel_rows[] = {
    axis_row<Axis::tp>("tp", "workload.parallel.tp", "NPUs that share each layer (tensor parallel)"),
    axis_row<Axis::cp>("cp", "workload.parallel.cp", "NPUs that share each sequence (context parallel)"),
    axis_row<Axis::ep>("ep", "workload.parallel.ep", "NPUs that share the experts of each layer"),
    axis_row<Axis::dp>("dp", "workload.parallel.dp", "replicas (data parallel)"),
    axis_row<Axis::pp>("pp", "workload.parallel.pp", "pipeline stages"),
    {"workload.parallel.placement", "axes, innermost first: NPU ids count along the first axis fastest",
     "[tp, cp, ep, pp, dp]", Default::described("[tp, cp, ep, dp, pp]"),
     ValueInfo("list", placement_expected, "-", "each axis once"), placement()},
    {"workload.parallel.sp", "divide norms and dropout by tp too (sequence parallel)", "true", Default::built_in(),
     boolean(), [](auto& parallel) { return &parallel.sequence_parallel; }},
    {"workload.parallel.zero", "stage of ZeRO: 1 divides the optimizer, 2 the gradients too, 3 the parameters too", "1",
     Default::built_in(), count(0, 3), [](auto& parallel) { return &parallel.sharding.zero; }, parallel_flag("zero")},
    {"workload.parallel.replicas",
     "number of sets of NPUs that hold all states (HSDP): ZeRO divides them within each set", "2", Default::built_in(),
     count(1), [](auto& parallel) { return &parallel.sharding.replicas; }},
    {"workload.parallel.offload", "model states in remote memory", "[optimizer]", Default::described("[]"),
     ValueInfo("list of words", "a list of parameters, gradients and optimizer", "-", "each once",
               words_info<offload_states>),
     offload()},
    {"workload.parallel.offload-collectives", "place where offloaded data are gathered and reduced", "path",
     Default::built_in(), word<offload_collectives>(),
     [](auto& parallel) { return &parallel.sharding.offload.on_path; }},
    {"workload.parallel.prefetch", "layers whose parameters are gathered (ZeRO 3) or loaded ahead", "2",
     Default::built_in(), count(0), [](auto& parallel) { return &parallel.sharding.prefetch; }},
    {"workload.parallel.micro-batch", "samples of a micro-batch", "2", Default::built_in(), large_count(1),
     [](auto& parallel) { return &parallel.micro_batch; }},
    {"workload.parallel.micro-batches", "micro-batches of a step and replica; there are dp * ep replicas", "8",
     Default::built_in(), count(), [](auto& parallel) { return &parallel.micro_batches; },
     parallel_flag("micro-batches")},
    {"workload.parallel.global-batch", "in place of `micro-batches`: samples of the whole step", "1024",
     Default::none(), large_count(1), global_batch(), excludes("workload.parallel.micro-batches")},

    // Adds what a step is, and what inference asks for.
    {"workload.parallel.phase", "kind of a step", "decode", Default::built_in(), word<phases>(),
     [](auto& parallel) { return &parallel.pipeline.phase; }, see("workloads.md, *Inference*")},
    {"workload.parallel.output-tokens", "with `phase: request`, tokens that are made for each sequence", "512",
     Default::built_in(), large_count(1), [](auto& parallel) { return &parallel.pipeline.request.tokens; },
     see("workloads.md, *Inference*")},
    {"workload.parallel.decode-samples",
     "with `phase: request`, number of the tokens after the first whose steps are simulated, evenly spaced; "
     "the times of the others lie between; 0: all",
     "8", Default::built_in(), large_count(), [](auto& parallel) { return &parallel.pipeline.request.samples; },
     see("workloads.md, *Inference*")},
    {"workload.parallel.interleaving",
     "virtual stages on each NPU, for 1f1b; above 1, `micro-batches` is a multiple of pp", "2", Default::built_in(),
     count(), [](auto& parallel) { return &parallel.interleaving; }},
    {"workload.parallel.schedule", "order of the passes in the pipeline", "gpipe", Default::built_in(),
     word<schedules>(), [](auto& parallel) { return &parallel.pipeline.schedule; }},
    {"workload.parallel.delayed-weight-gradients",
     "compute the gradients of weights after those of inputs have been sent; zero-bubble schedules always do", "true",
     Default::built_in(), boolean(), [](auto& parallel) { return &parallel.pipeline.delayed_weight_gradients; },
     see("workloads.md, *Schedules*")},
    {"workload.parallel.scattered-messages",
     "without sp, each NPU of tp sends its share of what it hands to the next stage, which an all-gather makes "
     "whole",
     "true", Default::built_in(), boolean(), [](auto& parallel) { return &parallel.pipeline.scattered_messages; },
     see("workloads.md, *Communication*")},
    {"workload.parallel.stage-layers",
     "layers of each virtual stage, without embedding and output layer; their sum is that of the model", "[7, 9, 9, 7]",
     Default::described("as evenly as possible"), large_counts(),
     [](auto& parallel) { return &parallel.pipeline.stage_layers; }},
    {"workload.parallel.recompute", "parts that the backward pass recomputes instead of keeping them", "selective",
     Default::built_in(), word<recompute_policies>(), [](auto& parallel) { return &parallel.recompute; }},
    {"workload.parallel.recompute-layers",
     "with `recompute: full`, how many layers of each virtual stage are computed again", "2",
     Default::described("all of them"), Type(count_or_all),
     [](auto& parallel) { return &parallel.pipeline.recompute_layers; }},
    {"workload.parallel.recompute-modules",
     "parts of a layer that the backward pass computes again instead of keeping their results", "[norms, swiglu]",
     Default::described("those of `workload.model.recompute-modules`"),
     ValueInfo("list of words", recomputed_modules_expected, "-", "each once", words_info<recomputed_modules>),
     modules_of_step(), see("workloads.md, *Memory*")},
    {"workload.parallel.bucket",
     "size from which on gradients are summed; `0 B`: after each layer; `auto`: the rule of Megatron-Core", "25 MB",
     Default::built_in(), Type(size_or_auto), [](auto& parallel) { return &parallel.sharding.bucket; },
     see("workloads.md, *Communication*")},
    {"workload.parallel.bucket-buffers",
     "ZeRO 2 and 3: buckets of gradients that are filled or summed at a time; 0: any number", "1", Default::built_in(),
     count(0), [](auto& parallel) { return &parallel.sharding.bucket_buffers; }, see("workloads.md, *Communication*")},
    {"workload.parallel.norm-sums",
     "before the update, sum the gradients of norms over tp (with sp), and the norm of all gradients over all "
     "NPUs",
     "true", Default::built_in(), boolean(), [](auto& parallel) { return &parallel.sharding.norm_sums; },
     see("workloads.md, *Communication*")},
    {"workload.parallel.overlap", "reduce gradients during the backward pass; otherwise after it", "false",
     Default::built_in(), boolean(), [](auto& parallel) { return &parallel.sharding.overlap; }},
    {"workload.parallel.precision", "precision of values; it decides bytes, and which system.compute.peak counts",
     "fp8", Default::built_in(), word<precisions>(), [](auto& parallel) { return &parallel.precision; }},
    {"workload.parallel.cache-precision", "inference: precision in which keys and values are kept", "bf16",
     Default::described("that of `precision`"), Type(precision_or_none),
     [](auto& parallel) { return &parallel.pipeline.cache_precision; }, see("workloads.md, *Inference*")},
    {"workload.parallel.gradients", "precision in which gradients are kept and summed", "fp32",
     Default::described("bf16; fp32 with precision: fp32"), word<gradient_precisions>(),
     [](auto& parallel) { return &parallel.gradients; }, prepare([](Parallel& parallel) {
       parallel.gradients = parallel.precision == Precision::fp32 ? Precision::fp32 : Precision::bf16;
     })},
    {"workload.parallel.detail", "grain of the compute nodes", "operator", Default::built_in(), word<details>(),
     [](auto& parallel) { return &parallel.detail; }},

    // Adds how experts are divided and used.
    {"workload.parallel.expert-capacity",
     "rows that experts compute, of an even share of the tokens: fewer are padded, more are dropped", "1.25",
     Default::built_in(), factor(), [](auto& parallel) { return &parallel.experts.capacity; },
     see("workloads.md, *Models*")},
    {"workload.parallel.expert-tp",
     "NPUs that share an expert: tp, or 1 if each NPU of a tp group has separate experts; 0: tp", "1",
     Default::built_in(), count(0), [](auto& parallel) { return &parallel.experts.tp; },
     see("workloads.md, *Experts*")},
    {"workload.parallel.expert-imbalance",
     "how much more some experts of a layer are used than others: the standard deviation of the logarithm of "
     "their loads, which are drawn",
     "0.3", Default::built_in(), number("0 to 4"), [](auto& parallel) { return &parallel.experts.imbalance; },
     see("workloads.md, *Experts*")},
    {"workload.parallel.expert-seed", "seed of the loads of experts", "7", Default::built_in(), count(0),
     [](auto& parallel) { return &parallel.experts.seed; }},

    {"workload.parallel.expert-exchange", "how tokens travel to experts on other NPUs and back", "once-per-server",
     Default::described("`once-per-server` with a library and experts on several nodes; otherwise `all-to-all`"),
     ValueInfo("word", "all-to-all, once-per-server or low-latency", "-", "-", words_info<expert_exchanges>),
     exchange_of_experts(), see("workloads.md, *Experts*")},
    {"workload.parallel.dispatch-precision", "precision in which tokens travel to experts", "fp8",
     Default::described("fp8 with `precision: fp8` and an exchange that is no all-to-all; otherwise bf16 or fp32"),
     Type(precision_or_none), [](auto& parallel) { return &parallel.experts.dispatch; },
     see("workloads.md, *Experts*")},
    {"workload.parallel.combine-precision", "precision in which tokens travel back from experts", "bf16",
     Default::described("bf16; fp32 with `precision: fp32`"), Type(precision_or_none),
     [](auto& parallel) { return &parallel.experts.combine; }, see("workloads.md, *Experts*")},

    // Adds how the embedding tables of a recommendation model are divided.
    {"workload.parallel.table-sharding", "how NPUs share embedding tables that have no `sharding` of their own",
     "table", Default::built_in(), word<table_shardings>(),
     [](auto& parallel) { return &parallel.sharding.tables.sharding; }, see("workloads.md, *Tables*")},
    {"workload.parallel.table-balance",
     "quantity that is balanced among NPUs that hold whole tables, or columns of them", "lookups", Default::built_in(),
     word<table_balances>(), [](auto& parallel) { return &parallel.sharding.tables.balance; },
     see("workloads.md, *Tables*")},
    {"workload.parallel.table-columns", "columns of a part of a table that is divided by columns", "64",
     Default::built_in(), large_count(1), [](auto& parallel) { return &parallel.sharding.tables.columns; },
     see("workloads.md, *Tables*")},

    // Adds how communication and compute overlap.
    {"workload.parallel.tp-overlap",
     "share of the products next to tensor-parallel collectives that overlaps with them", "0.8", Default::built_in(),
     share(), [](auto& parallel) { return &parallel.overlap.tensor; }, see("workloads.md, *Overlap*")},
    {"workload.parallel.cp-exchange", "how context parallelism brings keys and values to all", "ring",
     Default::built_in(), word<context_exchanges>(), [](auto& parallel) { return &parallel.overlap.context; },
     see("workloads.md, *Overlap*")},
    {"workload.parallel.expert-overlap", "work that overlaps with the exchange of tokens with experts", "batches",
     Default::described("`batches` with `schedule: dualpipe`, otherwise `false`"), word<expert_overlaps>(),
     [](auto& parallel) { return &parallel.overlap.experts; }, see("workloads.md, *Overlap*"),
     prepare([](Parallel& parallel) {
       parallel.overlap.experts =
           parallel.is_mirrored() ? workload::ExpertOverlap::batches : workload::ExpertOverlap::none;
     })},
    {"workload.parallel.exposed-share",
     "share of the bytes of ZeRO 3's collectives for which compute waits; the rest overlaps", "0.3",
     Default::built_in(), share(), [](auto& parallel) { return &parallel.sharding.exposed_share; },
     see("workloads.md, *Overlap*")},
    {"workload.parallel.gather-before-forward",
     "ZeRO 1 and 2: gather new parameters before each layer's first forward pass, not after the update", "true",
     Default::built_in(), boolean(), [](auto& parallel) { return &parallel.sharding.gather_before_forward; },
     see("workloads.md, *Overlap*")},
    {"workload.parallel.between-steps",
     "time before each step in which NPUs do nothing of the model: loading data, logging, waiting for the host; "
     "only compute models that use durations know it",
     "20 ms", Default::described("0 ns"), duration(), [](auto& parallel) { return &parallel.between_steps; },
     see("workloads.md, *Overlap*")},

    // What the software does besides in each layer and after the update.
    {"workload.parallel.owners-broadcast",
     "ZeRO 1 and 2: the owner of each tensor broadcasts it after the update, one after the other; otherwise copies "
     "gather their shares",
     "true", Default::built_in(), boolean(), [](auto& parallel) { return &parallel.sharding.owners_broadcast; },
     see("workloads.md, *Software*"), written_unless_default()},
    {"workload.parallel.fused-loss",
     "let the loss and its gradient pass the scores of words once each; otherwise separate kernels do, in fp32",
     "false", Default::built_in(), boolean(), [](auto& parallel) { return &parallel.extras.fused_loss; },
     see("workloads.md, *Software*"), written_unless_default()},
    {"workload.parallel.fused-gradients",
     "let products add gradients of weights to their sums; otherwise a separate kernel does, for each micro-batch",
     "false", Default::built_in(), boolean(), [](auto& parallel) { return &parallel.extras.fused_gradients; },
     see("workloads.md, *Software*"), written_unless_default()},
    {"workload.parallel.layer-time",
     "time for which an NPU waits for the host in each pass of a micro-batch through a layer, in inference the least "
     "time of a pass; only compute models that use durations know it",
     "500 us", Default::described("0 ns"), duration(), [](auto& parallel) { return &parallel.extras.host; },
     see("workloads.md, *Software*"), written_unless_default()},

    // The software that makes ZeRO 3's collectives.
    {"workload.parallel.calls-of-layer",
     "collectives in which ZeRO 3 gathers a layer, one after the other, and sums its gradients: the number of "
     "its weights, if the software gathers each one by itself",
     "4", Default::built_in(), count(1), [](auto& parallel) { return &parallel.sharding.calls.of_layer; },
     see("workloads.md, *Overlap*")},
    {"workload.parallel.call-time",
     "time for which the NPU waits for the host before each of these collectives; only compute models that use "
     "durations know it",
     "290 us", Default::described("0 ns"), duration(), [](auto& parallel) { return &parallel.sharding.calls.each; },
     see("workloads.md, *Overlap*")},
    {"workload.parallel.call-time-per-member",
     "additional time for each member of the collective, whose part is sliced or copied by a separate call", "11 us",
     Default::described("0 ns"), duration(), [](auto& parallel) { return &parallel.sharding.calls.of_member; },
     see("workloads.md, *Overlap*")},
};

}  // namespace

workload::RecomputedModules as_recomputed_modules(const Value& value, const std::string& path) {
  workload::RecomputedModules modules;
  if (value.kind == Value::Kind::sequence && value.items.empty()) return modules;
  for (const Value& item : as_list(value, path, recomputed_modules_expected)) {
    bool& is_recomputed = modules.*as_word(item, path, recomputed_modules());
    if (is_recomputed)
      throw Error(ErrorCode::bad_input, item.place(path), fmt::format("found {} twice", item.text), "each once");
    is_recomputed = true;
  }
  return modules;
}

std::string text_of(const workload::RecomputedModules& modules) {
  std::vector<std::string_view> names;
  for (const auto& module : recomputed_modules())
    if (modules.*module.value) names.push_back(module.text);
  return fmt::format("[{}]", fmt::join(names, ", "));
}

const Keys<Parallel>& parallel_keys() {
  static const Keys<Parallel> all("workload.parallel", parallel_rows, "workload.parallel");
  return all;
}

}  // namespace orrery::config
