#pragma once

#include <memory>

#include "evaluation.hpp"
#include "orrery/collective/sliding_window.hpp"

namespace orrery::collective {

/// Evaluates direct with a sliding window, message by message, for messages of so many bytes. Cost of a run of a group
/// of n: O(messages * log messages) of all positions, but of one where all start together and delays depend on
/// distances alone.
std::unique_ptr<GroupEvaluator> evaluate_sliding(const SlidingWindow& window, Bytes bytes, const GroupContext& context);

}  // namespace orrery::collective
