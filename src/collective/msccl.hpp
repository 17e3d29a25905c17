#pragma once

#include "custom_collective_builder.hpp"
#include "orrery/collective/msccl.hpp"

namespace orrery::collective {

/// Carries out the steps in this order, with symbols in place of data. Throws Error (bad_input) for a step that uses
/// what no step has written, and for a member that ends without its result. Tells `moved`, if any, what each operation
/// moves. `of_operation`: [operations] rank and index of the step. Cost O(chunks moved + buffers).
void follow_data(const Msccl& algorithm, const std::vector<std::pair<std::uint32_t, std::uint32_t>>& of_operation,
                 const std::vector<std::uint32_t>& order, CustomCollectiveBuilder* moved,
                 const CustomCollectiveBuilder& builder);

}  // namespace orrery::collective
