#pragma once

#include <cstdint>
#include <string>

namespace orrery {

/// Returns the name of this machine.
std::string host_name();

/// Returns the largest resident memory that this process has had, in bytes, without that of the program that started
/// it.
std::uint64_t peak_memory();

}  // namespace orrery
