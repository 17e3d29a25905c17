// Fails some of the calls by which a program into which it is preloaded writes files whose names hold FAIL_NAME, or
// ".partial." if that is not given: those number FAIL_FIRST to FAIL_FIRST + FAIL_COUNT - 1 set errno to FAIL_ERRNO. So a
// disk is full for a moment. With FAIL_NAME it counts calls that create and rename such files, too. Writes the number of
// calls to the file FAIL_REPORT.
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

long number(const char* variable, long otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atol(text);
}

struct Calls {
  long count = 0;
  ~Calls() {
    const char* const path = std::getenv("FAIL_REPORT");
    std::FILE* const file = path == nullptr ? nullptr : std::fopen(path, "w");
    if (file == nullptr) return;
    std::fprintf(file, "%ld\n", count);
    std::fclose(file);
  }
} calls;

const char* name_given() { return std::getenv("FAIL_NAME"); }

bool is_partial(const char* path) {
  const char* const name = name_given();
  return std::strstr(path, name == nullptr ? ".partial." : name) != nullptr;
}

bool is_partial(int descriptor) {
  char link[64];
  char path[4096];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const int code = errno;
  const ssize_t size = ::readlink(link, path, sizeof path - 1);
  errno = code;
  if (size <= 0) return false;
  path[size] = '\0';
  return is_partial(path);
}

/// Counts a call for a file. Returns whether it is one of those that fail, and then sets errno.
template <class File>
bool fails(File file) {
  if (!is_partial(file)) return false;
  const long call = ++calls.count;
  const long first = number("FAIL_FIRST", 0);
  if (first == 0 || call < first || call >= first + number("FAIL_COUNT", 1)) return false;
  errno = static_cast<int>(number("FAIL_ERRNO", ENOSPC));
  return true;
}

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

#define FAILING(result, name, parameters, arguments)                     \
  extern "C" result name parameters {                                    \
    static const auto real = next<result(*) parameters>(#name);          \
    return fails(descriptor) ? static_cast<result>(-1) : real arguments; \
  }

FAILING(ssize_t, write, (int descriptor, const void* from, size_t size), (descriptor, from, size))
FAILING(ssize_t, pwrite, (int descriptor, const void* from, size_t size, off_t at), (descriptor, from, size, at))
FAILING(ssize_t, pwrite64, (int descriptor, const void* from, size_t size, off64_t at), (descriptor, from, size, at))
FAILING(int, ftruncate, (int descriptor, off_t size), (descriptor, size))
FAILING(int, ftruncate64, (int descriptor, off64_t size), (descriptor, size))
FAILING(int, fsync, (int descriptor), (descriptor))

// The file is closed all the same, as the system does it.
extern "C" int close(int descriptor) {
  static const auto real = next<int (*)(int)>("close");
  const bool failed = fails(descriptor);
  const int code = errno;
  const int result = real(descriptor);
  if (!failed) return result;
  errno = code;
  return -1;
}

extern "C" int rename(const char* from, const char* to) {
  static const auto real = next<int (*)(const char*, const char*)>("rename");
  return name_given() != nullptr && fails(from) ? -1 : real(from, to);
}

extern "C" int open(const char* path, int flags, ...) {
  static const auto real = next<int (*)(const char*, int, mode_t)>("open");
  mode_t mode = 0;
  if ((flags & O_CREAT) != 0) {
    std::va_list more;
    va_start(more, flags);
    mode = va_arg(more, mode_t);
    va_end(more);
    if (name_given() != nullptr && fails(path)) return -1;
  }
  return real(path, flags, mode);
}
