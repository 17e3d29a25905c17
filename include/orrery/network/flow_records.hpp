#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "orrery/base/time.hpp"

namespace orrery::network {

/// A message that a packet network has carried.
struct FlowRecord {
  static constexpr Time never = Time::from_ps(-1);
  static constexpr std::int32_t no_label = -1;

  std::uint32_t source = 0, destination = 0;  ///< NPUs, or hosts of a graph
  std::uint32_t number = 0;                   ///< among the messages of its source
  std::int32_t label = no_label;              ///< the group of its collective, or the label of a list of flows
  std::uint64_t bytes = 0;
  Time start = never, received = never;  ///< received: its last byte is at the destination
  Time alone = {};                       ///< from start to received in an empty network (EmptyNetwork)
};

/// The messages of one rank: those that begin there, and when messages that end there have come.
struct FlowRecords {
  struct Arrival {
    std::uint32_t source = 0, number = 0;
    Time received;
  };
  std::vector<FlowRecord> begun;
  std::vector<Arrival> arrivals;
};

/// What the packets with data of a message met at a link.
struct FlowLinkRecord {
  std::uint32_t link = 0;                ///< number of the link in the results
  std::uint32_t source = 0, number = 0;  ///< source and number of the message
  std::uint64_t packets = 0;
  Time first, last;  ///< when the first one came or began to leave, and when the last one had left
  Time waited;       ///< time in a queue of the network, summed over packets
};

/// What a port did in an interval of time.
struct QueueRecord {
  std::uint32_t link = 0;
  std::uint32_t bin = 0;          ///< number of the interval
  std::uint32_t shift = 0;        ///< the interval has 2^shift ps
  std::uint32_t marks = 0;        ///< packets that were marked
  std::uint64_t deepest = 0;      ///< most bytes that waited
  Time stopped;                   ///< time stopped by PFC pauses
  unsigned __int128 waiting = 0;  ///< bytes that waited, times ps

  /// Returns the bytes that waited, the mean over the interval.
  double mean() const { return std::ldexp(static_cast<double>(waiting), -static_cast<int>(shift)); }
};

/// The pauses of a port.
struct PauseRecord {
  std::uint32_t link = 0;
  std::uint64_t pauses = 0;
  Time total, longest, first, last;  ///< time stopped; when the first pause began and the last one ended
};

/// What a connection of TCP has done.
struct ConnectionRecord {
  std::uint32_t source = 0, destination = 0;  ///< NPUs, or hosts of a graph
  std::uint32_t number = 0;                   ///< among the connections from one to the other
  std::uint64_t segments = 0, repeated = 0;   ///< segments sent, and how many of them were sent again
  std::uint64_t timeouts = 0;
  Time round_trip = {};                         ///< smoothed round trip at the end; zero: never measured
  std::uint64_t greatest_window = 0;            ///< bytes
  std::uint64_t acknowledged = 0, offered = 0;  ///< bytes of the stream
  Time timeout = {};                            ///< retransmission time-out at the end

  friend bool operator==(const ConnectionRecord&, const ConnectionRecord&) = default;
};

/// What a switch has reduced.
struct ReductionRecord {
  std::int64_t node = 0;         ///< node, or in results of a run the number of the device (device_number)
  std::uint32_t most_slots = 0;  ///< slots in use at a time, from the first contribution until the sum leaves
  std::uint64_t operations = 0;  ///< operations whose last packet it has sent towards the root, or from the root
  std::uint64_t packets = 0;     ///< packets to which it has added all contributions
};

/// All that is recorded at one rank.
struct PacketRecords {
  FlowRecords flows;
  std::vector<FlowLinkRecord> links;
  std::vector<QueueRecord> queues;
  std::vector<PauseRecord> pauses;
  std::vector<ConnectionRecord> connections;
  std::vector<ReductionRecord> reductions;  ///< switches that have reduced, ascending in node
};

/// Orders the records of links, queues and pauses of all ranks by link, and gives all queues intervals of one length:
/// that of the longest. O(n log n).
void put_in_order(PacketRecords& records);

/// Puts arrivals into the records of their messages, which it orders by source and number. O(n log n).
std::vector<FlowRecord> join_arrivals(FlowRecords records);

/// The messages that were on a link at one time.
struct LinkMeeting {
  std::uint32_t link = 0;
  std::uint32_t at_once = 0;             ///< most messages at one time
  Time when = {};                        ///< the first such time
  std::uint64_t flows = 0;               ///< messages that passed the link in the whole run
  Time waited = {};                      ///< time that their packets waited for it, summed
  std::vector<FlowLinkRecord> met = {};  ///< those of `when`, by source and number
};

/// Returns the links on which the most messages met, those with the most first, then those that waited longer, then by
/// number: `most_links` at the most, and links with two messages at a time or more only. A message is on a link from
/// the arrival of its first packet until its last one has left. The records are in the order of put_in_order.
/// O(n log n).
std::vector<LinkMeeting> find_meetings(const std::vector<FlowLinkRecord>& links, std::size_t most_links);

/// How some times are spread. The p-th percentile is the least value that p per cent of the values do not exceed.
struct Spread {
  double mean = 0, p50 = 0, p90 = 0, p95 = 0, p99 = 0, p99_9 = 0, most = 0;
};

/// Messages that belong together, and how long they took.
struct FlowClass {
  enum class Kind : std::uint8_t { all, size, label };

  Kind kind = Kind::all;
  std::int32_t label = FlowRecord::no_label;      ///< label of Kind::label
  std::uint64_t least_bytes = 0, most_bytes = 0;  ///< sizes of its messages
  std::uint64_t flows = 0;                        ///< flows that have ended
  Spread time = {};                               ///< from start to the last byte, in ps
  Spread slowdown = {};                           ///< time over the time in an empty network
};

/// Returns the classes of the messages that have ended: all; ten ranges of sizes with about as many messages in each,
/// fewer if many messages are equal; and each label, ascending, if there are labels. Empty if there are no such
/// messages. O(n log n).
std::vector<FlowClass> classify(const std::vector<FlowRecord>& flows);

/// Returns how many times as long a message took as in an empty network.
double slowdown_of(const FlowRecord& flow);

}  // namespace orrery::network
