#pragma once

#include <cstdint>
#include <string>

namespace orrery {

/// Returns the name of this machine.
std::string host_name();

/// Returns the largest resident memory that this process has had, in bytes, without that of the program that started
/// it.
std::uint64_t peak_memory();

/// Returns the seconds for which the calling thread has run on a processor. Cost 0.3 us.
double cpu_time();

}  // namespace orrery
