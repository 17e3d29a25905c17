#pragma once

#include <string_view>

namespace orrery {

/// Returns "0.1.0".
std::string_view version();

/// Returns the commit that was built, with "-dirty" after it if the source differed from it; "unknown" outside a
/// repository. Taken when CMake configures.
std::string_view revision();

}  // namespace orrery
