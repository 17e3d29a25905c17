// Disturbs operations on files of a program into which it is preloaded: open, read, write, close, rename and so on.
// Environment:
//   DISTURB_PATH    an operation counts if the name of its file has this in it
//   DISTURB_WRITES  if set, only writes, syncs, truncations and closes count
//   DISTURB_RANK    the rank that is disturbed; every rank if it is not set
//   DISTURB_FIRST   the first operation that is disturbed, from 1
//   DISTURB_COUNT   how many are; 1 if it is not set
//   DISTURB_HOW     a number: the operation fails with this errno; "short": it reads or writes one byte; "slow": it
//                   takes 50 ms longer; "hang": it never ends; "stop", "kill": the process gets SIGSTOP, SIGKILL
//   DISTURB_BEGUN   the file that the process makes when it disturbs the first operation
//   DISTURB_REPORT  the file to which the process writes at its end how many operations it has counted
// What reads through the C library's streams (fopen) is led through read(), so that it is seen. Streams of C++ call
// read() themselves.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

enum class Disturbance { none, fails, is_short };

long number(const char* variable, long otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atol(text);
}

bool is_chosen_rank() {
  const char* const chosen = std::getenv("DISTURB_RANK");
  const char* const mine = std::getenv("OMPI_COMM_WORLD_RANK");
  return chosen == nullptr || std::strcmp(chosen, mine == nullptr ? "0" : mine) == 0;
}

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

struct Count {
  long operations = 0;
  ~Count() {
    const char* const path = std::getenv("DISTURB_REPORT");
    std::FILE* const file = path == nullptr || !is_chosen_rank() ? nullptr : std::fopen(path, "w");
    if (file == nullptr) return;
    std::fprintf(file, "%ld\n", operations);
    std::fclose(file);
  }
} count;

bool is_counted_path(const char* path) {
  const char* const part = std::getenv("DISTURB_PATH");
  return part != nullptr && path != nullptr && std::strstr(path, part) != nullptr && is_chosen_rank();
}

bool is_counted_descriptor(int descriptor) {
  char link[64];
  char path[4096];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const int code = errno;
  const ssize_t size = ::readlink(link, path, sizeof path - 1);
  errno = code;
  if (size <= 0) return false;
  path[size] = '\0';
  return is_counted_path(path);
}

/// Makes the file that says that an operation is being disturbed. It is not counted itself.
void tell_begun() {
  const char* const path = std::getenv("DISTURB_BEGUN");
  if (path == nullptr) return;
  const int descriptor = next<int (*)(const char*, int, ...)>("open")(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor >= 0) next<int (*)(int)>("close")(descriptor);
}

Disturbance disturb() {
  const long operation = ++count.operations;
  const long first = number("DISTURB_FIRST", 0);
  const char* const how = std::getenv("DISTURB_HOW");
  if (how == nullptr || first == 0 || operation < first || operation - first >= number("DISTURB_COUNT", 1))
    return Disturbance::none;
  if (operation == first) tell_begun();
  if (std::strcmp(how, "short") == 0) return Disturbance::is_short;
  if (std::strcmp(how, "slow") == 0) ::usleep(50'000);
  if (std::strcmp(how, "stop") == 0) ::raise(SIGSTOP);
  if (std::strcmp(how, "kill") == 0) ::raise(SIGKILL);
  while (std::strcmp(how, "hang") == 0) ::usleep(1'000'000);
  const int code = std::atoi(how);
  if (code == 0) return Disturbance::none;
  errno = code;
  return Disturbance::fails;
}

Disturbance on_path(const char* path) { return is_counted_path(path) ? disturb() : Disturbance::none; }

Disturbance on_descriptor(int descriptor, bool writes) {
  if ((!writes && std::getenv("DISTURB_WRITES") != nullptr) || !is_counted_descriptor(descriptor))
    return Disturbance::none;
  return disturb();
}

/// Returns the size of a read or write after a disturbance.
size_t shortened(size_t size, Disturbance disturbance) {
  return disturbance == Disturbance::is_short ? std::min<size_t>(size, 1) : size;
}

bool is_of_cpp_library(const void* caller) {
  Dl_info info;
  return ::dladdr(caller, &info) != 0 && std::strstr(info.dli_fname, "libstdc++") != nullptr;
}

ssize_t read_cookie(void* cookie, char* to, size_t size) {
  return ::read(static_cast<int>(reinterpret_cast<intptr_t>(cookie)), to, size);
}
int seek_cookie(void* cookie, off64_t* to, int from) {
  const off64_t at = ::lseek64(static_cast<int>(reinterpret_cast<intptr_t>(cookie)), *to, from);
  if (at < 0) return -1;
  *to = at;
  return 0;
}
int close_cookie(void* cookie) { return ::close(static_cast<int>(reinterpret_cast<intptr_t>(cookie))); }

using Open = int (*)(const char*, int, ...);
using Fopen = std::FILE* (*)(const char*, const char*);

int open_with(const char* name, const char* path, int flags, mode_t mode) {
  const auto real = next<Open>(name);
  if (std::getenv("DISTURB_WRITES") == nullptr && on_path(path) == Disturbance::fails) return -1;
  return real(path, flags, mode);
}

std::FILE* fopen_with(const char* name, const char* path, const char* mode, const void* caller) {
  const auto real = next<Fopen>(name);
  if (std::getenv("DISTURB_WRITES") != nullptr || !is_counted_path(path)) return real(path, mode);
  if (is_of_cpp_library(caller)) return disturb() == Disturbance::fails ? nullptr : real(path, mode);
  if (std::strchr(mode, 'w') != nullptr || std::strchr(mode, 'a') != nullptr || std::strchr(mode, '+') != nullptr)
    return real(path, mode);
  const int descriptor = ::open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return nullptr;
  return ::fopencookie(reinterpret_cast<void*>(static_cast<intptr_t>(descriptor)), "r",
                       {.read = read_cookie, .write = nullptr, .seek = seek_cookie, .close = close_cookie});
}

}  // namespace

