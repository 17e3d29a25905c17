#pragma once

#include <string>

namespace orrery {

/// Name of this machine.
std::string host_name();

}  // namespace orrery
