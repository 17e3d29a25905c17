#pragma once

#include <cstdint>
#include <memory>

#include "algorithm.hpp"

namespace orrery::collective {

/// Makes what carries out a phase by its custom collective, which must outlive it.
std::shared_ptr<const PhaseAlgorithm> make_custom_phase(const PhaseShape& shape, std::uint32_t size,
                                                        const Rules& rules);

}  // namespace orrery::collective