#define DISTURBED_OPEN(name)                                           \
  extern "C" int name(const char* path, int flags, ...) {              \
    va_list rest;                                                      \
    va_start(rest, flags);                                             \
    const mode_t mode = (flags & O_CREAT) ? va_arg(rest, mode_t) : 0U; \
    va_end(rest);                                                      \
    return open_with(#name, path, flags, mode);                        \
  }

#define DISTURBED_FOPEN(name)                                          \
  extern "C" std::FILE* name(const char* path, const char* mode) {     \
    return fopen_with(#name, path, mode, __builtin_return_address(0)); \
  }

// A call that names its file.
#define DISTURBED_NAME(result, name, parameters, arguments)                                             \
  extern "C" result name parameters {                                                                   \
    static const auto real = next<result(*) parameters>(#name);                                         \
    if (std::getenv("DISTURB_WRITES") == nullptr && on_path(path) == Disturbance::fails) return failed; \
    return real arguments;                                                                              \
  }

// A call with a buffer of `size` bytes.
#define DISTURBED_BUFFER(name, writes, parameters, arguments)          \
  extern "C" ssize_t name parameters {                                 \
    static const auto real = next<ssize_t(*) parameters>(#name);       \
    const Disturbance disturbance = on_descriptor(descriptor, writes); \
    if (disturbance == Disturbance::fails) return -1;                  \
    size = shortened(size, disturbance);                               \
    return real arguments;                                             \
  }

// Another call with a descriptor.
#define DISTURBED_CALL(result, name, writes, parameters, arguments)                       \
  extern "C" result name parameters {                                                     \
    static const auto real = next<result(*) parameters>(#name);                           \
    return on_descriptor(descriptor, writes) == Disturbance::fails ? -1 : real arguments; \
  }

// clang-format off
DISTURBED_OPEN(open)
DISTURBED_OPEN(open64)
DISTURBED_FOPEN(fopen)
DISTURBED_FOPEN(fopen64)
#define failed nullptr
DISTURBED_NAME(DIR*, opendir, (const char* path), (path))
#undef failed
#define failed -1
DISTURBED_NAME(int, rename, (const char* path, const char* to), (path, to))
DISTURBED_NAME(int, link, (const char* path, const char* to), (path, to))
DISTURBED_NAME(int, mkdir, (const char* path, mode_t mode), (path, mode))
DISTURBED_NAME(int, stat, (const char* path, struct stat* to), (path, to))
DISTURBED_NAME(int, lstat, (const char* path, struct stat* to), (path, to))
DISTURBED_NAME(int, stat64, (const char* path, struct stat64* to), (path, to))
DISTURBED_NAME(int, lstat64, (const char* path, struct stat64* to), (path, to))
#undef failed
DISTURBED_BUFFER(read, false, (int descriptor, void* to, size_t size), (descriptor, to, size))
DISTURBED_BUFFER(pread, false, (int descriptor, void* to, size_t size, off_t at), (descriptor, to, size, at))
DISTURBED_BUFFER(pread64, false, (int descriptor, void* to, size_t size, off64_t at), (descriptor, to, size, at))
DISTURBED_BUFFER(write, true, (int descriptor, const void* from, size_t size), (descriptor, from, size))
DISTURBED_BUFFER(pwrite, true, (int descriptor, const void* from, size_t size, off_t at), (descriptor, from, size, at))
DISTURBED_BUFFER(pwrite64, true, (int descriptor, const void* from, size_t size, off64_t at), (descriptor, from, size, at))
DISTURBED_CALL(ssize_t, writev, true, (int descriptor, const struct iovec* parts, int count), (descriptor, parts, count))
DISTURBED_CALL(int, ftruncate, true, (int descriptor, off_t size), (descriptor, size))
DISTURBED_CALL(int, ftruncate64, true, (int descriptor, off64_t size), (descriptor, size))
DISTURBED_CALL(int, fsync, true, (int descriptor), (descriptor))
DISTURBED_CALL(int, fstat, false, (int descriptor, struct stat* to), (descriptor, to))
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"  // of the structure of this name
DISTURBED_CALL(int, flock, false, (int descriptor, int how), (descriptor, how))
#pragma GCC diagnostic pop
// clang-format on

// A file is closed also if its closing fails, as the system does it.
extern "C" int close(int descriptor) {
  static const auto real = next<int (*)(int)>("close");
  const bool fails = on_descriptor(descriptor, true) == Disturbance::fails;
  const int code = errno;
  const int result = real(descriptor);
  if (!fails) return result;
  errno = code;
  return -1;
}

extern "C" int fclose(std::FILE* file) {
  static const auto real = next<int (*)(std::FILE*)>("fclose");
  const int descriptor = ::fileno(file);  // -1: the descriptor is closed by close_cookie
  const bool fails = descriptor >= 0 && on_descriptor(descriptor, true) == Disturbance::fails;
  const int code = errno;
  const int result = real(file);
  if (!fails) return result;
  errno = code;
  return EOF;
}
