#pragma once

#include <string_view>

#include "orrery/base/error.hpp"
#include "orrery/base/quantity.hpp"
#include "orrery/memory/lifetimes.hpp"
#include "orrery/npu/spec.hpp"
#include "orrery/trace/store.hpp"

namespace orrery::check {

/// Returns the error of an NPU whose tensors need `usage` bytes where the local memory has `size`. `which` says which
/// tensors: "at 3 us the tensors". `tensors` are those that are there; the largest are named.
Error excess(const npu::NpuSpec& npu, std::string_view which, Bytes usage, Bytes size, const memory::Residents& tensors,
             const trace::Store& store);

/// Says whether an error is of tensors that do not fit into the local memory.
bool is_excess(const Error& error);

}  // namespace orrery::check
