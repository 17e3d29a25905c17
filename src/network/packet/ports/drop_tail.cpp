#include "orrery/network/packet_rules.hpp"
#include "port_queues.hpp"

namespace orrery::network {
namespace {

/// Queues of the ports of switches that drop what does not fit. The packet that leaves does not count.
class DropTail final : public PortQueues {
 public:
  explicit DropTail(const NodeServices& services) : PortQueues(services) {}

  void admit(Port&, Port& out, std::uint32_t slot) override {
    Ports& ports = services_.ports;
    const std::uint64_t waiting = out.queue.bytes + services_.packets[slot].size;
    if (waiting > limits_.of(ports.index_of(out))) return ports.drop(out, slot);
    ports.enqueue(out, slot);
  }
};

}  // namespace

extern const DisciplineType drop_tail_discipline;
constinit const DisciplineType drop_tail_discipline{
    .name = "drop-tail",
    .help = "a queue for each port, which drops packets that do not fit",
    .make = [](const NodeServices& services) -> std::unique_ptr<QueueDiscipline> {
      return std::make_unique<DropTail>(services);
    },
    .has_queues = true,
};

}  // namespace orrery::network
