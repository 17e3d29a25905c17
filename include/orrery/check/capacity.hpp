#pragma once

#include "orrery/base/error.hpp"
#include "orrery/model/rank_model.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/trace/store.hpp"

namespace orrery::check {

/// What is wrong with an NPU that has no room for the tensors which are there before its first node; `size`: of its
/// local memory.
Error initial_excess(const npu::NpuSpec& npu, const trace::Store& store, Bytes size);

/// Throws Error (bad_input) on all ranks if an NPU has exceeded its local memory: of the earliest such moment, of equal
/// ones that of the lowest NPU. Collective.
void require_capacity(const model::RankModel& model, const trace::Store& store, parallel::Communicator& world);

}  // namespace orrery::check
