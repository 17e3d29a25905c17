#include "link_credits.hpp"

#include <utility>

namespace orrery::network {

LinkCredits::LinkCredits(const PacketGraph& graph, const PacketRules& rules) : num_channels_(rules.virtual_channels) {
  for (std::uint32_t node = 0; node < graph.num_nodes(); ++node)
    for (const PacketGraph::Port& port : graph.ports(node)) {
      has_turns_ = has_turns_ || graph.link_of(port).turns_channel;
      // The credit of a packet is back one round trip after the packet has left, if it is passed on at once.
      const PacketGraph::Way way = graph.way_of(port);
      const Time round_trip = way.delay + graph.way_into(port).delay;
      const auto bits = static_cast<unsigned __int128>(way.rate) * static_cast<std::uint64_t>(round_trip.ps());
      const auto filling = static_cast<std::uint64_t>(bits / 8'000'000'000'000U) + 1 + 2 * rules.largest_packet();
      whole_.push_back(static_cast<std::int64_t>(rules.credits.value_or(filling)));
      left_.insert(left_.end(), num_channels_, whole_.back());
    }
  has_turns_ = has_turns_ && num_channels_ > 1;
  held_.resize(left_.size());
  waits_since_.resize(whole_.size(), never);
}

Time LinkCredits::end_wait(std::size_t port, Time now) {
  const Time since = std::exchange(waits_since_[port], never);
  return since == never ? Time::zero() : now - since;
}

void LinkCredits::serialize(std::size_t port, Archive& archive) {
  for (std::uint32_t channel = 0; channel < num_channels_; ++channel) archive(left(port, channel), held(port, channel));
  archive(waits_since_[port]);
}

}  // namespace orrery::network
