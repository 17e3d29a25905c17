#include "orrery/parallel/lead.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <vector>

#include "orrery/base/job_context.hpp"

namespace orrery::parallel {
namespace {

using LeadClock = std::chrono::steady_clock;

constexpr std::int64_t last_sign = -1;

/// Waits on another rank than 0 for the last sign of rank 0.
void follow(Communicator& world) {
  std::vector<std::int64_t> sign{0};
  while (sign.front() != last_sign) {
    world.broadcast(sign, Rank(0));
    beat(static_cast<std::uint32_t>(std::max<std::int64_t>(sign.front(), 0)));
  }
}

}  // namespace

// Each sign is the seconds by which the next one may come later.
void lead(Communicator& world, const std::function<void(const GivesSigns&)>& body) {
  if (!world.is_root()) return follow(world);
  std::vector<std::int64_t> sign(1);
  auto last = LeadClock::now();
  const auto give = [&](std::uint32_t seconds) {
    const auto now = LeadClock::now();
    if (seconds > 0 || now - last >= std::chrono::seconds(1)) {
      last = now;
      sign.front() = seconds;
      world.broadcast(sign, Rank(0));
    }
    beat(seconds);
  };
  std::exception_ptr failure;
  try {
    body(give);
  } catch (...) {
    failure = std::current_exception();
  }
  sign.front() = last_sign;
  world.broadcast(sign, Rank(0));
  if (failure) std::rethrow_exception(failure);
}

}  // namespace orrery::parallel
