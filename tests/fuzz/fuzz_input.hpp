#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ios>
#include <string>
#include <string_view>

#include "orrery/base/error.hpp"
#include "temporary_folder.hpp"

namespace orrery::fuzz {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Ends the program with a message, which libFuzzer takes for a crash.
[[noreturn]] inline void fail(const std::string& what) {
  std::fprintf(stderr, "fuzz: %s\n", what.c_str());
  std::abort();
}

/// Runs what reads the input. The input may be refused: an Error of the code bad_input, or of another one that is
/// given. Any other exception is a crash, also std::bad_alloc and a broken invariant. Returns whether the input was
/// accepted.
template <class Read>
bool accepts(Read read, ErrorCode refused = ErrorCode::bad_input) {
  try {
    read();
    return true;
  } catch (const Error& error) {
    if (error.code() != refused) fail(std::string("another code than that of refused input: ") + error.what());
    return false;
  }
}

/// Takes the text up to a line `===`, or all of it, off an input that consists of several files.
inline std::string_view take_file(std::string_view& rest) {
  constexpr std::string_view separator = "\n===\n";
  const std::size_t end = rest.find(separator);
  const std::string_view file = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + separator.size());
  return file;
}

/// Writes the bytes to a file of this name in a folder of this process (TMPDIR), and returns its path. A later call
/// with the same name replaces the file.
inline std::filesystem::path write_input(std::string_view bytes, const std::string& name) {
  static const test::TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / name;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file.flush()) fail("cannot write " + path.string());
  return path;
}

}  // namespace orrery::fuzz
