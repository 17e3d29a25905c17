#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

#include "orrery/base/error.hpp"
#include "orrery/trace/store.hpp"
#include "source.hpp"

namespace orrery::trace {

/// The bytes of a trace file from the first to the last, unpacked if the file is gzip (first bytes 1f 8b), and
/// without the mark of UTF-8 before a text. Holds the file open as long as it lives, and its first 256 KiB at most in
/// memory.
class TraceFile {
 public:
  /// Opens the file. `source.file` names it in messages. `while_reading` is told after each piece how many bytes of the
  /// file were read, packed as they are, and how many it has; what it throws ends the reading. Throws Error (bad_input)
  /// if it is not a regular file or cannot be read.
  TraceFile(const std::filesystem::path& path, Source source, WhileReading while_reading = {});
  ~TraceFile();
  TraceFile(TraceFile&&) = delete;

  const std::filesystem::path& path() const { return path_; }
  const Source& source() const { return source_; }
  Place place() const { return source_.place(); }
  /// Returns the first bytes, unpacked: all of them, or the first 256 KiB of a larger file. Valid as long as the file.
  std::string_view beginning() const { return beginning_; }
  /// Returns the number of bytes of the file, or 0 if only reading will tell.
  std::uint64_t size() const { return inflater_ ? 0 : size_; }

  /// Fills `to` with the next bytes, the first call with those of `beginning`. Returns how many there were: fewer than
  /// asked for only at the end. Throws Error (bad_input) if reading or unpacking fails.
  std::size_t read(std::span<std::uint8_t> to);

  /// Returns a digest of the bytes of the file that were read, packed as they are: of all once `read` is at the end.
  std::uint64_t digest() const { return raw_bytes_ << 32U | checksum_; }

 private:
  struct Inflater;
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  void open();
  std::size_t read_on(std::span<std::uint8_t> to);
  std::size_t read_raw(std::span<std::uint8_t> to);
  std::size_t inflate_some(std::span<std::uint8_t> to);
  [[noreturn]] void fail(std::string_view found, std::string_view expected = {}) const;

  std::filesystem::path path_;
  Source source_;
  WhileReading while_reading_;
  std::uint64_t size_ = 0;  ///< size of the file
  std::unique_ptr<std::FILE, Close> file_;
  std::unique_ptr<Inflater> inflater_;  ///< null if the file is not packed
  std::unique_ptr<std::uint8_t[]> first_bytes_;
  std::string_view beginning_;   ///< contents of `first_bytes_`
  std::size_t given_ = 0;        ///< how many bytes of `beginning_` were given
  std::uint64_t raw_bytes_ = 0;  ///< bytes that were read
  std::uint32_t checksum_ = 0;   ///< checksum of these bytes
};

}  // namespace orrery::trace
