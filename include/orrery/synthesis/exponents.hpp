#pragma once

#include "orrery/synthesis/model.hpp"

namespace orrery::synthesis {

/// Learns how sizes change with the sizes of axes from a second set of traces of the same program: the exponents of
/// each slot along the one axis whose size differs. Throws Error (bad_input) if the sets differ in more than the size
/// of one axis and the sizes of nodes. O(slots).
void learn_exponents(Model& model, const Model& other);

}  // namespace orrery::synthesis
