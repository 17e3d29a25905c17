#pragma once

#include <hdf5.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace orrery::results {

/// What was written to an HDF5 file, as digests: once the file is closed, they say whether it holds all of that.
class Written {
 public:
  /// Notes rows of a dataset, at most `most_rows`, or an attribute of an object (named). The type is that of the values
  /// in memory: numbers or texts of variable length. It stays open until `verify` is done.
  void add(const std::string& object, const char* attribute, hid_t type, std::uint64_t first, std::uint64_t count,
           const void* values);

  /// Returns the first object whose values cannot be read from the file, or are others; empty if all are there. Cost
  /// O(values), in memory O(most_rows).
  std::string first_difference(const std::filesystem::path& path) const;

  static constexpr std::uint64_t most_rows = 1 << 20;

 private:
  struct Piece {
    std::string object, attribute;  // attribute is empty for rows of a dataset
    hid_t type;
    std::uint64_t first, count, digest;
  };
  static std::uint64_t digest(hid_t type, std::uint64_t count, const void* values);
  static bool is_in(hid_t file, const Piece& piece);

  std::vector<Piece> pieces_;
};

}  // namespace orrery::results
