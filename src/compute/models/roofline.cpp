#include <algorithm>
#include <array>
#include <tuple>

#include "orrery/base/error.hpp"
#include "orrery/compute/options.hpp"

namespace orrery::compute {
namespace {

/// What a node moves in a level of memory.
struct Passage {
  double bytes;
  Bandwidth bandwidth;
  double latency_ns;
};

/// The roofline (Williams et al., CACM 52(4), 2009), with a ceiling for each level of memory (hierarchical roofline:
/// Yang et al., arXiv 2009.05257). A node takes
///
///   num_ops / min(peak, bandwidth of each level * num_ops / bytes that pass it) + the largest latency of these levels
///
/// All bytes pass the cache, if there is one. The bytes of a node that moves more than the cache holds also pass the
/// expanded memory, their share of them, or the local one. A node without operations moves its bytes only. A node
/// without bytes takes num_ops / peak, or no time (Options::ignore_nodes_without_bytes).
class Roofline final : public ComputeModel {
 public:
  explicit Roofline(const Options& options) : options_(options) {}

  Time duration(const ComputeNode& node) const override {
    const bool moves_nothing = node.tensor_size == Bytes(0);
    if (moves_nothing && (options_.ignore_nodes_without_bytes || node.num_ops == 0)) return Time::zero();
    const double ops = static_cast<double>(node.num_ops);
    double rate = options_.efficiency * options_.peak_flops;  // FLOPs per second
    double moving = 0;                                        // seconds
    double latency_ns = moves_nothing ? options_.local_memory_latency_ns : 0;
    for (const auto& [bytes, bandwidth, level_latency_ns] : passages(node.tensor_size)) {
      if (bytes == 0) continue;
      const double speed = bandwidth.bytes_per_ns() * 1e9;  // bytes per second
      rate = std::min(speed * (ops / bytes), rate);         // in this order: exact under astra-sim rules
      moving = std::max(bytes / speed, moving);
      latency_ns = std::max(level_latency_ns, latency_ns);
    }
    const double seconds = node.num_ops == 0 ? moving : ops / rate;
    return duration_from_ns(latency_ns + seconds * 1e9, options_.rounding);
  }

 private:
  /// Returns what passes each level. No bytes pass a level that the node does not use.
  std::array<Passage, 3> passages(Bytes tensor_size) const {
    const auto& [cache, expanded] = std::tie(options_.cache, options_.expanded);
    const double bytes = static_cast<double>(tensor_size.count());
    const double beyond = tensor_size <= cache.size ? 0 : bytes;
    return {{{beyond * (1 - expanded.share), options_.local_memory, options_.local_memory_latency_ns},
             {beyond * expanded.share, expanded.bandwidth, expanded.latency_ns},
             {cache.size > Bytes(0) ? bytes : 0, cache.bandwidth, cache.latency_ns}}};
  }

  const Options& options_;
};

void require_performance(const Options& options) {
  if (!(options.peak_flops > 0))
    throw Error(ErrorCode::bad_input, {.key = "peak-perf"}, "the roofline needs the peak performance",
                "a positive number", "Set it, or turn the roofline off to use recorded durations.");
  if (!(options.local_memory.bytes_per_ns() > 0))
    throw Error(ErrorCode::bad_input, {.key = "local-mem-bw"}, "the roofline needs the local memory bandwidth",
                "a positive number", "Set it, or turn the roofline off to use recorded durations.");
  const auto faster = [](Bandwidth one, Bandwidth other) { return one.bytes_per_ns() > other.bytes_per_ns(); };
  if (options.cache.size > Bytes(0) && !faster(options.cache.bandwidth, options.local_memory))
    throw Error(ErrorCode::bad_input, {.key = "system.compute.cache.bandwidth"},
                "the cache is not faster than the local memory", "more than system.compute.local-memory.bandwidth");
  if (options.expanded.share > 0 && !(options.expanded.bandwidth.bytes_per_ns() > 0))
    throw Error(ErrorCode::bad_input, {.key = "system.compute.expanded-memory.bandwidth"}, "there is none",
                "a positive number");
}

}  // namespace

extern const ModelType roofline_model;
constinit const ModelType roofline_model{
    .name = "roofline",
    .help = "a node takes what the peak performance and the bandwidths of memory allow for its operations and bytes",
    .uses_operations = true,
    .validate = require_performance,
    .make = [](const Options& options) -> std::unique_ptr<const ComputeModel> {
      return std::make_unique<Roofline>(options);
    },
};

}  // namespace orrery::compute
