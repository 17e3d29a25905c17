#include "idle_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <map>
#include <ranges>
#include <span>

#include "idle_conditions.hpp"
#include "tiers.hpp"

namespace orrery::config {
namespace {

using workload::Axis;

bool has_axis(const IdleSubject& subject, Axis axis) {
  return subject.of_parallel([axis](const auto& parallel) { return parallel[axis] > 1; });
}

/// Says whether a port of dimensions keeps one of them from sending, or keeps tiers from sharing one.
bool has_effective_port(const Configuration& all) {
  const topology::Topology topology = all.topology();
  const collective::LibraryOptions& library = all.collectives.library;
  for (std::uint32_t d = 0; d < topology.num_dimensions(); ++d) {
    const topology::SharedPort* const port = topology.ports().of(d);
    const bool is_slower = port != nullptr && port->rate < topology::injection_rate(all.dimensions[d]);
    const bool is_tier_apart = d > 0 && are_tiers(all.dimensions[d - 1], all.dimensions[d]);
    // A library has a network card for each port between nodes.
    const bool is_nic_apart =
        library.library && d > library.node_dimensions && topology.dimension(d).port != topology.dimension(d - 1).port;
    if (is_slower || is_tier_apart || is_nic_apart || (port != nullptr && port->is_contended)) return true;
  }
  return false;
}

/// Says whether a ring goes along links that join neighbours, of which each NPU has two.
bool has_ring_of_neighbours(const Configuration& all) {
  const auto& c = all.collectives;
  for (std::size_t d = 0; d < all.dimensions.size(); ++d) {
    if (all.dimensions[d].shape->pattern != topology::TrafficPattern::neighbours || all.dimensions[d].size < 3)
      continue;
    if (c.library.library) return true;
    for (const auto* const list : {&c.all_reduce, &c.all_gather, &c.reduce_scatter, &c.all_to_all})
      if (d < list->size() && (*list)[d] == collective::Algorithm{}) return true;
  }
  return false;
}

std::vector<IdleCondition> of_collectives() {
  return {
      {{"system.network.dimensions.flits.seed"},
       "without a Torus2D or system.network.dimensions.flits.routing: adaptive-xy-yx, which draw",
       [](const IdleSubject& s) {
         return std::ranges::any_of(s.network().flits, [](const network::FlitDimensions& flits) {
           return flits.shape == network::FlitShape::torus ||
                  flits.rules.routing == network::FlitRouting::adaptive_xy_yx;
         });
       }},
      {{"system.network.dimensions.port", "system.network.ports."},
       "where the port lets through what its dimensions can send together",
       [](const IdleSubject& s) { return has_effective_port(s.all); }},
      {{"system.network.dimensions.in-switch-operations"},
       "without the algorithm inSwitch",
       [](const IdleSubject& s) { return s.all.collectives.uses_switch_operations(); }},
      {{"system.network.packets.reduction."},
       "without the algorithm inSwitch, which alone reduces in switches",
       [](const IdleSubject& s) { return s.all.collectives.uses_switch_operations(); }},
      {{"system.collectives.all-reduce", "system.collectives.all-gather", "system.collectives.reduce-scatter",
        "system.collectives.all-to-all", "system.collectives.broadcast", "system.collectives.reduce",
        "system.collectives.optimization", "system.collectives.dimension-order", "system.collectives.chunks",
        "system.collectives.least-chunk", "system.collectives.chunk-order", "system.collectives.overlap-latency",
        "system.collectives.active-chunks", "system.collectives.queues", "system.collectives.endpoint-delay"},
       "with system.collectives.library.name, whose collectives are in place of those of algorithms",
       [](const IdleSubject& s) { return !s.all.collectives.library.library; }},
      {{"system.collectives.directions"},
       "without the algorithm ring in a Ring or Mesh of three NPUs or more, or with rules: astra-sim",
       [](const IdleSubject& s) { return s.all.rule_set == RuleSet::physical && has_ring_of_neighbours(s.all); }},
      {{"system.collectives.least-chunk"},
       "without system.collectives.chunks above 1",
       [](const IdleSubject& s) { return s.all.collectives.chunks.splits > 1; }},
      {{"system.gpu."},
       "without a plan in system.collectives.custom",
       [](const IdleSubject& s) {
         return !s.all.collectives.custom.of_kind.empty() || !s.all.collectives.custom.of_nodes.empty();
       }},
      {{"system.gpu.compute-share"},
       "with system.gpu.evaluate: alone",
       [](const IdleSubject& s) { return s.all.gpu.evaluation != gpu::Evaluation::alone; }},
  };
}

std::vector<IdleCondition> of_compute() {
  return {
      {{"system.compute.processor", "system.compute.attention-kernel", "system.compute.power-cap"},
       "without system.compute.model: products",
       [](const IdleSubject& s) { return s.all.execution.compute.model == compute::ModelName("products"); }},
      {{"system.compute.array.filter-buffer"},
       "with system.compute.array.dataflow: weight-stationary",
       [](const IdleSubject& s) {
         return s.all.execution.compute.systolic.dataflow != compute::Dataflow::weight_stationary;
       }},
      {{"system.compute.array.input-buffer"},
       "with system.compute.array.dataflow: input-stationary",
       [](const IdleSubject& s) {
         return s.all.execution.compute.systolic.dataflow != compute::Dataflow::input_stationary;
       }},
      {{"system.compute.fp8"},
       "without workload.parallel.precision: fp8 or mxfp8",
       [](const IdleSubject& s) {
         return s.of_parallel([](const auto& p) {
           return workload::is_below_bf16(p.precision) && p.precision != workload::Precision::nvfp4;
         });
       }},
      {{"system.compute.nvfp4"},
       "without workload.parallel.precision: nvfp4",
       [](const IdleSubject& s) {
         return s.of_parallel([](const auto& p) { return p.precision == workload::Precision::nvfp4; });
       }},
      {{"system.compute.attention-kernel"},
       "on a processor for which no rates of this kernel are known",
       [](const IdleSubject& s) {
         const auto& kernel = s.all.execution.compute.products.attention.kernel;
         return !kernel || (*kernel)->share(s.processor().name, {}).has_value();
       }},
      {{"system.compute.attention-kernel"},
       "with system.compute.attention, which goes before it and which a stack may give",
       [](const IdleSubject& s) { return s.all.execution.compute.products.attention_share <= 0; }},
      {{"system.compute.power-cap"},
       "on a processor whose power is not known",
       [](const IdleSubject& s) { return s.processor().power > 0; }},
      {{"system.compute.attention-factor"},
       "without system.compute.attention-kernel",
       [](const IdleSubject& s) { return s.all.execution.compute.products.attention.kernel.has_value(); }},
      {{"system.compute.fp8"},
       "without peaks of bf16 and fp8 in system.compute.peak",
       [](const IdleSubject& s) { return s.all.execution.compute.has_fp8_peak(); }},
      {{"system.compute.local-memory.latency"},
       "without system.compute.model: roofline",
       [](const IdleSubject& s) { return s.all.execution.compute.model == compute::ModelName("roofline"); }},
  };
}

std::vector<IdleCondition> of_npus() {
  return {
      {{"system.remote-memory.bandwidth", "system.remote-memory.latency"},
       "without system.remote-memory.kind",
       [](const IdleSubject& s) { return s.all.remote_memory.kind->has_memory; }},
      {{"system.remote-memory.npus-per-node"},
       "without system.remote-memory.kind: per-node or hierarchical-pool",
       [](const IdleSubject& s) { return s.all.remote_memory.kind->has_nodes; }},
      {{"cost.operation.electricity", "cost.operation.lifetime", "cost.operation.utilisation"},
       "with cost.npu.rent, in which they are",
       [](const IdleSubject& s) { return !(s.all.prices.npu.rent > 0); }},
      {{"system.compute.local-memory.reserved"},
       "without system.compute.local-memory.size",
       [](const IdleSubject& s) { return s.all.execution.local_memory.size > Bytes(0); }},
      {{"cost.npu.memory"},
       "without system.compute.local-memory.size",
       [](const IdleSubject& s) { return s.all.execution.room().count() > 0; }},
      {{"perturbation.noise-seed", "system.compute.noise-seed"},
       "without perturbation.noise or perturbation.distributions",
       [](const IdleSubject& s) {
         return s.all.execution.noise.amplitude > 0 || !s.all.execution.noise.variations.all().empty();
       }},
  };
}

std::vector<IdleCondition> of_workload() {
  return {
      {{"provenance"},
       "without a generated step, whose interval it gives",
       [](const IdleSubject& s) { return s.all.workload.generated.has_value(); }},
      {{"workload.precision"},
       "without peaks of several precisions in system.compute.peak",
       [](const IdleSubject& s) { return !s.all.peaks.empty(); }},
      {{"workload.dependencies"},
       "without workload.traces",
       [](const IdleSubject& s) { return !s.workload.generated; }},
  };
}

std::vector<IdleCondition> of_model() {
  return {
      {{"workload.model.router-bias", "workload.parallel.expert-capacity", "workload.parallel.expert-imbalance",
        "workload.parallel.expert-seed", "workload.parallel.expert-overlap", "workload.parallel.expert-tp",
        "workload.model.expert-servers", "workload.parallel.expert-exchange", "workload.parallel.dispatch-precision",
        "workload.parallel.combine-precision"},
       "without workload.model.experts",
       [](const IdleSubject& s) { return s.transformer() != nullptr && s.transformer()->mlp.experts > 0; }},
      {{"workload.parallel.expert-seed"},
       "without workload.parallel.expert-imbalance",
       [](const IdleSubject& s) { return s.of_parallel([](const auto& p) { return p.experts.imbalance > 0; }); }},
      {{"workload.parallel.expert-imbalance", "workload.parallel.expert-overlap", "workload.model.expert-servers",
        "workload.parallel.expert-exchange", "workload.parallel.dispatch-precision",
        "workload.parallel.combine-precision"},
       "without experts on several NPUs (workload.parallel.ep, or expert-tp: 1)",
       [](const IdleSubject& s) { return s.of_parallel([](const auto& p) { return p.num_expert_ranks() > 1; }); }},
      {{"workload.model.expert-servers"},
       "without workload.parallel.expert-exchange: once-per-server",
       [](const IdleSubject& s) {
         return s.of_parallel(
             [](const auto& p) { return p.experts.exchange == workload::ExpertExchange::once_per_server; });
       }},
      {{"system.collectives.experts.kernels", "system.collectives.experts.sm-share"},
       "without workload.traces, or a workload.parallel.expert-exchange that is no all-to-all",
       [](const IdleSubject& s) {
         return !s.workload.generated || s.of_parallel([](const auto& p) { return p.has_expert_kernels(); });
       }},
      {{"system.collectives.experts.sm-share"},
       "in networks that simulate links, where exchanges of tokens hold no compute units",
       [](const IdleSubject& s) { return !s.network().model->simulates_links(); }},
      {{"system.collectives.experts.kernels"},
       "with workload.parallel.expert-exchange: low-latency, which has kernels of its own",
       [](const IdleSubject& s) {
         return !s.of_parallel(
             [](const auto& p) { return p.experts.exchange == workload::ExpertExchange::low_latency; });
       }},
      {{"system.collectives.experts.top-k", "system.collectives.experts.servers"},
       "without workload.traces, because a model has such numbers of its own",
       [](const IdleSubject& s) { return !s.workload.generated; }},
      {{"workload.model.causal"},
       "with workload.parallel.phase: decode, whose token attends to all others",
       [](const IdleSubject& s) {
         return s.of_parallel([](const auto& p) { return p.pipeline.phase != workload::Phase::decode; });
       }},
      {{"workload.model.recompute-modules"},
       "with workload.parallel.recompute-modules",
       [](const IdleSubject& s) {
         return s.of_parallel([](const auto& p) { return !p.pipeline.recomputed_modules; });
       }},
      {{"workload.parallel.table-sharding", "workload.parallel.table-balance", "workload.parallel.table-columns"},
       "without workload.model.kind: dlrm",
       [](const IdleSubject& s) { return s.is_dlrm(); }},
      {{"workload.model.pooling"},
       "with workload.model.poolings",
       [](const IdleSubject& s) {
         return !s.is_dlrm() || std::get<workload::Dlrm>(s.workload.generated->model).poolings.empty();
       }},
  };
}

std::vector<IdleCondition> of_phases() {
  return {
      {{"workload.model.further-tokens", "workload.parallel.bucket", "workload.parallel.norm-sums",
        "workload.parallel.overlap", "workload.parallel.gradients", "workload.parallel.gather-before-forward",
        "workload.parallel.recompute-modules", "workload.model.recompute-modules"},
       "without workload.parallel.phase: training",
       [](const IdleSubject& s) { return s.of_parallel([](const auto& p) { return !p.is_inference(); }); }},
      {{"workload.parallel.tp-overlap"},
       "with workload.parallel.phase: decode, whose products are not cut in pieces",
       [](const IdleSubject& s) {
         return s.of_parallel([](const auto& p) { return p.pipeline.phase != workload::Phase::decode; });
       }},
      {{"workload.parallel.cache-precision"},
       "with workload.parallel.phase: training",
       [](const IdleSubject& s) { return s.of_parallel([](const auto& p) { return p.is_inference(); }); }},
      {{"workload.parallel.recompute-modules"},
       "without workload.model.kind: transformer",
       [](const IdleSubject& s) { return s.transformer() != nullptr; }},
      {{"workload.parallel.recompute-modules", "workload.model.recompute-modules"},
       "with workload.parallel.recompute: full",
       [](const IdleSubject& s) {
         return s.of_parallel([](const auto& p) { return p.recompute != workload::Recompute::full; });
       }},
      {{"workload.parallel.output-tokens", "workload.parallel.decode-samples"},
       "without workload.parallel.phase: request",
       [](const IdleSubject& s) {
         return s.of_parallel([](const auto& p) { return p.pipeline.phase == workload::Phase::request; });
       }},
  };
}

std::vector<IdleCondition> of_parallelism() {
  return {
      {{"workload.parallel.overlap"},
       "with workload.parallel.schedule: dualpipe, whose gradients are complete at its end",
       [](const IdleSubject& s) { return s.of_parallel([](const auto& p) { return !p.is_mirrored(); }); }},
      {{"workload.parallel.delayed-weight-gradients"},
       "without workload.parallel.schedule: 1f1b or gpipe, because the others delay them in any case",
       [](const IdleSubject& s) {
         return s.of_parallel([](const auto& p) {
           return p.pipeline.schedule == workload::Schedule::one_forward_one_backward ||
                  p.pipeline.schedule == workload::Schedule::gpipe;
         });
       }},
      {{"workload.parallel.sp", "workload.parallel.tp-overlap"},
       "without workload.parallel.tp above 1",
       [](const IdleSubject& s) { return has_axis(s, Axis::tp); }},
      {{"workload.parallel.cp-exchange"},
       "without workload.parallel.cp above 1",
       [](const IdleSubject& s) { return has_axis(s, Axis::cp); }},
      {{"workload.parallel.scattered-messages"},
       "without workload.parallel.tp and workload.parallel.pp above 1, and with workload.parallel.sp",
       [](const IdleSubject& s) {
         return has_axis(s, Axis::tp) && has_axis(s, Axis::pp) &&
                s.of_parallel([](const auto& p) { return !p.sequence_parallel; });
       }},
      {{"workload.parallel.fused-loss", "workload.parallel.fused-gradients"},
       "without a training step of a transformer",
       [](const IdleSubject& s) {
         return s.transformer() != nullptr && s.of_parallel([](const auto& p) { return !p.is_inference(); });
       }},
      {{"workload.parallel.layer-time"},
       "without a transformer",
       [](const IdleSubject& s) { return s.transformer() != nullptr; }},
      {{"workload.parallel.layer-time", "workload.parallel.between-steps", "workload.parallel.call-time",
        "workload.parallel.call-time-per-member"},
       "with system.compute.model: roofline, in which work takes time by its operations and bytes alone",
       [](const IdleSubject& s) {
         const auto& model = *s.all.execution.compute.model;
         return !model.uses_operations || model.estimates_operations;
       }},
  };
}

std::vector<IdleCondition> of_sharding() {
  return {
      {{"workload.parallel.prefetch"},
       "without workload.parallel.zero: 3 or workload.parallel.offload",
       [](const IdleSubject& s) {
         return s.of_parallel([](const auto& p) { return p.sharding.zero == 3 || p.sharding.offload.any(); });
       }},
      {{"workload.parallel.gather-before-forward"},
       "without workload.parallel.zero: 1 or 2",
       [](const IdleSubject& s) {
         return s.of_parallel([](const auto& p) { return p.sharding.zero == 1 || p.sharding.zero == 2; });
       }},
      {{"workload.parallel.exposed-share", "workload.parallel.calls-of-layer"},
       "without workload.parallel.zero: 3",
       [](const IdleSubject& s) { return s.of_parallel([](const auto& p) { return p.sharding.zero == 3; }); }},
      {{"workload.parallel.call-time", "workload.parallel.call-time-per-member"},
       "without workload.parallel.zero: 3 or workload.parallel.owners-broadcast",
       [](const IdleSubject& s) {
         return s.of_parallel([](const auto& p) { return p.sharding.zero == 3 || p.sharding.owners_broadcast; });
       }},
      {{"workload.parallel.owners-broadcast"},
       "without workload.parallel.zero: 1 or 2, or with workload.parallel.gather-before-forward",
       [](const IdleSubject& s) {
         return s.of_parallel([](const auto& p) {
           return (p.sharding.zero == 1 || p.sharding.zero == 2) && !p.sharding.gather_before_forward;
         });
       }},
      {{"workload.parallel.bucket-buffers"},
       "without workload.parallel.zero: 2 or 3",
       [](const IdleSubject& s) { return s.of_parallel([](const auto& p) { return p.sharding.zero >= 2; }); }},
  };
}

std::span<const IdleCondition> conditions() {
  static const std::vector<IdleCondition> all = [] {
    std::vector<IdleCondition> result = idle_conditions_of_packets();
    for (const auto& more : {of_collectives(), of_compute(), of_npus(), of_workload(), of_model(), of_phases(),
                             of_parallelism(), of_sharding()})
      result.insert(result.end(), more.begin(), more.end());
    return result;
  }();
  return all;
}

constexpr std::string_view path_of_jobs = "jobs.";

/// Returns a path as conditions have it: without the number of a job in front of it, and without those of items.
std::string key_of(std::string_view path) {
  std::string key;
  for (const auto part : std::views::split(path, '.')) {
    const std::string_view name(part.begin(), part.end());
    const bool is_number = std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; });
    if (!is_number) key.append(key.empty() ? "" : ".").append(name);
  }
  return key.starts_with("jobs.workload.") ? key.substr(path_of_jobs.size()) : key;
}

