#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace orrery::test {

/// Returns a digest of each dataset, and of each group with attributes, of an HDF5 file, by its path. A digest covers
/// the type, the shape, the values and the attributes. Left out: /kernel, which depends on the ranks, the attributes of
/// the file, and references between objects. Throws std::runtime_error if the file cannot be read.
std::map<std::string, std::string> result_digests(const std::filesystem::path& file);

}  // namespace orrery::test
