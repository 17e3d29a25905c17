#include "switching.hpp"

#include <algorithm>
#include <tuple>

#include "orrery/base/mix.hpp"

namespace orrery::network {
namespace {

/// Any number gives an order. With this one, cases of ns-3 keep bounds that come from four orders at random.
constexpr std::uint64_t order_of_arrivals = 4;

}  // namespace

PacketSwitching::PacketSwitching(const NodeServices& services, QueueDiscipline& queues, HostTransport& hosts,
                                 Reductions* reductions)
    : services_(services), queues_(queues), hosts_(hosts), reductions_(reductions) {
  const PacketRules& rules = services.system.rules;
  gathers_ = rules.queues()->has_queues && !rules.transport->has_own_queues && !services.events.in_scheduling_order();
}

void PacketSwitching::gather(Port& in, Port& out, std::uint32_t slot) {
  const auto time = static_cast<std::uint64_t>(services_.events.now().ps());
  const std::uint64_t key = mix(services_.system.rules.seed + order_of_arrivals, time);
  arrived_.push_back({mix(key, std::uint64_t{in.node} << 16U | in.number), &in, &out, slot});
}

void PacketSwitching::note_end(Port& port) {
  if (services_.ports.is_host(port)) return services_.ports.end_transmission(port);
  ended_.push_back(&port);
}

void PacketSwitching::handle_gathered() {
  if (arrived_.size() > 1)
    std::ranges::sort(arrived_, {},
                      [](const Arrived& one) { return std::tuple(one.key, one.in->node, one.in->number); });
  for (const Arrived& one : arrived_)
    if (one.out->is_down)  // its link has failed at this time
      services_.ports.drop(*one.out, one.slot);
    else
      queues_.admit(*one.in, *one.out, one.slot);
  arrived_.clear();
  for (Port* const port : ended_) services_.ports.end_transmission(*port);
  ended_.clear();
}

void PacketSwitching::arrive(std::uint32_t node, std::uint32_t number, std::uint32_t slot) {
  Port& in = services_.ports.at(node, number);
  Packet& packet = services_.packets[slot];
  if (in.is_down) return services_.ports.drop(in, slot);
  if (packet.is_pfc_frame()) return services_.ports.obey(in, slot);
  if (packet.destination == node) {
    queues_.pass(in, packet);
    if (packet.is_of_reduction()) [[unlikely]]
      return reductions_->receive(in, slot);
    return hosts_.receive(in, slot);
  }
  packet.port = static_cast<std::uint16_t>(number);
  Port* const out = services_.hops.find(node, packet);
  if (out == nullptr) {
    queues_.pass(in, packet);
    return services_.ports.drop(in, slot);
  }
  if (gathers_) [[unlikely]]
    return gather(in, *out, slot);
  queues_.admit(in, *out, slot);
}

void PacketSwitching::fail_link(std::uint32_t node, std::uint32_t link) {
  const auto ends = services_.system.graph.ports(node);
  for (std::uint32_t number = 0; number < ends.size(); ++number)
    if (ends[number].link == link) services_.ports.fail_link(services_.ports.at(node, number));
}

}  // namespace orrery::network
