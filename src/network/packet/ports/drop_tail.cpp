#include "egress_marks.hpp"
#include "orrery/network/packet_rules.hpp"
#include "queue_discipline.hpp"
#include "queue_limits.hpp"

namespace orrery::network {
namespace {

/// Queues of the ports of switches that drop what does not fit. The packet that leaves does not count.
class DropTail final : public QueueDiscipline {
 public:
  explicit DropTail(const NodeServices& services) : services_(services), egress_(services), limits_(services) {}

  void admit(Port&, Port& out, std::uint32_t slot) override {
    Ports& ports = services_.ports;
    const std::uint64_t waiting = out.queue.bytes + services_.packets[slot].size;
    if (waiting > limits_.of(ports.index_of(out))) return ports.drop(out, slot);
    ports.enqueue(out, slot);
  }
  void serve(Port& out) override {
    const std::uint32_t slot = services_.ports.dequeue(out);
    egress_.append_telemetry(out, services_.packets[slot]);
    services_.ports.transmit(out, slot);
  }
  void send(Port& out, std::uint32_t slot) override { services_.ports.transmit(out, slot); }
  std::uint32_t take(Port& out) override { return services_.ports.dequeue(out); }
  std::string find_leak(bool) const override { return {}; }

 private:
  NodeServices services_;
  EgressMarks egress_;
  QueueLimits limits_;
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
