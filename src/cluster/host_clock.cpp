#include "host_clock.hpp"

#include <algorithm>

namespace orrery::cluster {
namespace {

// Streams of draws beside those of jobs.
constexpr std::uint64_t lives = 6, repairs = 7;

}  // namespace

HostClock::HostClock(const HostFailures& failures, std::uint32_t num_hosts, std::uint64_t seed)
    : failures_(failures), lives_(seed, lives), repairs_(seed, repairs), count_(num_hosts, 0) {
  for (std::uint32_t host = 0; host < num_hosts; ++host) plan(failures_.mtbf, lives_, 0, false, host);
}

void HostClock::plan(const campaign::Spread& spread, const campaign::Draws& draws, Nanoseconds from, bool returns,
                     std::uint32_t host) {
  const Nanoseconds length = campaign::nanoseconds(spread.quantile(draws.unit(host, count_[host])));
  changes_.emplace(from + std::max<Nanoseconds>(1, length), returns, host);
}

HostClock::Change HostClock::take() {
  const auto [time, returns, host] = changes_.top();
  changes_.pop();
  if (returns) {
    ++count_[host];
    plan(failures_.mtbf, lives_, time, false, host);
  } else {
    plan(failures_.repair, repairs_, time, true, host);
  }
  return {host, !returns};
}

}  // namespace orrery::cluster
