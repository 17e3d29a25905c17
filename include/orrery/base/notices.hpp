#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace orrery {

/// Collects warnings about the input. Each kind of warning is reported once, however many NPUs cause it: with the text
/// of the lowest of these NPUs and the number of occurrences.
class Notices {
 public:
  struct Entry {
    std::string text;         ///< text of the lowest NPU that caused the warning
    std::uint32_t npu = 0;    ///< number of that NPU; 0 where no NPU was given
    std::uint64_t count = 0;  ///< occurrences
  };

  /// Adds `count` occurrences at one NPU. `kind` groups the warnings that are reported together. The text of the lowest
  /// NPU is kept; of equal NPUs the first text. O(log kinds).
  void add(std::string_view kind, std::uint32_t npu, std::string_view text, std::uint64_t count = 1);
  /// Adds `count` occurrences in a file that any NPU may read. `merge_for` gives them their NPU.
  void add(std::string_view kind, std::string_view text, std::uint64_t count = 1);
  /// Adds all entries of `other`. The order in which collections are merged does not matter.
  void merge(const Notices& other);
  /// Adds all entries of `of_file` as occurrences at `npu`.
  void merge_for(std::uint32_t npu, const Notices& of_file);
  /// Returns the entries by kind.
  const std::map<std::string, Entry, std::less<>>& entries() const { return entries_; }

 private:
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace orrery
