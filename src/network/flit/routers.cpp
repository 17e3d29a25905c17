#include "routers.hpp"

#include <algorithm>

#include "orrery/base/mix.hpp"

namespace orrery::network::flit {
namespace {

// Cycles from a grant of the switch to what follows from it, besides those on the link.
constexpr std::uint32_t to_next_router = 2, to_npu = 3, from_npu_and_back = 3;
constexpr std::uint32_t injection = 2;  // from the NPU to its router

std::uint32_t longest_delay(const FlitRules& rules) {
  return std::max({to_next_router + rules.link, to_npu + from_npu_and_back, rules.route + 1});
}

}  // namespace

Routers::Routers(const Layout& layout, const FlitRules& rules, std::uint32_t stream)
    : layout_(layout),
      rules_(rules),
      num_ports_(layout.ports()),
      opposite_(layout.opposite_ports()),
      draws_{mix(rules.seed, stream), std::vector<std::uint32_t>(layout.num_routers())},
      sources_(layout.num_npus(), rules),
      calendar_(longest_delay(rules)),
      live_(layout.num_routers()) {
  const std::size_t ports = std::size_t{layout.num_routers()} * num_ports_;
  const std::size_t channels = ports * rules.virtual_channels;
  inputs_.flits.resize(channels * rules.buffer);
  for (auto* const of_channels : {&inputs_.first, &inputs_.count, &outputs_.used}) of_channels->resize(channels);
  for (auto* const of_channels : {&inputs_.output, &inputs_.range, &inputs_.next_output, &outputs_.next_input})
    of_channels->resize(channels);
  inputs_.granted.resize(channels);
  for (auto* const of_ports : {&inputs_.busy, &inputs_.active, &inputs_.wait_channel, &inputs_.wait_switch,
                               &inputs_.next_channel, &inputs_.next_port, &outputs_.next_port})
    of_ports->resize(ports);
  for (auto* const of_ports : {&outputs_.free, &outputs_.credit, &outputs_.room})
    of_ports->assign(ports, rules.all_channels());
  outputs_.links.resize(ports);
  channel_requests_.best.resize(std::size_t{num_ports_} * rules.virtual_channels);
  switch_requests_.best.resize(num_ports_);
}

void Routers::inject(std::uint32_t from, std::uint32_t to, std::uint32_t flits, std::uint64_t note) {
  const std::uint32_t packet = packets_.put({note, to, 0});
  ensure(packet < most_packets, "a flit has no room for the number of its packet");
  sources_.add(from, packet, flits);
}

void Routers::step() {
  delivered_.clear();
  Calendar::Bucket& today = calendar_.today();
  for (const std::uint32_t channel : today.credits) give_back(channel);
  for (const std::uint32_t channel : today.source_credits) {
    const std::uint32_t port = channel / rules_.virtual_channels;
    sources_.give_back(layout_.npu_at(router_of(port), port), channel % rules_.virtual_channels);
  }
  for (const std::uint32_t flit : today.ejections) eject(flit);
  sources_.inject([this](std::uint32_t npu, std::uint32_t number, std::uint32_t flit) {
    const std::uint32_t channel = layout_.port_of_npu(npu) * rules_.virtual_channels + number;
    calendar_.in(injection).arrivals.push_back({channel, flit});
    calendar_.add_one();
  });
  for (const Calendar::Arrival& arrival : today.arrivals) arrive(arrival);
  // Routes are computed from what there is before grants, and are asked for from the next cycle on.
  for (const std::uint32_t channel : today.routes) route(channel);
  for (std::uint32_t router = 0; router < live_.size(); ++router)
    if (live_[router] > 0) visit(router);
  for (const std::uint32_t channel : today.routes) ask_for_channel(channel);
  calendar_.next();
}

/// Allocates in a router, and lets the grants take effect.
void Routers::visit(std::uint32_t router) {
  request_switch(router);
  request_channels(router);
  grant_channels(router);
  grant_switch(router);
}

void Routers::arrive(Calendar::Arrival arrival) {
  const std::uint32_t channel = arrival.channel;
  std::uint32_t place = inputs_.first[channel] + inputs_.count[channel]++;
  if (place >= rules_.buffer) place -= rules_.buffer;
  inputs_.flits[channel * rules_.buffer + place] = arrival.flit;
  const std::uint32_t port = channel / rules_.virtual_channels, bit = 1U << channel % rules_.virtual_channels;
  if ((inputs_.busy[port] & bit) == 0) {
    inputs_.busy[port] |= bit;
    if (rules_.route > 1) {
      calendar_.in(rules_.route - 1).routes.push_back(channel);
      calendar_.add_one();
    } else if (rules_.route == 1) {
      calendar_.today().routes.push_back(channel);
      calendar_.add_one();
    } else {
      route(channel);
      ask_for_channel(channel);
    }
  } else if ((inputs_.active[port] & bit) != 0 && inputs_.count[channel] == 1) {
    ask_for_switch(channel);
  }
}

/// Lets the packet behind a tail that has left take its turn.
void Routers::become_first(std::uint32_t channel) {
  if (rules_.route == 0) {
    route(channel);
    ask_for_channel(channel);
    return;
  }
  calendar_.in(rules_.route).routes.push_back(channel);
  calendar_.add_one();
}

void Routers::give_back(std::uint32_t channel) {
  const std::uint32_t port = channel / rules_.virtual_channels, bit = 1U << channel % rules_.virtual_channels;
  const std::uint32_t used = --outputs_.used[channel];
  outputs_.credit[port] |= bit;
  if (used + rules_.packet <= rules_.buffer) outputs_.room[port] |= bit;
  LinkCounts& link = outputs_.links[port];
  --link.used;
  link.occupancy += static_cast<std::int64_t>(calendar_.now());
}

void Routers::eject(std::uint32_t flit) {
  ++totals_.delivered;
  if (!is_tail(flit)) return;
  const Packet packet = packets_.take(packet_of(flit));
  delivered_.push_back({packet.to, packet.note});
}

void Routers::start_waiting(std::uint32_t router) {
  ++live_[router];
  ++totals_.waiting;
}

void Routers::ask_for_channel(std::uint32_t channel) {
  const std::uint32_t port = channel / rules_.virtual_channels;
  inputs_.wait_channel[port] |= 1U << channel % rules_.virtual_channels;
  start_waiting(router_of(port));
}

void Routers::ask_for_switch(std::uint32_t channel) {
  const std::uint32_t port = channel / rules_.virtual_channels;
  inputs_.wait_switch[port] |= 1U << channel % rules_.virtual_channels;
  start_waiting(router_of(port));
}

/// Sends what follows from a grant: the credit for the channel that the flit leaves, and the flit.
void Routers::pass(std::uint32_t channel, std::uint32_t output) {
  const std::uint32_t port = channel / rules_.virtual_channels, number = channel % rules_.virtual_channels;
  const std::uint32_t flit = front(channel);
  if (++inputs_.first[channel] == rules_.buffer) inputs_.first[channel] = 0;
  --inputs_.count[channel];
  if (layout_.leads_to_npu(port % num_ports_))
    calendar_.in(to_next_router).source_credits.push_back(channel);
  else
    calendar_.in(to_next_router + rules_.link).credits.push_back(opposite_[port] * rules_.virtual_channels + number);
  calendar_.add_one();
  leave(flit, output * rules_.virtual_channels + inputs_.granted[channel], output);
  if (is_tail(flit)) {
    outputs_.free[output] |= 1U << inputs_.granted[channel];
    inputs_.active[port] &= ~(1U << number);
    if (inputs_.count[channel] > 0)
      become_first(channel);
    else
      inputs_.busy[port] &= ~(1U << number);
  } else if (inputs_.count[channel] > 0) {
    ask_for_switch(channel);
  }
}

/// Sends a flit over the link behind an output port, or to the NPU there.
void Routers::leave(std::uint32_t flit, std::uint32_t output_channel, std::uint32_t output) {
  const std::uint32_t bit = 1U << output_channel % rules_.virtual_channels;
  const std::uint32_t used = ++outputs_.used[output_channel];
  if (used == rules_.buffer) outputs_.credit[output] &= ~bit;
  if (used + rules_.packet > rules_.buffer) outputs_.room[output] &= ~bit;
  LinkCounts& link = outputs_.links[output];
  ++link.flits;
  link.peak = std::max(link.peak, ++link.used);
  link.occupancy -= static_cast<std::int64_t>(calendar_.now());
  ++totals_.flit_hops;
  if (layout_.leads_to_npu(output % num_ports_)) {
    calendar_.in(to_npu).ejections.push_back(flit);
    calendar_.in(to_npu + from_npu_and_back).credits.push_back(output_channel);
    calendar_.add_one();
  } else {
    const std::uint32_t channel =
        opposite_[output] * rules_.virtual_channels + output_channel % rules_.virtual_channels;
    calendar_.in(to_next_router + rules_.link).arrivals.push_back({channel, flit});
  }
  calendar_.add_one();
}

}  // namespace orrery::network::flit
