#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>

namespace orrery {

/// What went wrong, as the exit code of the program (docs/user-guide.md).
enum class ErrorCode : int {
  internal = 1,
  usage = 2,
  bad_input = 3,
  stuck = 4,
  output = 5,
  interrupted = 75,
};

/// Returns a text of the input as messages quote it: at most 200 bytes, with a question mark for each control
/// character. Every message that quotes what a file holds quotes it so; Error does it for the names of its Place.
std::string cited(std::string_view text, std::size_t most = 200);

/// Where in the input a fault is, and what was expected there. Empty fields are left out of the message.
struct Place {
  std::string file = {};
  std::optional<std::uint64_t> line = {};         ///< counted from 1
  std::optional<std::uint64_t> byte_offset = {};  ///< from the start of the file (of the unpacked data if gzip)
  std::optional<std::uint32_t> npu = {};
  std::optional<std::uint64_t> node = {};  ///< the trace's own id
  std::string node_name = {};
  std::string key = {};  ///< key of a configuration, or an option with its "--"
};

/// The only exception that the program throws on purpose. Only `main` and `cli::run_job` catch it.
class Error : public std::exception {
 public:
  /// Makes the message. `found` says what is wrong; `expected` and `hint` (what to do) may be empty.
  Error(ErrorCode code, const Place& place, std::string_view found, std::string_view expected = {},
        std::string_view hint = {});
  Error(ErrorCode code, std::string_view message);

  ErrorCode code() const noexcept { return code_; }
  const Place& place() const noexcept { return place_; }
  /// Returns the message without the place.
  const std::string& text() const noexcept { return text_; }
  /// Returns one message: "FILE:LINE: NPU 3, node 17 'x' (byte 40): FOUND; expected EXPECTED. HINT"
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  ErrorCode code_;
  Place place_;
  std::string text_, message_;
};

/// A broken invariant of the program itself: throws Error (internal) with the place in the source. Always on.
inline void ensure(bool holds, std::string_view what, std::source_location where = std::source_location::current());

[[noreturn]] void ensure_failed(std::string_view what, std::source_location where);

inline void ensure(bool holds, std::string_view what, std::source_location where) {
  if (!holds) [[unlikely]]
    ensure_failed(what, where);
}

}  // namespace orrery
