#pragma once

#include <cstdint>
#include <vector>

#include "egress_marks.hpp"
#include "orrery/base/time.hpp"
#include "packet/node_services.hpp"
#include "packet/transports/uec_rules.hpp"
#include "queue_discipline.hpp"

namespace orrery::network {

/// The queues of Ultra Ethernet: each port of a switch has its own. Data that do not fit are trimmed to their headers,
/// or dropped. Port::frames holds what goes before data: control packets and trimmed packets.
class TrimmingQueues final : public QueueDiscipline {
 public:
  explicit TrimmingQueues(const NodeServices& services);

  /// Returns what hosts and queues share.
  const UecRun& run() const { return run_; }

  void admit(Port& in, Port& out, std::uint32_t slot) override;
  void serve(Port& out) override;
  void send(Port& out, std::uint32_t slot) override { services_.ports.transmit(out, slot); }
  std::uint32_t take(Port& out) override { return services_.ports.dequeue(out); }
  std::string find_leak(bool) const override { return {}; }
  void serialize(Port& port, Archive& archive) override;

 private:
  /// The data packet that a port of a switch sends, as long as it does.
  struct Service {
    Time until = Time::from_ps(-1);
    std::uint32_t size = 0;
  };

  void trim(Port& out, std::uint32_t slot);

  NodeServices services_;
  EgressMarks marks_;
  UecRun run_;
  std::vector<Service> transmissions_;  // [ports]
};

}  // namespace orrery::network
