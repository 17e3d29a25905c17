#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "packet/node_services.hpp"
#include "roce_state.hpp"

namespace orrery::network {

/// The receiving side of RoCE: hosts keep packets or drop those behind a gap, and acknowledge what comes
/// (docs/packet-network.md, Loss).
class RoceReceiver {
 public:
  /// The arguments must outlive it.
  RoceReceiver(const NodeServices& services, RoceState& state)
      : services_(services),
        state_(state),
        is_selective_(services.system.rules.loss == PacketLoss::selective),
        repeats_(services.system.rules.repeats()) {}

  void receive_data(std::uint32_t slot);

  void begin_saving();
  /// Writes or reads the messages that a host receives.
  void serialize(std::uint32_t host, Archive& archive);

 private:
  void receive_in_order(std::uint32_t slot);
  void receive_in_any_order(std::uint32_t slot);
  void repeat_answer(std::uint32_t slot);
  void answer(std::uint32_t slot, std::uint64_t expected, bool is_last, Packet::Kind kind);
  std::uint32_t reception_of(Packet& packet);
  void end(std::uint32_t reception, const Packet& packet);

  NodeServices services_;
  RoceState& state_;
  bool is_selective_, repeats_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> to_save_;  // hosts and slots, ascending, for a checkpoint
};

}  // namespace orrery::network
