#pragma once

#include <cstdint>
#include <memory>
#include <random>

#include "orrery/collective/custom_collective.hpp"

namespace orrery::collective::test {

/// Any number of these, both included.
std::uint64_t draw(std::mt19937_64& random, std::uint64_t low, std::uint64_t high);

/// A custom collective of 1 to 40 messages and works between `positions`, with any dependencies; sizes in bytes.
std::shared_ptr<const CustomCollective> random_custom_collective(std::mt19937_64& random, std::uint32_t positions);

}  // namespace orrery::collective::test
