#include "orrery/collective/expert_exchange.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace orrery::collective {
namespace {

// Fitted to the tables of deepseek-ai/DeepEP at 0297fc8 (docs/legacy.md and README.md: H800 and other GPUs of its
// generation, groups of 8 to 256). They leave errors of 4.0 % (V1), 3.6 % (V2) and 2.9 % (low latency) on the mean.

constinit const ExpertKernels deepep_v1{.name = "deepep-v1",
                                        .help = "DeepEP's kernels for training and prefill, version 1",
                                        .link_share = 0.67,
                                        .nic_share = 0.88,
                                        .latency = 60e-6,
                                        .latency_in_server = 60e-6,
                                        .sms = 24,
                                        .sm_rate = 14e9,
                                        .sm_forwarding_rate = 8.5e9};
constinit const ExpertKernels deepep_v2{.name = "deepep-v2",
                                        .help = "DeepEP's kernels for training and prefill, version 2",
                                        .link_share = 0.67,
                                        .nic_share = 0.91,
                                        .latency = 30e-6,
                                        .latency_in_server = 30e-6,
                                        .sms = 24,
                                        .sm_rate = 30e9,
                                        .sm_forwarding_rate = 30e9};
constinit const ExpertKernels deepep_low_latency{.name = "deepep-low-latency",
                                                 .help = "DeepEP's kernels for decoding, which take no SMs",
                                                 .link_share = 0.67,
                                                 .nic_share = 0.93,
                                                 .latency = 35e-6,
                                                 .latency_in_server = 26e-6,
                                                 .sends_once = false};
// Sends and receives of NCCL without kernels of experts; its shares are those of its all-to-all.
constinit const ExpertKernels nccl_all_to_all{.name = "nccl-all-to-all",
                                              .help = "NCCL's sends and receives, a copy for each expert",
                                              .link_share = 0.75,
                                              .nic_share = 0.85,
                                              .latency = 20e-6,
                                              .latency_in_server = 20e-6,
                                              .sms = 24,
                                              .sends_once = false};

/// Returns how many of `among` are drawn at least once in `draws` draws.
double different(double among, double draws) { return among * (1 - std::pow(1 - 1 / among, draws)); }

double limited(double rate, const ExpertKernels& kernels, double rate_of_sm) {
  return kernels.sms > 0 && rate_of_sm > 0 ? std::min(rate, kernels.sms * rate_of_sm) : rate;
}

}  // namespace

std::span<const ExpertKernels* const> ExpertKernels::registry() {
  static constexpr const ExpertKernels* all[] = {&deepep_v1, &deepep_v2, &deepep_low_latency, &nccl_all_to_all};
  return all;
}

ExpertCopies expert_copies(const ExpertGroup& group, std::uint32_t top_k, std::uint32_t limit) {
  const double servers = limit > 0 ? std::min(limit, group.servers) : group.servers;
  const double npus_of_server = static_cast<double>(group.ranks) / group.servers;
  return {different(servers, top_k), different(servers * npus_of_server, top_k)};
}

ExpertTime expert_exchange(const ExpertOptions& options, const ExpertGroup& group, double bytes) {
  const ExpertKernels& kernels = *options.kernels;
  const double ranks = group.ranks, servers = group.servers, npus = ranks / servers;
  ExpertTime result;
  result.copies = expert_copies(group, options.top_k, options.servers);
  if (kernels.sends_once) {
    result.nic_bytes = bytes * result.copies.servers * (servers - 1) / servers;
    result.link_bytes = bytes * result.copies.npus * (npus - 1) / npus;
  } else {
    result.nic_bytes = bytes * options.top_k * (ranks - npus) / ranks;
    result.link_bytes = bytes * options.top_k * (npus - 1) / ranks;
  }
  result.bound = "links in the node";
  const double link = limited(kernels.link_share * group.link, kernels, kernels.sm_rate);
  double moving = result.link_bytes > 0 ? result.link_bytes / link : 0;
  const auto take = [&](std::string_view resource, double seconds) {
    if (seconds > moving) {
      moving = seconds;
      result.bound = resource;
    }
  };
  if (group.servers > 1) {
    take("NIC", result.nic_bytes / (kernels.nic_share * group.nic));
    const double forwarding = limited(std::numeric_limits<double>::infinity(), kernels, kernels.sm_forwarding_rate);
    if (kernels.sends_once) take("SMs", bytes * result.copies.npus / forwarding);
  }
  result.seconds = (group.servers > 1 ? kernels.latency : kernels.latency_in_server) + moving;
  return result;
}

}  // namespace orrery::collective
