#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "orrery/base/output_file.hpp"

namespace orrery {

/// A text file that is written piece by piece under a temporary name and then renamed. It is compressed by gzip if its
/// name ends in .gz. Functions throw Error (output) that names the file.
class TextOutput {
 public:
  explicit TextOutput(const std::filesystem::path& path);
  ~TextOutput();
  TextOutput(const TextOutput&) = delete;
  TextOutput& operator=(const TextOutput&) = delete;

  void write(std::string_view text);
  /// Writes what is left and renames the file. Nothing may be called after it.
  void commit();

 private:
  struct Stream;

  void flush();
  [[noreturn]] void fail(std::string_view doing) const;

  std::filesystem::path path_;
  PartialFile partial_;  // outlives the stream
  std::unique_ptr<Stream> stream_;
  std::string buffer_;
};

}  // namespace orrery
