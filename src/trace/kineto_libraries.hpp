#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "kineto_arguments.hpp"
#include "orrery/trace/graph.hpp"

namespace orrery::trace {

// Collectives of other libraries than NCCL: PyTorch's symmetric memory, vLLM, SGLang, TensorRT-LLM and others launch
// kernels of their own, which say nothing beyond their names. The operator around the launch lists its inputs.

/// Returns the collective that the name of an operator or of a kernel tells: "symm_mem::multimem_all_reduce_",
/// "void vllm::cross_device_reduce_1stage<half, 2>(...)". Names of kernels that a compiler made are not looked at,
/// because they list the operators that it fused.
std::optional<CollectiveKind> library_collective(std::string_view name);

/// Says whether a kernel, which is none of NCCL, communicates by its name, also where the name tells no collective.
bool is_library_kernel(std::string_view name);

/// Returns the number of members that a kernel has as its second template argument; nothing if it has none there.
std::optional<std::uint64_t> members_of_kernel(std::string_view name);

/// Makes the record of a collective from the operator's inputs: the bytes of the first tensor and, for symmetric
/// memory, the name of the group.
CommunicationRecord library_record(std::string_view name, const KinetoArguments& all);

}  // namespace orrery::trace
