#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace orrery {

/// Warnings about the input that are said once, however many NPUs give cause: a text per kind, the first place, a
/// count.
class Notices {
 public:
  struct Entry {
    std::string text;  ///< of the lowest NPU that gave cause
    std::uint32_t npu = 0;
    std::uint64_t count = 0;  ///< how often
  };

  /// `kind` groups what is to be said once; the text of the lowest NPU is kept.
  void add(std::string_view kind, std::uint32_t npu, std::string_view text, std::uint64_t count = 1);
  void merge(const Notices& other);
  const std::map<std::string, Entry, std::less<>>& entries() const { return entries_; }

 private:
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace orrery