/// Returns the workloads that a key is of: that of its job, or all.
std::vector<const Workload*> workloads_of(const Configuration& all, std::string_view path) {
  if (!path.starts_with(path_of_jobs)) return all.workloads();
  std::size_t number = 0;
  std::from_chars(path.data() + path_of_jobs.size(), path.data() + path.size(), number);
  if (number >= all.workload.jobs.size()) return {};
  return {&all.workload.jobs[number].workload};
}

/// Says whether a key has no effect on any workload that it is of.
bool is_idle(const IdleCondition& condition, const Configuration& all, std::string_view path) {
  return std::ranges::none_of(workloads_of(all, path), [&](const Workload* workload) {
    return condition.holds({all, *workload});
  });
}

}  // namespace

std::map<std::string_view, std::string> changed_keys_of(const Configuration& configuration, std::string_view file) {
  std::map<std::string_view, std::string> keys;
  for (const auto& [path, origin] : configuration.changed_keys)
    if (origin.empty() || origin == file || origin.starts_with("--set ")) keys.emplace(path, key_of(path));
  return keys;
}

bool is_among(const std::vector<std::string_view>& keys, std::string_view key) {
  return std::ranges::any_of(
      keys, [key](std::string_view each) { return each.ends_with('.') ? key.starts_with(each) : key == each; });
}

