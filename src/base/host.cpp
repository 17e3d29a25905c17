#include "orrery/base/host.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <ctime>
#include <fstream>

namespace orrery {

std::string host_name() {
  std::array<char, 256> text{};
  ::gethostname(text.data(), text.size() - 1);
  return text.data();
}

std::uint64_t peak_memory() {
  constexpr std::uint64_t kib = 1024;
  // getrusage begins with the peak of the program that this process was before it became Orrery.
  std::ifstream status("/proc/self/status");
  std::uint64_t peak = 0;
  for (std::string word; status >> word;)
    if (word == "VmHWM:" && status >> peak) return peak * kib;
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * kib;
}

double cpu_time() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace orrery
