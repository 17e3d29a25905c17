#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "orrery/base/archive.hpp"
#include "orrery/base/last_arrival.hpp"
#include "orrery/network/flow_records.hpp"
#include "orrery/network/reduction_trees.hpp"
#include "orrery/pdes/event.hpp"
#include "packet/node_services.hpp"
#include "packet/ports/queue_discipline.hpp"
#include "packet/transports/packet_user.hpp"

namespace orrery::network {

/// Operations of trees of switches that reduce, at the hosts and switches of one rank (docs/reduction.md). A packet of
/// an operation has the next node as its destination, and names its place there. All state belongs to a node.
class Reductions {
 public:
  /// The arguments must outlive it, and the system has trees.
  Reductions(const NodeServices& services, QueueDiscipline& queues);

  /// Begins an operation at a host of this rank.
  void begin(const ReductionRequest& request);
  // These two are not inlined, so that the path of all other packets stays short.
  /// Takes a packet of an operation that has come to its next node by a port.
  [[gnu::noinline]] void receive(Port& in, std::uint32_t slot);
  /// Sends a packet to which a switch has added all contributions: an event of kind `addition`.
  [[gnu::noinline]] void send_on(const pdes::Event& event);

  /// Returns how many packets wait for their operations.
  std::size_t num_waiting() const;
  /// Returns which operation is not over when no event is left. Empty if all are.
  std::string find_leak() const;
  /// Adds the records of the switches of this rank.
  void collect(std::vector<ReductionRecord>& records) const;
  /// Writes or reads the state of a node.
  void serialize(std::uint32_t node, Archive& archive);

 private:
  /// Operations of one queue are in the order of their numbers, then of their places.
  struct OperationId {
    std::uint64_t number = 0;
    std::uint32_t place = 0;

    friend auto operator<=>(const OperationId&, const OperationId&) = default;
  };
  struct AtHost {
    OperationId id;
    std::uint64_t contributed = 0, bytes = 0;
    std::uint32_t num_packets = 0;
    std::uint32_t sent = 0, back = 0;  ///< packets
    LastArrival last;
  };
  /// Contributions of the children of a place to a packet.
  struct Slot {
    std::uint32_t count = 0;
    std::uint32_t size = 0;  ///< bytes of the largest contribution
  };
  struct AtSwitch {
    static constexpr std::uint32_t unknown = ~std::uint32_t{0};

    OperationId id;
    std::uint32_t num_packets = unknown;  ///< packets in all, which the last one tells
    std::uint32_t sent = 0;               ///< packets that have left, or will do so after the delay
    LastArrival last;
    std::vector<Slot> slots = {};  ///< [number of the packet mod slots]
    PacketQueue complete = {};     ///< packets that wait until the switch carries out the operation
  };
  struct Queue {
    std::vector<AtHost> at_host;      ///< operations that have begun, the first of which sends
    std::vector<AtSwitch> at_switch;  ///< operations of which a packet has come, the first of which are carried out
    std::uint32_t node = 0;           ///< index of its node
  };
  struct Node {
    std::uint32_t slots_in_use = 0;
    ReductionRecord done;
  };
  using QueuesOfNodes = std::vector<std::pair<std::uint32_t, std::uint32_t>>;  // nodes and queues, ascending

  Queue& queue_of(const ReductionTrees::Place& place) { return queues_[place.queue]; }
  Node& node_of(const Queue& queue) { return nodes_[queue.node]; }
  void send_more(Queue& queue);
  void receive_result(std::uint32_t slot);
  void add(Port& in, std::uint32_t slot);
  AtSwitch& operation_of(Queue& queue, const OperationId& id);
  void complete(Queue& queue, AtSwitch& operation, std::uint32_t slot);
  void send_after_delay(Queue& queue, AtSwitch& operation, std::uint32_t slot);
  void carry_out_next(Queue& queue, std::size_t at);
  void spread(const ReductionTrees::Place& place, Port& in, std::uint32_t slot);
  void serialize(AtSwitch& operation, Archive& archive);

  NodeServices services_;
  QueueDiscipline& queue_discipline_;
  const ReductionTrees& trees_;
  std::vector<Queue> queues_;
  std::vector<Node> nodes_;  // of the queues, ascending
  QueuesOfNodes of_nodes_;
};

}  // namespace orrery::network
