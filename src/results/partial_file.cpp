#include "partial_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "orrery/base/error.hpp"

namespace orrery::results {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, std::string_view doing, int code) {
  Place place;
  place.file = path.string();
  throw Error(ErrorCode::output, place, fmt::format("cannot be written ({}): {}", doing, std::strerror(code)));
}

/// Waits until a file, or the entries of a folder, are on the disk.
int sync(const std::filesystem::path& path, int flags) {
  const int descriptor = ::open(path.c_str(), flags | O_CLOEXEC);
  if (descriptor < 0) return errno;
  const int code = ::fsync(descriptor) == 0 ? 0 : errno;
  ::close(descriptor);
  return code;
}

}  // namespace

PartialFile::PartialFile(std::filesystem::path path) : path_(std::move(path)), partial_(path_) {
  partial_ += fmt::format(".partial.{}", ::getpid());
}

PartialFile::~PartialFile() {
  std::error_code ignored;
  if (!committed_) std::filesystem::remove(partial_, ignored);
}

void PartialFile::probe() {
  const int descriptor = ::open(partial_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0) fail(path_, "creating a file beside it", errno);
  ::close(descriptor);
}

void PartialFile::commit() {
  if (const int code = sync(partial_, O_RDONLY)) fail(path_, "syncing it to the disk", code);
  if (::rename(partial_.c_str(), path_.c_str()) != 0) fail(path_, "renaming it", errno);
  committed_ = true;
  // The new name need not outlive a crash of the machine for the run to have succeeded; not every file system can sync
  // a folder.
  sync(path_.has_parent_path() ? path_.parent_path() : ".", O_RDONLY | O_DIRECTORY);
}

}  // namespace orrery::results
