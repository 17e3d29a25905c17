// Counts the calls of malloc of a program into which it is preloaded, and prints their number to standard error at the
// end.
#include <atomic>
#include <cstddef>
#include <cstdio>

extern "C" void* __libc_malloc(std::size_t size);

namespace {
struct Count {
  std::atomic<unsigned long> calls{0};
  ~Count() { std::fprintf(stderr, "allocations: %lu\n", calls.load()); }
} count;
}  // namespace

extern "C" void* malloc(std::size_t size) {
  count.calls.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(size);
}
