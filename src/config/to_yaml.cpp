#include <fmt/format.h>

#include <filesystem>

#include "formats.hpp"
#include "orrery/collective/custom_collective.hpp"
#include "orrery/compute/options.hpp"
#include "orrery/config/configuration.hpp"
#include "orrery/config/units.hpp"
#include "orrery/partition/strategy.hpp"

namespace orrery::config {
namespace {

std::string path_text(const std::filesystem::path& path) {
  return in_quotes(std::filesystem::absolute(path).lexically_normal().string());
}

std::string listed(const std::vector<collective::Algorithm>& list) {
  std::string text;
  for (const auto& algorithm : list) text += (text.empty() ? "" : ", ") + name(algorithm);
  return text;
}

std::string network(const Configuration& c) {
  std::string text =
      fmt::format("  network:\n    model: {}\n    switching: {}\n    packet-size: {} B\n    dimensions:\n",
                  network::name(c.executor.network.model), network::name(c.executor.network.switching),
                  c.executor.network.packet.count());
  for (const auto& dimension : c.dimensions) text += fmt::format("      - {}\n", to_text(dimension));
  return text;
}

std::string custom_collectives(const Configuration& c) {
  const auto& by_kind = c.collectives.custom.of_kind;
  const auto& of_nodes = c.collectives.custom.of_nodes;
  if (by_kind.empty() && of_nodes.empty()) return {};
  std::string text = "    custom:\n";
  for (const auto& [kind, customs] : by_kind) {
    std::vector<std::string> files;
    for (const auto& custom : customs) files.push_back(path_text(custom->file()));
    text += fmt::format("      {}: [{}]\n", collective::name(kind), fmt::join(files, ", "));
  }
  if (!of_nodes.empty()) text += "      nodes:\n";
  for (const auto& [id, number] : c.workload.custom_nodes)
    text += fmt::format("        {}: {}\n", id, path_text(of_nodes[number - 1]->file()));
  return text;
}

std::string collectives(const Configuration& c) {
  const collective::Options& options = c.collectives;
  std::string text = "  collectives:\n";
  text += fmt::format("    all-reduce: [{}]\n", listed(options.all_reduce));
  text += fmt::format("    all-gather: [{}]\n", listed(options.all_gather));
  text += fmt::format("    reduce-scatter: [{}]\n", listed(options.reduce_scatter));
  text += fmt::format("    all-to-all: [{}]\n", listed(options.all_to_all));
  if (!options.broadcast.empty()) text += fmt::format("    broadcast: [{}]\n", listed(options.broadcast));
  if (!options.reduce.empty()) text += fmt::format("    reduce: [{}]\n", listed(options.reduce));
  text += custom_collectives(c);
  text += fmt::format("    optimization: {}\n",
                      options.chunks.optimization == collective::Optimization::baseline ? "baseline" : "localBWAware");
  text += fmt::format("    dimension-order: {}\n    chunk-order: {}\n    overlap-latency: {}\n",
                      word(dimension_orders(), options.chunks.dimension_order),
                      word(chunk_orders(), options.chunks.chunk_order), options.chunks.overlap_latency);
  text += fmt::format("    chunks: {}\n    active-chunks: {}\n    queues: {}\n", options.chunks.splits,
                      options.chunks.active_chunks, options.chunks.queues);
  // In ps, which are whole: no rounding on the way back.
  text += fmt::format("    endpoint-delay: {}\n", options.endpoint_delay.ps() % 1000 == 0
                                                      ? fmt::format("{} ns", options.endpoint_delay.ps() / 1000)
                                                      : fmt::format("{} ps", options.endpoint_delay.ps()));
  return text;
}

std::string peak(const Configuration& c) {
  if (c.peaks.empty()) return flops_to_text(c.executor.compute.peak_flops);
  std::vector<std::string> texts;
  for (const auto& [precision, flops] : c.peaks)
    texts.push_back(fmt::format("{}: {}", word(precisions(), precision), flops_to_text(flops)));
  return fmt::format("{{{}}}", fmt::join(texts, ", "));
}

std::string levels(const compute::Options& compute) {
  std::string text;
  const auto add = [&](std::string_view name, const std::string& amount, Bandwidth bandwidth, double latency_ns) {
    text += fmt::format("    {}: {{{}, bandwidth: {}, latency: {}}}\n", name, amount, to_text(bandwidth),
                        nanoseconds_to_text(latency_ns));
  };
  if (const auto& cache = compute.cache; cache.size > Bytes(0))
    add("cache", fmt::format("size: {} B", cache.size.count()), cache.bandwidth, cache.latency_ns);
  if (const auto& expanded = compute.expanded; expanded.share > 0)
    add("expanded-memory", fmt::format("share: {}", expanded.share), expanded.bandwidth, expanded.latency_ns);
  return text;
}

std::string devices(const Configuration& c) {
  const auto& executor = c.executor;
  const auto& compute = executor.compute;
  std::string text = fmt::format("  compute:\n    roofline: {}\n", compute.roofline);
  if (compute.peak_flops > 0 || !c.peaks.empty()) text += fmt::format("    peak: {}\n", peak(c));
  text += "    local-memory:\n";
  if (compute.local_memory.bytes_per_ns() > 0)
    text += fmt::format("      bandwidth: {}\n", to_text(compute.local_memory));
  text += fmt::format("      latency: {}\n", nanoseconds_to_text(compute.local_memory_latency_ns));
  if (executor.local_memory_size > Bytes(0))
    text += fmt::format("      size: {} B\n", executor.local_memory_size.count());
  text += levels(compute);
  text += fmt::format("    streams: {}\n", executor.compute_streams);
  text += fmt::format("  communication:\n    streams: {}\n    order: {}\n    rendezvous: {}\n", executor.comm_streams,
                      word(comm_orders(), executor.comm_order), executor.rendezvous);
  return text + to_text(c.remote_memory);
}

std::string workload(const Configuration& c) {
  std::string text = "workload:\n";
  if (c.workload.generated) text += to_text(*c.workload.generated);
  if (!c.workload.traces.empty()) text += "  traces:\n";
  for (const auto& files : c.workload.traces)
    text += fmt::format("    - {{npus: {}-{}, file: {}}}\n", files.first, files.last, path_text(files.pattern));
  if (c.workload.groups) text += fmt::format("  groups: {}\n", path_text(*c.workload.groups));
  text += fmt::format("  dependencies: {}\n  streams: {}\n", word(dependency_policies(), c.workload.dependencies),
                      word(stream_policies(), c.workload.streams));
  text += fmt::format("  replay-only: {}\n  iterations: {}\n", c.executor.replay_only, c.executor.iterations);
  return text;
}

std::string partition_text(const partition::PartitionOptions& options) {
  return options.is_rank_map() ? path_text(options.parameter()) : options.text();
}

std::string run(const Configuration& c) {
  const auto& options = c.run;
  std::string text = fmt::format("run:\n  output: {}\n  force: {}\n", path_text(options.output), options.force);
  text += fmt::format("  partition: {}\n  fold: {}\n", partition_text(options.partition), options.fold);
  text += fmt::format("  timeline: {}\n  record-iterations: {}\n", c.executor.timeline, c.executor.record_iterations);
  text += fmt::format("  memory: {}\n", word(excess_policies(), options.memory));
  text += fmt::format("  progress: {}\n", word(progress_kinds(), options.progress));
  text += fmt::format("  progress-interval: {}\n", seconds_to_text(options.progress_interval_s));
  text += fmt::format("  quiet: {}\n  print-npus: {}\n", options.quiet, options.print_npus);
  text += fmt::format("  max-walltime: {}\n", seconds_to_text(options.max_walltime_s));
  text += fmt::format("  watchdog: {}\n", seconds_to_text(options.watchdog_s));
  return text;
}

/// Of `run` what decides whether there are results.
std::string what_is_told(const RunOptions& options) {
  if (options.memory == ExcessPolicy::error) return "";
  return fmt::format("run:\n  memory: {}\n", word(excess_policies(), options.memory));
}

}  // namespace

std::string in_quotes(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      result += fmt::format("\\{}", c);
    else if (static_cast<unsigned char>(c) < 0x20)
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      result += c;
  }
  return result + "\"";
}

std::string Configuration::to_yaml(bool with_run) const {
  return fmt::format("system:\n  rules: {}\n", name(rule_set)) + network(*this) + config::collectives(*this) +
         devices(*this) +
         fmt::format("perturbation:\n  noise: {}\n  noise-seed: {}\n", executor.compute_noise, executor.noise_seed) +
         to_text(perturbation) + config::workload(*this) + (with_run ? config::run(*this) : what_is_told(run));
}

}  // namespace orrery::config
