#include "orrery/base/mix.hpp"
#include "routers.hpp"

namespace orrery::network::flit {
namespace {

constexpr std::uint32_t up_x = 0, up_y = 2;  // ports; the one in the other direction follows

std::uint32_t low_half(const FlitRules& rules) {
  return (1U << (rules.virtual_channels - rules.virtual_channels / 2)) - 1;
}

std::uint32_t high_half(const FlitRules& rules) {
  const std::uint32_t half = rules.virtual_channels / 2;
  return half == 0 ? 0 : ((1U << half) - 1) << half;
}

}  // namespace

/// Returns whether a draw falls on the first of two ways.
bool Routers::draw(std::uint32_t router) { return (mix(mix(draws_.seed, router), draws_.count[router]++) >> 63U) == 0; }

/// Sets the output port, of its own router, and the virtual channels that the packet in front may take there.
void Routers::choose(std::uint32_t channel, std::uint32_t port, std::uint32_t range) {
  const std::uint32_t own = channel / rules_.virtual_channels;
  inputs_.output[channel] = own - own % num_ports_ + port;
  inputs_.range[channel] = range;
}

void Routers::route(std::uint32_t channel) {
  const std::uint32_t to = packets_[packet_of(front(channel))].to;
  if (layout_.is_crossbar()) return choose(channel, to, rules_.all_channels());
  const std::uint32_t router = router_of(channel / rules_.virtual_channels);
  if (router == to) return choose(channel, Layout::npu_port, rules_.all_channels());
  layout_.shape == FlitShape::torus ? route_on_torus(channel, router, to) : route_on_mesh(channel, router, to);
}

/// A packet decides on the direction where it enters a dimension. Going up, packets that wrap take the second half of
/// the virtual channels in the whole dimension, going down those that do not. So no ring of waiting packets closes.
void Routers::route_on_torus(std::uint32_t channel, std::uint32_t router, std::uint32_t to) {
  const std::uint32_t input = channel / rules_.virtual_channels % num_ports_;
  const std::uint32_t width = layout_.width;
  const bool in_x = router % width != to % width;
  const std::uint32_t up = in_x ? up_x : up_y;
  Packet& packet = packets_[packet_of(front(channel))];
  std::uint32_t port = input ^ 1U;
  if (input != up && input != up + 1) {
    const std::uint32_t size = in_x ? width : layout_.height;
    const std::uint32_t from = in_x ? router % width : router / width, target = in_x ? to % width : to / width;
    const std::uint32_t ahead = target >= from ? target - from : target + size - from;
    const bool goes_up = 2 * ahead < size || (2 * ahead == size && draw(router));
    port = up + (goes_up ? 0 : 1);
    packet.part = (goes_up ? from > target : target < from) ? 1 : 0;
  }
  choose(channel, port, packet.part == 0 ? low_half(rules_) : high_half(rules_));
}

/// With adaptive routing, packets that go x before y have the first half of the virtual channels all along.
void Routers::route_on_mesh(std::uint32_t channel, std::uint32_t router, std::uint32_t to) {
  const std::uint32_t width = layout_.width, x = router % width, y = router / width;
  const std::uint32_t to_x = to % width, to_y = to / width;
  const std::uint32_t x_port = x < to_x ? up_x : up_x + 1, y_port = y < to_y ? up_y : up_y + 1;
  const std::uint32_t x_first = x != to_x ? x_port : y_port, y_first = y != to_y ? y_port : x_port;
  if (rules_.routing == FlitRouting::dor) return choose(channel, x_first, rules_.all_channels());
  const std::uint32_t number = channel % rules_.virtual_channels;
  const bool enters = channel / rules_.virtual_channels % num_ports_ == Layout::npu_port;
  const bool goes_x_first = enters ? prefers_x(router, x_first, y_first) : (low_half(rules_) >> number & 1U) != 0;
  choose(channel, goes_x_first ? x_first : y_first, goes_x_first ? low_half(rules_) : high_half(rules_));
}

bool Routers::prefers_x(std::uint32_t router, std::uint32_t x_port, std::uint32_t y_port) {
  const std::uint32_t first = router * num_ports_;
  const std::uint32_t x_used = outputs_.links[first + x_port].used, y_used = outputs_.links[first + y_port].used;
  return x_used < y_used || (x_used == y_used && draw(router));
}

}  // namespace orrery::network::flit
