#pragma once

#include <filesystem>
#include <system_error>

namespace orrery::results {

// Behind what HDF5 knows of, a results file ends with a seal of 24 bytes: the text "ORRERYh5", the number of bytes
// before the seal and their CRC-32, both of 64 bits, little-endian. HDF5 ignores it. Programs that change the file drop
// it.

/// Appends the seal to a file. Returns why that failed; no error if it did not. O(bytes of the file).
std::error_code seal(const std::filesystem::path& path);

/// Returns whether a file ends with a seal that does not fit the bytes before it, or with other bytes in its place.
/// O(bytes of the file).
bool has_broken_seal(const std::filesystem::path& path);

}  // namespace orrery::results
