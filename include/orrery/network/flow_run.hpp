#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "orrery/base/time.hpp"
#include "orrery/network/flow_records.hpp"
#include "orrery/network/packet_graph.hpp"
#include "orrery/network/packet_recording.hpp"
#include "orrery/network/packet_router.hpp"
#include "orrery/network/packet_rules.hpp"
#include "orrery/network/reduction_trees.hpp"
#include "orrery/parallel/communicator.hpp"

namespace orrery::network {

/// A message of a list of flows.
struct FlowSpec {
  std::uint32_t source = 0, destination = 0;  ///< nodes, which are different hosts
  std::uint64_t bytes = 0;
  Time start = {};                            ///< start time; with `after`, the delay after the last of these has ended
  std::uint32_t ports = 0;                    ///< source port | destination port << 16
  std::uint64_t window = 0;                   ///< bytes; 0: none
  Time round_trip = {};                       ///< round trip of a packet that is alone
  std::vector<std::uint32_t> after = {};      ///< flows that end at its source
  std::int32_t label = FlowRecord::no_label;  ///< index into FlowScenario::labels
  static constexpr std::uint32_t any_connection = ~0U;  ///< the transport chooses it
  std::uint32_t connection = any_connection;            ///< TCP: among those of its hosts
};

/// A reduction of a list, which switches carry out. The list is one communicator: its operations have the numbers of
/// their places in the order of starts and of the list.
struct ReductionSpec {
  std::vector<std::uint32_t> hosts;  ///< ascending
  std::vector<Time> starts;          ///< [hosts]
  std::uint64_t bytes = 0;
  std::uint32_t source = ReductionTrees::none;  ///< host whose data all others get (broadcast); none: all contribute
  std::uint32_t tree = 0;  ///< index into FlowScenario::trees, or which of the trees of its hosts it takes
};

/// Flows over a packet network.
struct FlowScenario {
  PacketGraph graph;
  PacketRules rules;
  std::vector<LinkFailure> failures;  ///< ascending in time
  RouteRules routes;
  std::vector<FlowSpec> flows;
  std::vector<ReductionSpec> reductions = {};
  std::vector<ReductionTrees::Branches> trees = {};  ///< trees of the reductions; empty: those of their hosts
  PacketRecording recording = {};
  std::vector<std::string> labels = {};  ///< labels of flows, in the order in which they come first
  std::string file = {};                 ///< file that describes the flows, for messages
};

/// How events of one time are ordered.
enum class EventOrder : std::uint8_t {
  by_system,      ///< numbers of the nodes that cause them, on any number of ranks
  by_scheduling,  ///< as they were scheduled, as ns-3 does, on one rank
};

/// When a flow began and ended. A time before zero: never.
struct FlowTimes {
  static constexpr Time never = Time::from_ps(-1);
  Time start = never, received = never, acknowledged = never;
  Time alone = {};  ///< from start to received in an empty network: time_alone
};

/// When a reduction began at its first host, and when its result was at its first and last host. A time before zero:
/// never.
struct ReductionTimes {
  Time start = FlowTimes::never, first_end = FlowTimes::never, end = FlowTimes::never;
};

/// What a port of the graph has done.
struct PortRecord {
  std::uint32_t node = 0, peer = 0;
  std::uint64_t packets = 0, bytes = 0;  ///< sent
  Time busy;
  std::uint64_t marks = 0, drops = 0, pauses = 0;  ///< packets marked, packets dropped, pause frames received
  std::uint64_t deepest_queue = 0;                 ///< bytes of packets that waited
  std::uint64_t trims = 0;                         ///< packets of which only the header went on
  Time credit_wait;                                ///< free, with packets to send, and without credit for them
};

struct FlowResults {
  std::vector<FlowTimes> flows;                 ///< [flows]
  std::vector<ReductionTimes> reductions = {};  ///< [reductions]
  std::vector<PortRecord> ports;                ///< ports of all nodes, ascending in node and port
  PacketRecords records;                        ///< without flows; a link is an index into `ports`
  std::uint64_t events = 0;
};

/// What a packet that is alone meets on the way between two hosts.
struct PathFigures {
  Time round_trip;               ///< twice the delays, and a payload's time at each link, in whole ns
  std::uint64_t least_rate = 0;  ///< bits per second; 0: there is no way
  /// Returns the bytes of payload that fill the way there and back.
  std::uint64_t bandwidth_delay_product() const;
};
/// Follows the route of a flow at time 0. O(hops).
PathFigures follow_path(const PacketGraph& graph, const PacketRouter& router, const PacketRouter::FlowKey& key,
                        std::uint32_t payload);

/// Returns what a message that begins now takes until its last byte is at its destination if nothing else is on the
/// links of its route, and neither a window nor a congestion control holds it back; max() if there is no way. O(hops).
Time time_alone(const PacketGraph& graph, const PacketRouter& router, const PacketRules& rules,
                const PacketRouter::FlowKey& key, std::uint64_t bytes, Time now);

/// Computes the windows of flows by PacketRules::window.
class FlowWindows {
 public:
  struct Window {
    std::uint64_t bytes = 0;  ///< 0: none
    Time round_trip;          ///< round trip of a packet that is alone
  };

  /// All of it outlives it. O(hosts^2 hops) for the largest path, else O(1).
  FlowWindows(const PacketGraph& graph, const PacketRouter& router, const PacketRules& rules);

  /// Returns the window of a flow. O(hops).
  Window find(const PacketRouter::FlowKey& key) const;

 private:
  const PacketGraph& graph_;
  const PacketRouter& router_;
  const PacketRules& rules_;
  PathFigures largest_;  ///< figures of the pair with the largest product
};

/// Simulates a scenario on all ranks. Returns the same results on all of them, but for the records, which only rank 0
/// gets. Collective. Throws Error (bad_input) if
/// a flow has no way or depends on flows that do not end at its source.
FlowResults run_flows(const FlowScenario& scenario, parallel::Communicator& world,
                      EventOrder order = EventOrder::by_system);

}  // namespace orrery::network
