#pragma once

#include <filesystem>
#include <string>

namespace orrery::results {

/// Returns whether a file begins as HDF5 files do. A file that cannot be read does not.
bool is_hdf5(const std::filesystem::path& path);

/// Returns a table of a user's HDF5 file as CSV: its columns are the one-dimensional datasets of the root, numbers or
/// texts, by name; missing numbers (NaN) are empty. Throws Error (bad_input) with the file and the dataset if it cannot
/// be read, if there is none, or if their lengths differ. O(values).
std::string columns_as_csv(const std::filesystem::path& path);

}  // namespace orrery::results
