#pragma once

#include <filesystem>

namespace orrery::results {

/// The name "<path>.partial.<pid>" beside a file that is being written. The file is removed with this object unless it
/// was moved to its place, so that a failure leaves nothing behind and an older file as it was.
class PartialFile {
 public:
  explicit PartialFile(std::filesystem::path path);
  ~PartialFile();
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  const std::filesystem::path& partial() const { return partial_; }

  /// Creates the file empty, to see whether that is possible, and removes it. Throws Error (output).
  void probe();
  /// Waits until the contents are on the disk, and renames: readers see the old file or the new one, whole.
  /// Throws Error (output).
  void commit();

 private:
  std::filesystem::path path_, partial_;
  bool committed_ = false;
};

}  // namespace orrery::results
