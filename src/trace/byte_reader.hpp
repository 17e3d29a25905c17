#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "orrery/base/error.hpp"

namespace orrery::trace {

/// The bytes of a file, unpacked if it is gzip (first bytes 1f 8b). Holds the file open as long as it lives.
class ByteReader {
 public:
  /// `place` is where messages say that a fault is. Throws Error (bad_input) if the file cannot be read.
  ByteReader(const std::filesystem::path& path, Place place);
  ~ByteReader();
  ByteReader(ByteReader&&) = delete;

  /// Fills as much of `to` as there is; fewer only at the end. Throws Error (bad_input) if reading or unpacking fails.
  std::size_t read(std::span<std::uint8_t> to);
  /// How many bytes there are, 0 if only reading will tell.
  std::uint64_t size() const { return inflater_ ? 0 : size_; }
  /// Back to the first byte.
  void rewind();

 private:
  struct Inflater;
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  std::size_t read_raw(std::span<std::uint8_t> to);
  std::size_t inflate_some(std::span<std::uint8_t> to);
  [[noreturn]] void fail(std::string_view found, std::string_view expected = {}) const;

  Place place_;
  std::uint64_t size_ = 0;  ///< of the file
  std::unique_ptr<std::FILE, Close> file_;
  std::unique_ptr<Inflater> inflater_;  ///< null if the file is not packed
};

}  // namespace orrery::trace
