#pragma once

#include "egress_marks.hpp"
#include "packet/node_services.hpp"
#include "queue_discipline.hpp"

namespace orrery::network {

/// Switches whose ports share a buffer, and pause the ports before them (PFC) when it fills. The rules come from the
/// switches of the RoCE modules of ns-3 (docs/packet-network.md, Switches).
class SharedBuffers final : public QueueDiscipline {
 public:
  explicit SharedBuffers(const NodeServices& services) : services_(services), marks_(services) {}

  void admit(Port& in, Port& out, std::uint32_t slot) override;
  void admit_made(Port& in, Port& out, std::uint32_t slot) override;
  void serve(Port& out) override;
  void send(Port& out, std::uint32_t slot) override { services_.ports.transmit(out, slot); }
  std::uint32_t take(Port& out) override { return services_.ports.dequeue(out); }
  std::string find_leak(bool has_waiting) const override;

 private:
  std::int64_t threshold(const Port& port) const;
  std::int64_t used(const Port& port) const;
  bool count(Port& in, std::uint32_t bytes);
  void pause_if_full(Port& in);

  NodeServices services_;
  EgressMarks marks_;
};

}  // namespace orrery::network
