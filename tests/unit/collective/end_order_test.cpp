#include "orrery/collective/end_order.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <tuple>

#include "system.hpp"

namespace orrery::collective {
namespace {

using Members = std::vector<std::uint32_t>;

/// Returns in which order the members of an all-gather end, whose messages take 100 ns each. Those that arrive together
/// begin in the order of `first_to_act`. Empty if their histories are not known.
Members order(System& system, std::vector<Time> arrivals, Members first_to_act, std::uint64_t most_messages = 1000) {
  const auto layout = system.engine.layout({}, all_dimensions);
  std::vector<EventPlace> histories(arrivals.size());
  for (std::uint32_t place = 0; place < first_to_act.size(); ++place)
    histories[first_to_act[place]] = EventPlace::first_of(NpuId(place)).next(arrivals[first_to_act[place]], 0);
  const MessageTimes times{.arrivals = std::move(arrivals),
                           .histories = std::move(histories),
                           .delay = [](std::uint32_t, std::uint32_t, Bytes) { return Time::from_ns(100); },
                           .endpoint_delay = Time::from_ns(7)};
  const std::vector programs(times.arrivals.size(),
                             system.engine.message_program(*layout, Kind::all_gather, Bytes(4000)));
  const auto ends = member_ends(programs, times, most_messages);
  if (!ends) return {};
  Members members(ends->histories.size());
  std::iota(members.begin(), members.end(), 0U);
  std::ranges::sort(members, [&](std::uint32_t one, std::uint32_t other) {
    return std::tie(ends->times[one], ends->histories[one]) < std::tie(ends->times[other], ends->histories[other]);
  });
  return members;
}

// A member receives after the one before it in the ring has sent. So each of three steps moves the order on by one.
TEST(EndPlace, ARingPassesTheOrderOn) {
  System system({dimension(topology::Shape("Ring"), 4)}, options_of({ring}), AllRules::astra_sim());
  EXPECT_EQ(order(system, std::vector<Time>(4), {0, 1, 2, 3}), (Members{3, 0, 1, 2}));
  EXPECT_EQ(order(system, std::vector<Time>(4), {2, 1, 0, 3}), (Members{1, 0, 3, 2}));
}

// Partners exchange at distance 2, then at distance 1: 0 1 2 3 becomes 2 3 0 1, and this 3 2 1 0.
TEST(EndPlace, HalvingDoublingExchangesPlaces) {
  System system({dimension(topology::Shape("Switch"), 4)}, options_of({halving_doubling}), AllRules::astra_sim());
  EXPECT_EQ(order(system, std::vector<Time>(4), {0, 1, 2, 3}), (Members{3, 2, 1, 0}));
}

// Members 1, 2 and 3 wait for what member 0 has sent last, and receive it one after the other.
TEST(EndPlace, WhoComesLastDecides) {
  System system({dimension(topology::Shape("Ring"), 4)}, options_of({ring}), AllRules::astra_sim());
  EXPECT_EQ(order(system, at_ns({5000, 0, 0, 0}), {0, 1, 2, 3}), (Members{0, 1, 2, 3}));
}

// Four members send three messages each. If 11 are the most, no order is sought.
TEST(EndPlace, IsNotSoughtAmongTooManyMessages) {
  System system({dimension(topology::Shape("Ring"), 4)}, options_of({ring}), AllRules::astra_sim());
  EXPECT_EQ(order(system, std::vector<Time>(4), {0, 1, 2, 3}, 12).size(), 4U);
  EXPECT_EQ(order(system, std::vector<Time>(4), {0, 1, 2, 3}, 11), Members());
}

}  // namespace
}  // namespace orrery::collective
