#include <algorithm>
#include <utility>

#include "host_transport.hpp"
#include "orrery/network/packet_rules.hpp"
#include "packet/fast_forward.hpp"
#include "roce_receiver.hpp"
#include "roce_sender.hpp"

namespace orrery::network {
namespace {

/// RDMA over Ethernet: each message is a flow with a window and a congestion control of its own.
class RoceTransport final : public HostTransport {
 public:
  RoceTransport(const NodeServices& services, QueueDiscipline& queues)
      : services_(services), sender_(services, queues, state_), receiver_(services, state_) {
    state_.nics.resize(services.ports.num_host_ports());
    state_.observer = &nobody_;
  }

  void send(const FlowRequest& request) override { sender_.send(request); }
  std::uint32_t next(Port& port) override { return sender_.next(port); }
  bool has_work(const Port& port) const override { return sender_.has_work(port); }
  void receive(Port&, std::uint32_t slot) override {
    if (services_.packets[slot].is_data()) return receiver_.receive_data(slot);
    sender_.receive_acknowledgement(slot);
  }
  void expire(const pdes::Event& event) override {
    if (event.kind == NodeEvents::port_timer) return sender_.wake(event);
    sender_.expire(event);
  }

  std::size_t num_waiting() const override {
    std::size_t sum = 0;
    for (const Nic& nic : state_.nics) sum += nic.acknowledgements.size;
    return sum;
  }
  std::unique_ptr<PortObserver> make_fast_forward(std::function<void(const pdes::Event&)> handle) override {
    const auto& [system, events, packets, ports, hops, user] = services_;
    if (!FastForward::is_possible(system, events)) return nullptr;
    auto made = std::make_unique<FastForward>(NetworkView{system, events, packets, ports, state_},
                                              MovableNetwork{packets, ports, state_}, events, std::move(handle));
    state_.observer = made.get();
    return made;
  }

  void begin_saving() override { receiver_.begin_saving(); }
  std::vector<std::byte> pack(const pdes::Event& event) const override { return sender_.pack(event); }
  void unpack(pdes::Event& event, std::span<const std::byte> bytes) override { sender_.unpack(event, bytes); }
  void serialize(std::uint32_t host, Archive& archive) override {
    std::uint64_t num_wakes = state_.flows.num_wakes;
    archive(num_wakes);
    state_.flows.num_wakes = std::max(state_.flows.num_wakes, num_wakes);
    for (std::uint32_t p = 0; p < services_.system.graph.ports(host).size(); ++p)
      sender_.serialize(services_.ports.at(host, p), archive);
    receiver_.serialize(host, archive);
  }

 private:
  NodeServices services_;
  FlowObserver nobody_;
  RoceState state_;
  RoceSender sender_;
  RoceReceiver receiver_;
};

}  // namespace

extern const TransportType roce_transport;
constinit const TransportType roce_transport{
    .name = "roce",
    .help = "RDMA over Ethernet: `routing` and `loss` say how packets get there",
    .make = make_transport<RoceTransport>,
};

}  // namespace orrery::network
