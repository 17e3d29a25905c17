#pragma once

#include <hdf5.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "orrery/parallel/lead.hpp"

namespace orrery::results {

/// Returns how many seconds a slow disk may take for a file of so many bytes, beyond what any file may take.
constexpr std::uint32_t seconds_for(std::uintmax_t bytes) {
  return static_cast<std::uint32_t>(std::min<std::uintmax_t>(bytes / 10'000'000, 1'000'000));
}

/// What was written to an HDF5 file, as digests: once the file is closed, they say whether it holds all of that.
class Written {
 public:
  /// Notes rows of a dataset, at most `most_rows`, or an attribute of an object (named). The type is that of the values
  /// in memory: numbers or texts of variable length. It stays open until `verify` is done.
  void add(const std::string& object, const char* attribute, hid_t type, std::uint64_t first, std::uint64_t count,
           const void* values);

  /// Returns the first object whose values cannot be read from the file, or are others; empty if all are there. Calls
  /// `give_sign` for each piece. Cost O(values + pieces log pieces), in memory O(most_rows).
  std::string first_difference(const std::filesystem::path& path, const parallel::GivesSigns& give_sign) const;

  static constexpr std::uint64_t most_rows = 1 << 20;

 private:
  struct Piece {
    std::string object, attribute;  // attribute is empty for rows of a dataset
    hid_t type;
    std::uint64_t first, count, digest;
  };
  static std::uint64_t digest(hid_t type, std::uint64_t count, const void* values);
  static bool is_in(hid_t object, hid_t transfer, const Piece& piece);

  std::vector<Piece> pieces_;
};

}  // namespace orrery::results
