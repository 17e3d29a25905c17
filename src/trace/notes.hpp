#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::trace {

/// What a file gives cause to say, kept so that it is said again for every NPU that reads the same file.
struct Notes {
  struct Note {
    std::string_view kind;  ///< a literal
    std::string text;
    std::uint64_t count = 1;
  };

  /// The first text of a kind is kept; the counts add up.
  void add(std::string_view kind, std::string_view text, std::uint64_t count = 1) {
    for (Note& note : all)
      if (note.kind == kind) {
        note.count += count;
        return;
      }
    all.push_back({kind, std::string(text), count});
  }

  std::vector<Note> all;
};

}  // namespace orrery::trace
