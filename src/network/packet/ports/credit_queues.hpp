#pragma once

#include "egress_marks.hpp"
#include "link_credits.hpp"
#include "packet/node_services.hpp"
#include "queue_discipline.hpp"

namespace orrery::network {

/// Nodes that send a packet only if the end of the link has room for it (docs/packet-network.md, Credits). Each link
/// has a buffer of its own at its end.
class CreditQueues final : public QueueDiscipline {
 public:
  explicit CreditQueues(const NodeServices& services)
      : services_(services), marks_(services), credits_(services.system.graph, services.system.rules) {}

  void admit(Port& in, Port& out, std::uint32_t slot) override;
  void serve(Port& out) override;
  void pass(const Port& in, const Packet& packet) override { return_credit(in, packet); }
  void fail(Port& out) override { services_.ports.kick(out); }
  void take_credit(const pdes::Event& event) override;
  void send(Port& out, std::uint32_t slot) override;
  std::uint32_t take(Port& out) override;
  bool may_send(Port& out, PacketQueue& queue) override;
  bool may_send(const Port& out, const NextPacket& next) override;
  std::vector<CreditWait> credit_waits() const override;
  std::string find_leak(bool has_waiting) const override;
  void serialize(Port& port, Archive& archive) override { credits_.serialize(services_.ports.index_of(port), archive); }

 private:
  std::uint8_t channel_for(const Port& out, const Packet& packet) const;
  void return_credit(const Port& in, const Packet& packet);
  CreditWait wait_of(const Port& out, const Packet& packet) const;
  std::vector<std::int64_t> waiting_bytes() const;

  NodeServices services_;
  EgressMarks marks_;
  LinkCredits credits_;
};

}  // namespace orrery::network
