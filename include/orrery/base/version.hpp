#pragma once

#include <string>
#include <string_view>

namespace orrery {

/// Returns the version, such as "0.2.0".
std::string_view version();

/// Returns the commit that was built, with "-dirty" after it if the source differed from it; "unknown" outside a
/// repository. Taken when CMake configures.
std::string_view revision();

/// Returns the build ID that the linker has given this program, in hexadecimal: a digest of its contents. Empty if it
/// has none. Two programs of one revision may differ, for example by changes that were not committed.
std::string build_id();

/// Returns what tells this program from all others: version, revision and build ID.
std::string program();

}  // namespace orrery
