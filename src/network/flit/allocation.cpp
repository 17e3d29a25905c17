#include <bit>

#include "routers.hpp"

namespace orrery::network::flit {
namespace {

/// Returns how far a number is behind a pointer, counted round.
std::uint32_t behind(std::uint32_t number, std::uint32_t pointer, std::uint32_t size) {
  return number >= pointer ? number - pointer : number + size - pointer;
}

/// Calls visit(number) for each member of a mask.
template <class Visit>
void for_each(std::uint32_t mask, Visit visit) {
  for (; mask != 0; mask &= mask - 1) visit(static_cast<std::uint32_t>(std::countr_zero(mask)));
}

}  // namespace

// ---- Virtual channels ----

void Routers::request_channels(std::uint32_t router) {
  const std::uint32_t first_port = router * num_ports_;
  for (std::uint32_t port = first_port; port < first_port + num_ports_; ++port)
    for_each(inputs_.wait_channel[port],
             [&](std::uint32_t number) { request_channel(port * rules_.virtual_channels + number, router); });
}

/// Asks for the first free virtual channel from the input's pointer on, which runs round the channels of all outputs.
void Routers::request_channel(std::uint32_t channel, std::uint32_t router) {
  const std::uint32_t output = inputs_.output[channel], first_channel = router * num_ports_ * rules_.virtual_channels;
  std::uint32_t free = inputs_.range[channel] & outputs_.free[output];
  // An NPU of a mesh or torus takes flits at once, so it needs no room.
  const bool needs_room = rules_.flow_control == FlitFlowControl::virtual_cut_through &&
                          (layout_.is_crossbar() || output % num_ports_ != Layout::npu_port);
  if (needs_room) free &= outputs_.room[output];
  if (free == 0) return;
  const std::uint32_t start = output * rules_.virtual_channels - first_channel, pointer = inputs_.next_output[channel];
  const bool is_within = pointer >= start && pointer < start + rules_.virtual_channels;
  const std::uint32_t asked = start + first_from(free, is_within ? pointer - start : 0);
  const std::uint32_t size = num_ports_ * rules_.virtual_channels;
  channel_requests_.add(asked, behind(channel - first_channel, outputs_.next_input[first_channel + asked], size),
                        channel);
}

void Routers::grant_channels(std::uint32_t router) {
  const std::uint32_t first_channel = router * num_ports_ * rules_.virtual_channels;
  const std::uint32_t size = num_ports_ * rules_.virtual_channels;
  for (const std::uint32_t asked : channel_requests_.asked) {
    const std::uint32_t channel = channel_requests_.best[asked].channel;
    channel_requests_.best[asked] = {};
    const std::uint32_t port = channel / rules_.virtual_channels, bit = 1U << channel % rules_.virtual_channels;
    const std::uint32_t number = asked % rules_.virtual_channels;
    outputs_.free[inputs_.output[channel]] &= ~(1U << number);
    inputs_.granted[channel] = static_cast<std::uint8_t>(number);
    inputs_.active[port] |= bit;
    inputs_.wait_channel[port] &= ~bit;
    inputs_.wait_switch[port] |= bit;  // the channel goes on waiting, for the switch
    inputs_.next_output[channel] = asked + 1 == size ? 0 : asked + 1;
    const std::uint32_t own = channel - first_channel;
    outputs_.next_input[first_channel + asked] = own + 1 == size ? 0 : own + 1;
  }
  channel_requests_.asked.clear();
}

// ---- The switch ----

/// Each input asks for one output.
void Routers::request_switch(std::uint32_t router) {
  const std::uint32_t first_port = router * num_ports_;
  for (std::uint32_t port = first_port; port < first_port + num_ports_; ++port) {
    if (inputs_.wait_switch[port] == 0) continue;
    const std::uint32_t channel = pick_request(router, port);
    if (channel == ~0U) continue;
    const std::uint32_t output = inputs_.output[channel];
    switch_requests_.add(output - first_port, behind(port - first_port, outputs_.next_port[output], num_ports_),
                         channel);
  }
}

/// Returns the channel of an input port that asks: of those with credit, those of the first output from the port's
/// pointer on, and of these the first from its other pointer on. ~0 if none has credit.
std::uint32_t Routers::pick_request(std::uint32_t router, std::uint32_t port) {
  const std::uint32_t first_port = router * num_ports_;
  std::uint32_t picked = ~0U, nearest = ~0U;
  for_each(inputs_.wait_switch[port], [&](std::uint32_t number) {
    const std::uint32_t channel = port * rules_.virtual_channels + number, output = inputs_.output[channel];
    if ((outputs_.credit[output] >> inputs_.granted[channel] & 1U) == 0) {
      LinkCounts& link = outputs_.links[output];
      if (link.starved_until <= calendar_.now()) ++link.starved;
      link.starved_until = calendar_.now() + 1;
      return;
    }
    const std::uint32_t distance =
        behind(output - first_port, inputs_.next_port[port], num_ports_) * rules_.virtual_channels +
        behind(number, inputs_.next_channel[port], rules_.virtual_channels);
    if (distance < nearest) {
      nearest = distance;
      picked = channel;
    }
  });
  return picked;
}

void Routers::grant_switch(std::uint32_t router) {
  const std::uint32_t first_port = router * num_ports_;
  for (const std::uint32_t asked : switch_requests_.asked) {
    const std::uint32_t channel = switch_requests_.best[asked].channel;
    switch_requests_.best[asked] = {};
    const std::uint32_t port = channel / rules_.virtual_channels, number = channel % rules_.virtual_channels;
    const std::uint32_t output = first_port + asked, input = port - first_port;
    inputs_.next_port[port] = asked + 1 == num_ports_ ? 0 : asked + 1;
    outputs_.next_port[output] = input + 1 == num_ports_ ? 0 : input + 1;
    inputs_.next_channel[port] = number + 1 == rules_.virtual_channels ? 0 : number + 1;
    inputs_.wait_switch[port] &= ~(1U << number);
    --live_[router];
    --totals_.waiting;
    pass(channel, output);
  }
  switch_requests_.asked.clear();
}

}  // namespace orrery::network::flit
