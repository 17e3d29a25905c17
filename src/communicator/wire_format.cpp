#include "wire_format.hpp"

#include <algorithm>
#include <cstring>

#include "orrery/base/error.hpp"

namespace orrery::communicator::wire {

void pack(const Report& report, std::span<const Time> times, std::vector<std::byte>& message) {
  const bool all_equal = std::ranges::all_of(times, [&](Time time) { return time == times.front(); });
  if (all_equal) times = times.first(1);
  message.resize(sizeof report + times.size_bytes());
  std::memcpy(message.data(), &report, sizeof report);
  std::memcpy(message.data() + sizeof report, times.data(), times.size_bytes());
}

Report unpack(std::span<const std::byte> message, std::vector<Time>& times) {
  Report report;
  ensure(message.size() > sizeof report && (message.size() - sizeof report) % sizeof(Time) == 0,
         "a report of a communicator of wrong size");
  std::memcpy(&report, message.data(), sizeof report);
  times.resize((message.size() - sizeof report) / sizeof(Time));
  std::memcpy(times.data(), message.data() + sizeof report, times.size() * sizeof(Time));
  return report;
}

}  // namespace orrery::communicator::wire
