#pragma once

#include <string>

namespace orrery {

/// Returns the name of this machine.
std::string host_name();

}  // namespace orrery
