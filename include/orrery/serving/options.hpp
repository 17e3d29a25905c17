#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/base/quantity.hpp"
#include "orrery/base/time.hpp"
#include "orrery/serving/policy.hpp"

namespace orrery::serving {

/// The part of a request that an instance computes.
enum class Role : std::uint8_t { both, prefill, decode };

/// The rules by which an instance picks the tokens of a step.
struct SchedulerOptions {
  std::uint32_t max_seqs = 128;     ///< most requests in a step
  std::uint32_t max_tokens = 2048;  ///< most tokens in a step
  std::uint32_t block = 16;         ///< tokens of a KV block
  bool prefix_cache = true;         ///< full blocks are found by later requests
  bool ahead = true;                ///< the next step is scheduled while one runs
  bool reserve_full = true;         ///< a prompt is admitted only if all of it has room
  std::uint32_t long_prefill = 0;   ///< most tokens of a chunk; 0: no limit
  std::uint32_t watermark = 0;      ///< blocks that an admission leaves free while others run
  std::uint32_t max_length = 0;     ///< most tokens of a prompt with its output; 0: no limit
};

/// How the NPUs of an instance divide the model.
struct InstanceParallel {
  std::uint32_t tp = 1, pp = 1, dp = 1, ep = 1;

  std::uint32_t npus() const { return tp * pp * dp; }
};

/// An entry of serving.instances: `count` equal instances.
struct InstanceOptions {
  std::string name;
  std::uint32_t count = 1;
  Role role = Role::both;
  InstanceParallel parallel;
  std::uint32_t kv_blocks = 0;                     ///< usable blocks of each scheduler; 0: by memory
  double memory_share = 0.9;                       ///< share of the memory that weights, reserve and blocks have
  Bytes reserve = Bytes(std::uint64_t{2} << 30U);  ///< bytes of each NPU for activations and recorded graphs
  SchedulerOptions scheduler;
  std::vector<NpuId> npus = {};  ///< NPUs of the system that they take, one instance after the other; empty: free ones
};

/// The way of KV transfers: over ports of their own, where a message waits until its sender and its receiver are free;
/// or over the network of the system.
struct TransferOptions {
  bool over_network = false;
  Bandwidth bandwidth = Bandwidth::from_bytes_per_ns(50);
  Time latency = Time::from_ns(5000);  ///< time of a port; over the network: from asking for a transfer to its start
  bool by_layer = false;               ///< a layer is sent when the prefill has computed it
};

struct RouterOptions {
  PolicyName policy;
  Time dispatch = Time::from_ns(50'000);  ///< from the router's decision to the instance
  Time report = Time::from_ns(50'000);    ///< from the end of a step to the router
};

/// The bounds that a request should meet. Time::max(): none.
struct Slo {
  Time ttft = Time::max(), tpot = Time::max();
  double share = 0.9;

  bool any() const { return ttft != Time::max() || tpot != Time::max(); }
};

/// The requests whose arrival lies in it count for metrics.
struct Window {
  Time from = Time::zero(), to = Time::max();

  bool holds(Time time) const { return from <= time && time < to; }
};

/// How the instances are driven.
struct Options {
  RouterOptions router;
  TransferOptions transfer;
  bool record_steps = false;
  std::uint64_t seed = 1;
  Window measure = {};  ///< arrivals of the requests whose gaps between tokens count
};

}  // namespace orrery::serving
