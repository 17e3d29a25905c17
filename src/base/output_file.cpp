#include "orrery/base/output_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "orrery/base/error.hpp"
#include "orrery/base/host.hpp"
#include "orrery/base/job_context.hpp"

namespace orrery {
namespace {

namespace fs = std::filesystem;

void keep_name(const fs::path& partial) {
  if (JobContext* const job = JobContext::current()) job->partial_files.add(partial);
}

void forget_name(const fs::path& partial) {
  if (JobContext* const job = JobContext::current()) job->partial_files.drop(partial);
}

[[noreturn]] void fail(const fs::path& path, std::string_view doing, int code) {
  throw Error(ErrorCode::output, {.file = path.string()},
              fmt::format("cannot be written ({}): {}", doing, std::strerror(code)));
}

fs::path folder_of(const fs::path& target) { return target.has_parent_path() ? target.parent_path() : fs::path("."); }

std::string_view kind(fs::file_type type) {
  switch (type) {
    case fs::file_type::directory:
      return "a folder";
    case fs::file_type::fifo:
      return "a FIFO";
    case fs::file_type::socket:
      return "a socket";
    case fs::file_type::character:
    case fs::file_type::block:
      return "a device";
    default:
      return "no regular file";
  }
}

/// Waits until a file, or the entries of a folder, are on the disk.
int sync(const fs::path& path, int flags) {
  const int descriptor = ::open(path.c_str(), flags | O_CLOEXEC);
  if (descriptor < 0) return errno;
  const int code = ::fsync(descriptor) == 0 ? 0 : errno;
  ::close(descriptor);
  return code;
}

/// Renames a partial file of `path` unless something has the name. Returns whether it did.
bool take_name(const fs::path& path, const fs::path& partial, const fs::path& name) {
  if (::link(partial.c_str(), name.c_str()) == 0) {
    std::error_code ignored;
    fs::remove(partial, ignored);
    return true;
  }
  if (errno == EEXIST) return false;
  // A file system without links: another process may take the name between these two steps.
  std::error_code failure;
  if (fs::symlink_status(name, failure).type() != fs::file_type::not_found) return false;
  if (::rename(partial.c_str(), name.c_str()) != 0) fail(path, "renaming it", errno);
  return true;
}

std::string mark_of_partials() { return fmt::format(".partial.{}.", host_name()); }

/// `entry` is "<name><mark><pid>" with a process that is no more, or had the number of this one.
bool is_left_behind(const fs::path& entry, std::string_view pid_text) {
  pid_t pid = 0;
  const auto [end, problem] = std::from_chars(pid_text.data(), pid_text.data() + pid_text.size(), pid);
  if (problem != std::errc{} || end != pid_text.data() + pid_text.size() || pid <= 0) return false;
  if (pid != ::getpid() && (::kill(pid, 0) == 0 || errno != ESRCH)) return false;
  // A process of another container may be unseen. While HDF5 writes, it holds a lock.
  const int descriptor = ::open(entry.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return false;
  const bool is_free = ::flock(descriptor, LOCK_EX | LOCK_NB) == 0;
  ::close(descriptor);
  return is_free;
}

void remove_left_behind(const fs::path& folder, const std::set<std::string>& names) {
  const std::string mark = mark_of_partials();
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    const auto at = name.rfind(mark);
    if (at == std::string::npos || !names.contains(name.substr(0, at))) continue;
    if (is_left_behind(entry.path(), std::string_view(name).substr(at + mark.size())))
      fs::remove(entry.path(), ignored);
  }
}

/// Makes the folder of a file that is to be written, and checks that the file may be.
void check_target(const fs::path& path, const fs::path& target, bool force) {
  const Place place{.file = path.string()};
  if (!target.has_filename()) throw Error(ErrorCode::output, place, "is not the name of a file");
  std::error_code failure;
  const fs::path folder = folder_of(target);
  fs::create_directories(folder, failure);
  if (failure) fail(path, fmt::format("creating the folder '{}'", folder.string()), failure.value());
  const auto type = fs::status(target, failure).type();
  if (type == fs::file_type::none) fail(path, "looking at what is there", failure.value());
  if (type == fs::file_type::not_found) return;
  if (type != fs::file_type::regular)
    throw Error(ErrorCode::output, place, fmt::format("cannot be written: it is {}", kind(type)), {},
                "Give the name of a file");
  if (!force) throw Error(ErrorCode::output, place, "exists already", {}, "--force replaces it");
}

}  // namespace

fs::path without_links(const fs::path& path) {
  constexpr int most_links = 40;  // as the kernel
  fs::path target = path;
  std::error_code failure;
  for (int link = 0; fs::is_symlink(target, failure); ++link) {
    if (link == most_links) fail(path, "following its links", ELOOP);
    target = target.parent_path() / fs::read_symlink(target, failure);
    if (failure) fail(path, "following its links", failure.value());
  }
  return target;
}

void check_outputs(std::span<const fs::path> paths, bool force) {
  std::map<fs::path, std::set<std::string>> names_in;
  for (const auto& path : paths) {
    const fs::path target = without_links(path);
    check_target(path, target, force);
    names_in[folder_of(target)].insert(target.filename().string());
  }
  for (const auto& [folder, names] : names_in) {
    remove_left_behind(folder, names);
    PartialFile(folder / *names.begin()).write({});  // whether the folder takes new files
  }
}

void check_output(const fs::path& path, bool force) { check_outputs(std::span(&path, 1), force); }

PartialFile::PartialFile(fs::path path) : path_(std::move(path)), target_(without_links(path_)), partial_(target_) {
  partial_ += fmt::format("{}{}", mark_of_partials(), ::getpid());
  keep_name(partial_);
}

PartialFile::PartialFile(PartialFile&& other) noexcept
    : path_(std::move(other.path_)), target_(std::move(other.target_)), partial_(std::exchange(other.partial_, {})) {}

PartialFile::~PartialFile() {
  std::error_code ignored;
  if (partial_.empty()) return;
  fs::remove(partial_, ignored);
  forget_name(partial_);
}

std::uintmax_t PartialFile::size() const {
  std::error_code failure;
  const std::uintmax_t size = fs::file_size(partial_, failure);
  return failure ? 0 : size;
}

void PartialFile::write(std::string_view contents) const { write(contents, O_CREAT | O_EXCL); }

void PartialFile::append(std::string_view contents) const { write(contents, O_APPEND); }

void PartialFile::write(std::string_view contents, int flags) const {
  const int descriptor = ::open(partial_.c_str(), O_WRONLY | O_CLOEXEC | flags, 0666);
  if (descriptor < 0) fail(path_, "creating a file beside it", errno);
  int code = 0;
  while (!contents.empty() && code == 0) {
    const auto written = ::write(descriptor, contents.data(), contents.size());
    if (written >= 0)
      contents.remove_prefix(static_cast<std::size_t>(written));
    else if (errno != EINTR)
      code = errno;
  }
  if (::close(descriptor) != 0 && code == 0) code = errno;
  if (code != 0) fail(path_, "writing it", code);
}

void PartialFile::commit() {
  if (::rename(partial_.c_str(), target_.c_str()) != 0) fail(path_, "renaming it", errno);
  forget_name(std::exchange(partial_, {}));
}

void PartialFile::sync_contents() const {
  if (const int code = sync(partial_, O_RDONLY)) fail(path_, "syncing it to the disk", code);
}

// The new name need not outlive a crash of the machine for the run to have succeeded; not every file system can sync a
// folder.
void PartialFile::commit_durably() {
  sync_contents();
  commit_synced();
}

void PartialFile::commit_synced() {
  commit();
  sync(folder_of(target_), O_RDONLY | O_DIRECTORY);
}

fs::path PartialFile::commit_durably_beside() {
  sync_contents();
  fs::path free = target_;
  for (int number = 2; !take_name(path_, partial_, free); ++number)
    free.replace_filename(fmt::format("{}.{}{}", target_.stem().string(), number, target_.extension().string()));
  forget_name(std::exchange(partial_, {}));
  sync(folder_of(target_), O_RDONLY | O_DIRECTORY);
  return free == target_ ? path_ : free;
}

PartialFileOfJob::PartialFileOfJob(fs::path partial) : partial_(std::move(partial)) { keep_name(partial_); }

PartialFileOfJob::~PartialFileOfJob() { forget_name(partial_); }

}  // namespace orrery