std::string warning_of_idle_paths(const std::vector<std::string_view>& paths, std::string_view otherwise) {
  return fmt::format("{} {} no effect {}", fmt::join(paths, ", "), paths.size() > 1 ? "have" : "has", otherwise);
}

namespace {

std::vector<std::string> warnings_by(std::span<const IdleCondition> conditions, const Configuration& configuration,
                                     std::string_view file) {
  auto open = changed_keys_of(configuration, file);  // paths that a warning may be about, and their keys
  std::vector<std::string> warnings;
  for (const IdleCondition& condition : conditions) {
    std::vector<std::string_view> idle;
    for (const auto& [path, key] : open)
      if (is_among(condition.keys, key) && is_idle(condition, configuration, path)) idle.push_back(path);
    if (idle.empty()) continue;
    warnings.push_back(warning_of_idle_paths(idle, condition.otherwise));
    for (const std::string_view path : idle) open.erase(path);
  }
  return warnings;
}

}  // namespace

std::vector<std::string> warnings_of_idle_keys(const Configuration& configuration, std::string_view file) {
  return warnings_by(conditions(), configuration, file);
}

std::vector<std::string> warnings_of_idle_packet_keys(const Configuration& configuration, std::string_view file) {
  return warnings_by(idle_conditions_of_packets(), configuration, file);
}

}  // namespace orrery::config
