#pragma once

#include <cstdint>
#include <span>

#include "layer.hpp"
#include "orrery/trace/builder.hpp"
#include "orrery/workload/description.hpp"

namespace orrery::workload {

/// Throws Error (bad_input), which names the key of CONFIG.yaml, for what a step of inference does not have.
void require_possible_inference(const Description& description);

/// Returns the step of a request in which a token is made: a prefill, or decoding with the tokens before it.
Description step_of_token(const Description& request, std::uint64_t token);
/// Returns a step whose memory is what a workload of inference needs at most: of a request the one after the last.
Description largest_step(const Description& description);

/// Lists with a node what the NPU's memory holds throughout a step of inference: the parameters of these layers, and
/// the keys and values of all sequences.
void list_inference_memory(const Parallel& parallel, std::span<const Layer* const> layers, trace::Builder& builder,
                           NodeId node);

}  // namespace orrery::workload
