#include "ordered_ends.hpp"

#include <algorithm>
#include <memory>

#include "orrery/collective/end_order.hpp"

namespace orrery::communicator {
namespace {

/// The ends of collectives with more messages have no places.
constexpr std::uint64_t most_ordered_messages = 1 << 16;

/// Sends the messages of members with these turns. The queues of the ends are places (collective::Turn::place_of).
std::optional<collective::MemberEnds> send_messages(const Setup& setup, const JoinedByAll& joined,
                                                    std::span<const collective::Turn> turns) {
  const CommunicatorSpec& spec = joined.spec;
  const std::uint32_t queues = num_queues(setup.engine);
  collective::MessageTimes times{
      .arrivals = {joined.arrivals.begin(), joined.arrivals.end()},
      .histories = {},
      .delay = [&](std::uint32_t from, std::uint32_t to,
                   Bytes bytes) { return setup.network.delay(spec.member(from), spec.member(to), bytes); },
      .endpoint_delay = setup.engine.endpoint_delay(joined.layout),
      .rendezvous = setup.rendezvous};
  std::vector<std::shared_ptr<const collective::MessageProgram>> programs;
  for (std::size_t i = 0; i < turns.size(); ++i) {
    const JoinPlace& place = joined.places[i];
    times.histories.push_back(place.first);
    collective::HeldQueue& held = times.held.emplace_back();
    if (place.held_queue) held = {turns[i].own_at(*place.held_queue, queues), place.freed};
    programs.push_back(setup.engine.message_program(joined.layout, joined.kind, joined.size, turns[i]));
  }
  auto ends = collective::member_ends(programs, times, most_ordered_messages);
  if (!ends) return {};
  for (std::size_t i = 0; i < turns.size(); ++i) ends->queues[i] = turns[i].place_of(ends->queues[i], queues);
  return ends;
}

}  // namespace

std::optional<OrderedEnds> ordered_ends(const Setup& setup, const JoinedByAll& joined) {
  std::vector<collective::Turn> turns;
  for (const JoinPlace& place : joined.places) turns.push_back(place.turn);
  auto ends = send_messages(setup, joined, turns);
  if (!ends && std::ranges::count(turns, joined.turn) < std::ssize(turns)) {
    // Members that disagree on whose turn it is wait for each other.
    std::ranges::fill(turns, joined.turn);
    ends = send_messages(setup, joined, turns);
  }
  if (!ends) return {};
  const auto [first, last] = std::ranges::minmax(joined.arrivals);
  const Time least = first + setup.engine.least_duration(joined.layout, joined.kind, joined.size);
  const Time least_after_last = last + setup.engine.minimum_duration(joined.layout);
  OrderedEnds result;
  for (std::size_t i = 0; i < turns.size(); ++i) {
    result.times.push_back(std::max({ends->times[i], least, least_after_last}));
    result.places.push_back({ends->histories[i], ends->queues[i]});
  }
  return result;
}

}  // namespace orrery::communicator
