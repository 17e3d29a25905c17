#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "orrery/base/quantity.hpp"
#include "orrery/serving/options.hpp"
#include "orrery/serving/request_source.hpp"
#include "orrery/serving/simulate.hpp"
#include "orrery/serving/step_options.hpp"
#include "orrery/workload/transformer.hpp"

namespace orrery::serving {

/// All that `serving:` of a configuration says.
struct Description {
  std::optional<workload::Transformer> model;
  FormatName weights, kv;
  std::uint64_t kv_bytes_per_token = 0;  ///< bytes of the whole model; 0: by the model
  Bytes memory = Bytes(0);               ///< memory of an NPU; 0: not known
  std::uint64_t weight_bytes = 0;        ///< bytes of the whole model; 0: by its parameters
  RequestSource requests;
  RouterOptions router;
  SchedulerOptions scheduler;  ///< defaults of instances
  std::vector<InstanceOptions> instances;
  TransferOptions transfer;
  StepOptions step;
  Time front_end;
  Slo slo;
  Window measure;
  bool record_requests = true, record_steps = false;
  std::uint32_t seed = 1;
};

/// Returns the bytes of keys and values of a token in all layers.
std::uint64_t kv_bytes_per_token(const workload::Transformer& model, double bytes_per_value);
/// Returns the blocks of a scheduler: the rest of the share of the memory of its NPUs, less the null block.
/// Throws Error (bad_input) if there is none.
std::uint32_t kv_blocks(const Description& description, const InstanceOptions& instance);

/// Reads or makes the requests and spells the instances out. Throws all faults as one Error (bad_input). Not
/// collective; O(requests).
Scenario make_scenario(const Description& description);

}  // namespace orrery::serving
