#pragma once

#include <cstdint>
#include <string>

#include "egress_marks.hpp"
#include "packet/node_services.hpp"
#include "queue_discipline.hpp"
#include "queue_limits.hpp"

namespace orrery::network {

/// A queue with a limit for each port, which sends its packets in their order. Derived classes decide which packets
/// enter it.
class PortQueues : public QueueDiscipline {
 public:
  void serve(Port& out) override {
    const std::uint32_t slot = services_.ports.dequeue(out);
    egress_.append_telemetry(out, services_.packets[slot]);
    services_.ports.transmit(out, slot);
  }
  void send(Port& out, std::uint32_t slot) override { services_.ports.transmit(out, slot); }
  std::uint32_t take(Port& out) override { return services_.ports.dequeue(out); }
  std::string find_leak(bool) const override { return {}; }

 protected:
  explicit PortQueues(const NodeServices& services) : services_(services), egress_(services), limits_(services) {}

  NodeServices services_;
  EgressMarks egress_;
  QueueLimits limits_;
};

}  // namespace orrery::network
