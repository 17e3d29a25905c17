#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "orrery/base/archive.hpp"
#include "orrery/base/time.hpp"
#include "orrery/network/flow_records.hpp"
#include "orrery/network/packet_recording.hpp"
#include "packet.hpp"

namespace orrery::network {

/// The queue of one port over time, in a bounded number of equal intervals. When time goes beyond the last interval,
/// each becomes twice as long, and two become one. So the records are those that intervals of the final length would
/// have given from the start.
class QueueHistory {
 public:
  /// What happened in an interval.
  struct Bin {
    unsigned __int128 waiting = 0;  ///< bytes times ps
    std::uint64_t deepest = 0;
    Time stopped;
    std::uint32_t marks = 0;
  };

  explicit QueueHistory(std::uint32_t most_bins) : most_bins_(most_bins) {}

  /// Sets how many bytes wait from now on.
  void set_depth(Time now, std::uint64_t bytes);
  void add_mark(Time now) { ++bin_at(now).marks; }
  /// Begins a pause; `resume` ends it.
  void pause(Time now);
  void resume(Time now);

  const std::vector<Bin>& bins() const { return bins_; }
  std::uint32_t shift() const { return shift_; }
  /// Returns what is known of the pauses, but for the link.
  const PauseRecord& pauses() const { return pauses_; }
  void serialize(Archive& archive);

 private:
  Bin& bin_at(Time time);
  /// Calls add(bin, part) for each interval that a span of time meets, with the part in it.
  template <class Add>
  void spread(Time from, Time to, Add add);

  std::uint32_t most_bins_;
  std::uint32_t shift_ = 10;
  std::vector<Bin> bins_;
  std::uint64_t depth_ = 0;
  Time since_;          // when it became this deep
  Time stopped_since_;  // when the pause began
  bool is_stopped_ = false;
  PauseRecord pauses_;
};

/// What the ports of one rank keep if PacketRecording asks for it. Ports are numbered over all nodes.
class PacketRecorder {
 public:
  PacketRecorder(const PacketRecording& what, std::size_t num_ports) : what_(what), ports_(num_ports) {}

  /// Takes note of a packet that has come into the queue of a port, or leaves it. `bytes`: that wait then.
  void enqueue(std::size_t port, Time now, std::uint64_t bytes);
  void dequeue(std::size_t port, const Packet& packet, Time now, std::uint64_t bytes);
  /// Takes note that the packet that came last leaves the queue, but not by the port.
  void take_last(std::size_t port, Time now, std::uint64_t bytes);
  /// Takes note that the packet at a place in the queue of a port overtakes those before it.
  void overtake(std::size_t port, std::size_t place);
  /// Takes note of a packet that leaves by a port from one time to another.
  void transmit(std::size_t port, const Packet& packet, Time begin, Time end);
  void mark(std::size_t port, Time now);
  void pause(std::size_t port, Time now, bool begins);

  /// Adds the records of a port, whose link has this number in the results.
  void collect(std::size_t port, std::uint32_t link, PacketRecords& records) const;
  void serialize(std::size_t port, Archive& archive);

 private:
  /// A message at a port.
  struct Use {
    std::uint64_t packets = 0;
    Time first = Time::max(), last, waited;
  };
  struct PortHistory {
    explicit PortHistory(std::uint32_t most_bins) : queue(most_bins) {}

    QueueHistory queue;
    std::deque<Time> came;                        // of the packets that wait, first come first
    std::unordered_map<std::uint64_t, Use> uses;  // by source and number of the message
  };
  PortHistory& at(std::size_t port);
  Use* use_of(std::size_t port, const Packet& packet);

  PacketRecording what_;
  std::vector<std::unique_ptr<PortHistory>> ports_;
};

}  // namespace orrery::network
