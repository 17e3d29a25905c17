#include "random_configuration.hpp"

#include <array>
#include <map>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace orrery::study {
namespace {

using Words = std::vector<std::string>;

/// Takes a divisor of what is left of the NPUs.
std::uint64_t take(Draw& draw, std::uint64_t& left, std::uint64_t most) {
  std::vector<std::uint64_t> divisors;
  for (std::uint64_t size = 1; size <= std::min(left, most); ++size)
    if (left % size == 0) divisors.push_back(size);
  const std::uint64_t size = draw.of(divisors);
  left /= size;
  return size;
}

std::string network(Draw& draw, const std::vector<std::uint64_t>& sizes) {
  Words dimensions;
  for (const std::uint64_t size : sizes) {
    const std::string shape = draw.word({"Ring", "Switch", "Switch", "FullyConnected", "FullyConnected", "Mesh"});
    dimensions.push_back(fmt::format("{{shape: {}, size: {}, bandwidth: {} GB/s, latency: {} ns}}", shape, size,
                                     draw.word({"5", "50", "400"}), draw.word({"100", "1000", "20000"})));
  }
  return fmt::format("  network: {{dimensions: [{}]}}\n", fmt::join(dimensions, ", "));
}

std::string collectives(Draw& draw, std::size_t num_dimensions) {
  const auto algorithms = [&](const Words& names) {
    Words list;
    for (std::size_t d = 0; d < num_dimensions; ++d) list.push_back(draw.word(names));
    return fmt::format("[{}]", fmt::join(list, ", "));
  };
  std::map<std::string, std::string> keys = {{"chunks", draw.word({"1", "4"})}};
  if (draw.percent(60)) {
    keys["all-reduce"] = algorithms({"ring", "direct", "halvingDoubling", "doubleBinaryTree", "binomialTree"});
    keys["all-gather"] = algorithms({"ring", "direct", "halvingDoubling"});
    keys["reduce-scatter"] = algorithms({"ring", "direct", "halvingDoubling"});
    keys["all-to-all"] = algorithms({"ring", "direct", "direct2"});
  }
  if (draw.percent(20)) keys["endpoint-delay"] = "300 ns";
  if (draw.percent(20)) keys["compute-share"] = "0.1";
  if (draw.percent(20)) keys["active-chunks"] = "1";
  if (draw.percent(20)) keys["optimization"] = draw.word({"local-bandwidth-aware", "baseline"});
  std::string text;
  for (const auto& [key, value] : keys) text += fmt::format("    {}: {}\n", key, value);
  return "  collectives:\n" + text;
}

std::string model(Draw& draw, bool has_experts) {
  std::map<std::string, std::string> keys = {{"layers", draw.word({"4", "6", "8"})},
                                             {"hidden", draw.word({"256", "1024"})},
                                             {"heads", "8"},
                                             {"sequence", draw.word({"128", "1024"})},
                                             {"vocabulary", draw.word({"0", "1000", "32000"})},
                                             {"gated", draw.word({"true", "false"})},
                                             {"kv-heads", draw.word({"0", "0", "4"})},
                                             {"fused-attention", draw.word({"true", "false"})}};
  if (keys["vocabulary"] != "0") keys["tied-embeddings"] = draw.word({"true", "false"});
  if (has_experts) {
    keys["experts"] = "4";
    keys["top-k"] = draw.word({"1", "2"});
    if (draw.percent(30)) keys["dense-layers"] = "1";
    if (draw.percent(30)) keys["shared-experts"] = "1";
  }
  Words entries;
  for (const auto& [key, value] : keys) entries.push_back(fmt::format("{}: {}", key, value));
  return fmt::format("  model: {{{}}}\n", fmt::join(entries, ", "));
}

/// Adds what states there are, and when they move.
void add_sharding(Draw& draw, std::map<std::string, std::string>& keys, std::uint64_t dp) {
  keys["zero"] = draw.word({"0", "1", "2", "3"});
  keys["bucket"] = draw.word({"0 B", "1 MB", "auto"});
  keys["prefetch"] = draw.word({"0", "1", "2"});
  keys["bucket-buffers"] = draw.word({"0", "1", "2"});
  keys["overlap"] = draw.word({"true", "true", "false"});
  keys["norm-sums"] = draw.word({"true", "false"});
  keys["gradients"] = draw.word({"bf16", "fp32"});
  if (draw.percent(30)) keys["gather-before-forward"] = "true";
  if (keys["zero"] == "3" && draw.percent(40)) keys["exposed-share"] = "0.2";
  if (keys["zero"] == "3" && draw.percent(40)) keys["calls-of-layer"] = draw.word({"2", "5"});
  if (keys["zero"] == "3" && draw.percent(40)) keys["call-time-per-member"] = "3 us";
  if (keys["zero"] != "0" && dp % 2 == 0 && draw.percent(20)) keys["replicas"] = "2";
}

std::string parallel(Draw& draw, std::uint64_t npus, bool has_experts) {
  std::uint64_t left = npus;
  const std::uint64_t pp = take(draw, left, 4), tp = take(draw, left, 4),
                      cp = draw.percent(40) ? take(draw, left, 2) : 1, ep = has_experts ? take(draw, left, 4) : 1;
  const std::uint64_t micro_batches = draw.of<std::uint64_t>({1, 2, 3, 4, 4, 6, 8, 8});
  std::map<std::string, std::string> keys = {{"pp", std::to_string(pp)},
                                             {"tp", std::to_string(tp)},
                                             {"cp", std::to_string(cp)},
                                             {"ep", std::to_string(ep)},
                                             {"dp", std::to_string(left)},
                                             {"micro-batch", draw.word({"1", "1", "2"})},
                                             {"micro-batches", std::to_string(micro_batches)},
                                             {"recompute", draw.word({"none", "none", "selective", "full"})},
                                             {"detail", draw.word({"block", "operator"})},
                                             {"precision", draw.word({"bf16", "bf16", "fp32"})}};
  if (tp > 1) {
    keys["sp"] = draw.word({"true", "false"});
    if (draw.percent(30)) keys["tp-overlap"] = "0.5";
  }
  if (cp > 1) keys["cp-exchange"] = draw.word({"gather", "ring"});
  if (has_experts && draw.percent(30)) keys["expert-capacity"] = "1.25";
  if (has_experts && draw.percent(10)) keys["expert-imbalance"] = "0.3";
  if (draw.percent(40)) keys["placement"] = draw.word({"[tp, cp, ep, pp, dp]", "[dp, tp, cp, ep, pp]"});
  if (draw.percent(10)) keys["between-steps"] = "5 us";
  if (pp > 1) {
    keys["schedule"] = draw.word({"1f1b", "1f1b", "gpipe", "zb-h1", "zb-v", "dualpipe"});
    if (keys["schedule"] == "1f1b" && micro_batches % pp == 0 && draw.percent(50)) keys["interleaving"] = "2";
  }
  if (draw.percent(20)) keys["delayed-weight-gradients"] = "true";
  add_sharding(draw, keys, left);
  std::string text;
  for (const auto& [key, value] : keys) text += fmt::format("    {}: {}\n", key, value);
  return "  parallel:\n" + text;
}

}  // namespace

std::string random_configuration(Draw& draw) {
  const auto sizes =
      draw.of<std::vector<std::uint64_t>>({{8}, {4, 2}, {2, 4}, {16}, {4, 4}, {8, 2}, {2, 2, 4}, {12}, {4, 3}, {6, 4}});
  const std::uint64_t npus = std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{1}, std::multiplies<>());
  const bool has_experts = draw.percent(30);
  std::string text = "system:\n" + network(draw, sizes) + collectives(draw, sizes.size());
  text +=
      fmt::format("  compute: {{model: {}, peak: 100 TFLOPS, local-memory: {{bandwidth: {} GB/s, latency: {} ns}}}}\n",
                  draw.word({"roofline", "products"}), draw.word({"100", "2000"}), draw.word({"0", "200"}));
  if (draw.percent(10)) text += fmt::format("perturbation: {{noise: 0.2, noise-seed: {}}}\n", draw.below(100));
  return text + "workload:\n" + model(draw, has_experts) + parallel(draw, npus, has_experts);
}

}  // namespace orrery::study
