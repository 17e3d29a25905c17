#include "orrery/network/model.hpp"
#include "packet/messages.hpp"

namespace orrery::network {
namespace {

/// Every NPU with its ports, and every switch, is a logical process.
class PacketNetwork final : public SimulatedNetwork {
 public:
  PacketNetwork(const topology::Topology& topology, const Options& options) : plan_(topology, options) {}

  std::uint32_t num_processes() const override { return plan_.graph().num_nodes(); }
  Time least_relay_delay() const override { return plan_.least_relay(); }
  Time relay_delay_between_ranks(const Hosting& hosting) const override {
    return plan_.least_relay_between(place_nodes(plan_.graph(), hosting.of_npu));
  }
  std::optional<Time> own_answer_delay() const override { return Time::from_ps(1); }
  std::unique_ptr<MessageNetwork> on_rank(const RankPart& part) const override {
    return std::make_unique<PacketMessages>(plan_, part);
  }

 private:
  PacketPlan plan_;
};

}  // namespace

extern const ModelType packet_model;
constinit const ModelType packet_model{
    .name = "packet",
    .help = "messages are packets, which hosts and switches with buffers, pauses and marks pass on",
    .make = [](const topology::Topology& topology, const Options& options) -> std::unique_ptr<const SimulatedNetwork> {
      return std::make_unique<PacketNetwork>(topology, options);
    },
    .sends_packets = true,
};

}  // namespace orrery::network
