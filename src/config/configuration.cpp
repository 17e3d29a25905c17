#include "orrery/config/configuration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <tuple>

#include "formats.hpp"
#include "orrery/base/text.hpp"
#include "orrery/collective/custom_collective.hpp"
#include "orrery/memory/options.hpp"
#include "orrery/partition/strategy.hpp"
#include "orrery/topology/fabric.hpp"

namespace orrery::config {
namespace {

std::string normal_path(const std::filesystem::path& path) {
  return std::filesystem::absolute(path).lexically_normal().string();
}

std::string optional_path(const std::optional<std::filesystem::path>& path) {
  return path ? normal_path(*path) : std::string();
}

bool same(const collective::CustomCollectives::List& a, const collective::CustomCollectives::List& b) {
  const auto file = [](const auto& custom) { return normal_path(custom->file()); };
  return std::ranges::equal(a, b, {}, file, file);
}

bool same(const collective::Options& a, const collective::Options& b) {
  const auto fields = [](const collective::Options& o) {
    return std::tie(o.all_reduce, o.all_gather, o.reduce_scatter, o.all_to_all, o.broadcast, o.reduce,
                    o.chunks.optimization, o.chunks.dimension_order, o.chunks.chunk_order, o.chunks.overlap_latency,
                    o.chunks.splits, o.chunks.active_chunks, o.chunks.queues, o.endpoint_delay, o.local_memory,
                    o.rendezvous);
  };
  return fields(a) == fields(b) && same(a.custom.of_nodes, b.custom.of_nodes) &&
         std::ranges::equal(a.custom.of_kind, b.custom.of_kind, [](const auto& x, const auto& y) {
           return x.first == y.first && same(x.second, y.second);
         });
}

bool same(const npu::Options& a, const npu::Options& b) {
  const auto fields = [](const npu::Options& o) {
    const auto& [cache, expanded] = std::tie(o.compute.cache, o.compute.expanded);
    return std::tie(o.compute.roofline, o.compute.peak_flops, o.compute.local_memory, o.compute.local_memory_latency_ns,
                    cache.size, cache.bandwidth, cache.latency_ns, expanded.share, expanded.bandwidth,
                    expanded.latency_ns, o.replay_only, o.rendezvous, o.compute_streams, o.comm_streams, o.comm_order,
                    o.iterations, o.network, o.local_memory_size, o.compute_noise, o.noise_seed, o.compute_speed,
                    o.timeline, o.record_iterations);
  };
  return fields(a) == fields(b);
}

bool same(const memory::RemoteMemoryOptions& a, const memory::RemoteMemoryOptions& b) {
  const auto fields = [](const memory::RemoteMemoryOptions& o) {
    const auto& h = o.hierarchy;
    return std::tie(o.kind, o.bandwidth, o.latency_ns, o.npus_per_node, h.groups, h.switches, h.link, h.link_latency_ns,
                    h.fabric, h.fabric_latency_ns, h.chunk);
  };
  return fields(a) == fields(b);
}

bool same(const Perturbation& a, const Perturbation& b) {
  return a.slow_npus == b.slow_npus && a.compute_speed == b.compute_speed && a.links == b.links &&
         optional_path(a.compute_speed_file) == optional_path(b.compute_speed_file);
}

bool same(const Workload& a, const Workload& b) {
  if (a.generated != b.generated || a.dependencies != b.dependencies || a.streams != b.streams ||
      a.custom_nodes != b.custom_nodes || optional_path(a.groups) != optional_path(b.groups) ||
      a.traces.size() != b.traces.size())
    return false;
  for (std::size_t i = 0; i < a.traces.size(); ++i) {
    const TraceFiles &x = a.traces[i], &y = b.traces[i];
    if (x.first != y.first || x.last != y.last || normal_path(x.pattern) != normal_path(y.pattern)) return false;
  }
  return true;
}

bool same(const partition::PartitionOptions& a, const partition::PartitionOptions& b) {
  return a == b || (a.is_rank_map() && b.is_rank_map() && normal_path(a.parameter()) == normal_path(b.parameter()));
}

bool same(const RunOptions& a, const RunOptions& b) {
  const auto fields = [](const RunOptions& o) {
    return std::tie(o.force, o.fold, o.memory, o.progress, o.progress_interval_s, o.quiet, o.print_npus,
                    o.max_walltime_s, o.watchdog_s);
  };
  return fields(a) == fields(b) && normal_path(a.output) == normal_path(b.output) && same(a.partition, b.partition);
}

std::string precisions_of(const std::map<workload::Precision, double>& peaks) {
  std::vector<std::string_view> words;
  for (const auto& [precision, peak] : peaks) words.push_back(word(precisions(), precision));
  return fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace

std::filesystem::path Workload::trace_of(NpuId npu) const {
  for (const auto& files : traces) {
    if (npu.value() < files.first || npu.value() > files.last) continue;
    constexpr std::string_view placeholder = "{npu}";
    const std::string number = fmt::to_string(npu.value());
    std::string path = files.pattern;
    for (auto at = path.find(placeholder); at != std::string::npos; at = path.find(placeholder, at + number.size()))
      path.replace(at, placeholder.size(), number);
    return path;
  }
  ensure_failed("an NPU without a trace", std::source_location::current());
}

topology::LinkFault link_fault(const Perturbation::Links& links) {
  topology::LinkFault fault{links.dimension, {}, links.port, links.failed};
  for (const NpuRange& range : links.npus)
    for (std::uint64_t npu = range.first; npu <= range.last; ++npu)
      fault.npus.emplace_back(static_cast<std::uint32_t>(npu));
  return fault;
}

void Configuration::follow(RuleSet rules) {
  rule_set = rules;
  const bool astra_sim = rules == RuleSet::astra_sim;
  const Rounding rounding = astra_sim ? Rounding::down_to_ns : Rounding::up_to_ps;
  executor.network.rules = {.rounding = rounding, .charge_every_dimension = !astra_sim};
  executor.compute.rounding = rounding;
  executor.compute.ignore_nodes_without_bytes = astra_sim;
  remote_memory.rounding = rounding;
  remote_memory.own_memory_takes_turns = !astra_sim;
  collectives.rules = {.reduce_every_message = !astra_sim,
                       .fixed_subgroup_endpoint_delay = astra_sim,
                       .subgroup_is_ring = astra_sim,
                       .share_bandwidth = !astra_sim,
                       .bare_custom_collectives = astra_sim};
}

topology::Topology Configuration::topology() const {
  topology::Topology as_it_should_be(dimensions);
  if (perturbation.links.empty()) return as_it_should_be;
  topology::Links links(dimensions);
  for (const auto& entry : perturbation.links) links.add(link_fault(entry));
  return topology::Topology(dimensions, std::move(links));
}

void Configuration::validate(Faults& faults) const {
  const topology::Topology built = topology();
  const auto require = [&](bool holds, std::string_view key, std::string_view found, std::string_view expected) {
    if (!holds) faults.add(Error(ErrorCode::bad_input, {.key = std::string(key)}, found, expected));
  };
  faults.attempt([&] { collectives.validate(built); });
  const bool knows_peak = peaks.empty() || peaks.contains(precision()) || !executor.compute.roofline;
  require(knows_peak, "system.compute.peak", fmt::format("found peaks of {}", precisions_of(peaks)),
          fmt::format("one of {}, {}", word(precisions(), precision()),
                      workload.generated ? "the precision of the workload (workload.parallel.precision)"
                                         : "which is taken for traces"));
  if (knows_peak) faults.attempt([&] { executor.validate(); });
  faults.attempt([&] { remote_memory.validate(built.num_npus()); });
  faults.attempt([&] { run.partition.validate(built, run.partition_named_by); });
  if (const auto& generated = workload.generated; generated && faults.attempt([&] { generated->validate(); })) {
    const std::uint32_t npus = generated->parallel.num_npus();
    require(npus == built.num_npus(), "workload.parallel", fmt::format("tp * cp * ep * dp * pp is {}", npus),
            fmt::format("the number of NPUs of the network, {}", built.num_npus()));
    const auto* const layers = std::get_if<workload::LayerList>(&generated->model);
    const bool is_timed = layers != nullptr && layers->is_timed();
    require(!is_timed || !executor.compute.roofline, "workload.model",
            "times are given, but with the roofline on they come from FLOPs and bytes",
            "layers with flops and no late, or system.compute.roofline: false");
    require(is_timed || executor.compute.roofline || executor.replay_only, "system.compute.roofline",
            "found false, but the workload is generated from a model in FLOPs, which would take no time",
            "true, with system.compute.peak and system.compute.local-memory.bandwidth");
    const auto& offload = generated->parallel.offload;
    require(!offload.any() || remote_memory.kind != memory::RemoteMemoryKind::none, "workload.parallel.offload",
            "found what lives in remote memory, but the system has none",
            "system.remote-memory with a kind, or nothing offloaded");
    require(!offload.on_path || remote_memory.kind == memory::RemoteMemoryKind::hierarchical_pool,
            "workload.parallel.offload-collectives",
            "found path, but the remote memory has no switches that gather and add up",
            "network, or system.remote-memory.kind: hierarchical-pool");
    require(workload.custom_nodes.empty(), "system.collectives.custom.nodes",
            "found ids of nodes, but the workload is generated",
            "traces (workload.traces), or collectives by kind (system.collectives.custom.KIND)");
    require(!executor.replay_only, "workload.replay-only",
            "found true, but the nodes of a generated workload have no recorded durations", "false");
  }
  require(executor.network.packet == Bytes(0) || executor.network.switching == network::Switching::cut_through,
          "system.network.packet-size", "found a size, but messages are stored and forwarded whole",
          "system.network.switching: cut-through, or no packet size");
  for (std::size_t d = 0; d < dimensions.size(); ++d)
    if (executor.network.model != network::Model::congestion_aware && is_of_links_only(dimensions[d].shape))
      faults.add(Error(ErrorCode::bad_input,
                       fmt::format("topology, dimension {} ({}): the congestion-unaware network does not have this "
                                   "shape; expected Ring, Mesh, FullyConnected or Switch, or system.network.model: "
                                   "congestion-aware",
                                   d, topology::name(dimensions[d].shape))));
  if (executor.network.model == network::Model::congestion_aware) {
    faults.attempt([&] { const topology::Fabric links(built); });
    require(!run.fold, "run.fold",
            "found true with the congestion-aware network, where NPUs that are alike still "
            "meet at different links",
            "false (no --fold), or the network model congestion-unaware");
  }
  if (workload.streams == trace::Streams::of_trace) {
    require(!workload.generated, "workload.streams",
            "found trace, but the nodes of a generated workload name no stream", "counted");
    require(executor.comm_order == npu::CommOrder::lowest_id, "system.communication.order",
            "found an order of the nodes that wait for the communication resource, but with workload.streams: trace "
            "they wait for their streams",
            "lowest-id, or workload.streams: counted");
    require(!collectives.uses_switch_operations(), "workload.streams",
            "found trace, but what a collective may use of a switch (inSwitch) depends on how many an NPU is in at a "
            "time, which traces do not limit",
            "counted, with communication.streams; or no inSwitch");
  }
  std::uint64_t next = 0;
  for (const auto& files : workload.traces) {
    require(files.first == next && files.last >= files.first, "workload.traces",
            fmt::format("no single trace for NPU {}", next), "ascending ranges that hold every NPU once");
    next = std::uint64_t{files.last} + 1;
  }
  require(workload.traces.empty() || next == built.num_npus(), "workload.traces",
          fmt::format("traces for {}", counted(next, "NPU")), fmt::format("traces for {}", built.num_npus()));
  require(run.progress_interval_s > 0 && std::isfinite(run.progress_interval_s), "run.progress-interval",
          fmt::format("found {} s", run.progress_interval_s), "more than 0 s");
  require(run.max_walltime_s >= 0 && std::isfinite(run.max_walltime_s), "run.max-walltime",
          fmt::format("found {} s", run.max_walltime_s), "0 s (no limit) or more");
  require(run.watchdog_s >= 0 && std::isfinite(run.watchdog_s), "run.watchdog",
          fmt::format("found {} s", run.watchdog_s), "0 s (never) or more");
}

bool operator==(const Configuration& a, const Configuration& b) {
  return a.rule_set == b.rule_set && a.dimensions == b.dimensions && same(a.collectives, b.collectives) &&
         same(a.executor, b.executor) && a.peaks == b.peaks && same(a.remote_memory, b.remote_memory) &&
         same(a.perturbation, b.perturbation) && same(a.workload, b.workload) && same(a.run, b.run);
}

}  // namespace orrery::config
