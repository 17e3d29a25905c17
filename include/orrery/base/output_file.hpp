#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

namespace orrery {

/// Returns what the symbolic links at `path` lead to, whether it is there or not. Throws Error (output).
std::filesystem::path without_links(const std::filesystem::path& path);

/// Makes the folders of `paths` that are missing. Throws Error (output) if one of `paths` could not be written later:
/// no permission, something that is no regular file, or a file that exists without `force`. Symbolic links are
/// followed. Then removes what runs that were killed left beside these files: the partial files of processes of this
/// host that are no more and that nobody has locked. O(paths + entries of their folders).
void check_outputs(std::span<const std::filesystem::path> paths, bool force);
void check_output(const std::filesystem::path& path, bool force);

/// The file "<target>.partial.<host>.<pid>" beside the one that is to be written. It is removed with this object unless
/// it was moved to its place, so that a failure leaves nothing behind and an older file as it was. If `path` is a
/// symbolic link, the target is what it leads to, and the link stays. Every failure is an Error (output) that names
/// `path` and the system's reason.
class PartialFile {
 public:
  explicit PartialFile(std::filesystem::path path);
  ~PartialFile();
  PartialFile(PartialFile&& other) noexcept;
  PartialFile& operator=(PartialFile&&) = delete;

  const std::filesystem::path& partial() const { return partial_; }
  /// Returns the size of the partial file; 0 if it cannot be found out.
  std::uintmax_t size() const;

  /// Creates the partial file with these contents.
  void write(std::string_view contents) const;
  /// Adds to the contents of the partial file.
  void append(std::string_view contents) const;
  /// Waits until the contents are on the disk.
  void sync_contents() const;
  /// Renames the partial file to its target, so that readers see the whole old file or the whole new one.
  void commit();
  /// Waits until the contents are on the disk, and then renames the partial file to its target.
  void commit_durably();
  /// Renames the partial file, whose contents are on the disk, to its target, and waits for the folder.
  void commit_synced();
  /// Does the same, but keeps a file that has come to the target meanwhile: "results.h5" then becomes "results.2.h5",
  /// or the first number that is free. Returns the name that the file has got.
  std::filesystem::path commit_durably_beside();

 private:
  void write(std::string_view contents, int flags) const;

  std::filesystem::path path_, target_, partial_;  // partial_ is empty once it has been moved
};

/// While it lives, this file, which another process of the job writes, is one of the job (JobContext::partial_files).
class PartialFileOfJob {
 public:
  explicit PartialFileOfJob(std::filesystem::path partial);
  ~PartialFileOfJob();
  PartialFileOfJob(const PartialFileOfJob&) = delete;
  PartialFileOfJob& operator=(const PartialFileOfJob&) = delete;

 private:
  std::filesystem::path partial_;
};

}  // namespace orrery
