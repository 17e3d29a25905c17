#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "orrery/base/registry.hpp"

namespace orrery::collective {

/// Kernels that bring tokens to experts on other NPUs and their results back. A server is a node: the NPUs that fast
/// links join. Sources: src/collective/expert_exchange.cpp.
struct ExpertKernels {
  std::string_view name;          ///< "deepep-v1"
  std::string_view help;          ///< one line
  double link_share = 0;          ///< share of the links in a server that transfers reach
  double nic_share = 0;           ///< share of the NIC that transfers reach
  double latency = 0;             ///< seconds, over several servers
  double latency_in_server = 0;   ///< seconds, within one server
  std::uint32_t sms = 0;          ///< streaming multiprocessors that they take; 0: none
  double sm_rate = 0;             ///< bytes per second that each of these sends over links; 0: no limit
  double sm_forwarding_rate = 0;  ///< bytes per second that each of these hands on to NPUs of its server; 0: no limit
  /// A server gets a token once and forwards it to its NPUs, each of which gets it once; otherwise each expert gets a
  /// copy from the sender.
  bool sends_once = true;

  static std::span<const ExpertKernels* const> registry();
};
using ExpertKernelsName = Registered<ExpertKernels>;

/// How tokens reach their experts.
struct ExpertOptions {
  ExpertKernelsName kernels;
  std::uint32_t top_k = 1;           ///< experts of a token
  std::uint32_t servers = 0;         ///< most servers that a token is sent to; 0: any number
  std::optional<double> sm_share{};  ///< share of an NPU's compute units that an exchange takes; none: as `kernels` say

  friend bool operator==(const ExpertOptions&, const ExpertOptions&) = default;
};

/// The NPUs among which experts are divided, as the kernels see them.
struct ExpertGroup {
  std::uint32_t ranks = 1, servers = 1;
  double link = 0;  ///< bytes per second that an NPU sends to others of its server
  double nic = 0;   ///< bytes per second that an NPU sends to other servers
};

/// How many servers and NPUs get a token on the mean, the sender's own among them.
struct ExpertCopies {
  double servers = 0, npus = 0;
};
/// Returns these for experts that are drawn evenly from a random set of `limit` servers; 0: from all.
ExpertCopies expert_copies(const ExpertGroup& group, std::uint32_t top_k, std::uint32_t limit);

/// What an exchange takes, and what an NPU sends.
struct ExpertTime {
  double seconds = 0;
  double nic_bytes = 0, link_bytes = 0;
  ExpertCopies copies;
  std::string_view bound;  ///< "NIC", "links in the node", "SMs"
};
/// Returns what a dispatch or a combine takes from when its last member is ready. `bytes`: all tokens of an NPU, each
/// once.
ExpertTime expert_exchange(const ExpertOptions& options, const ExpertGroup& group, double bytes);

}  // namespace orrery::collective
