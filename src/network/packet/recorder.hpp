#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "node_events.hpp"
#include "orrery/base/archive.hpp"
#include "orrery/base/time.hpp"
#include "orrery/network/flow_records.hpp"
#include "orrery/network/packet_recording.hpp"
#include "packet.hpp"
#include "port_observer.hpp"
#include "ports/port_table.hpp"

namespace orrery::network {

/// The queue of one port over time, in a bounded number of equal intervals. When time goes beyond the last interval,
/// each becomes twice as long, and two become one. The records do not depend on when that happens.
class QueueHistory {
 public:
  /// The events of an interval.
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
  /// Returns the pauses. Their link is not set.
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
  Time since_;          // time of the last change of the depth
  Time stopped_since_;  // begin of the pause
  bool is_stopped_ = false;
  PauseRecord pauses_;
};

/// Records what PacketRecording asks for at the ports of one rank.
class PacketRecorder final : public PortObserver {
 public:
  /// Events and ports must outlive it.
  PacketRecorder(const PacketRecording& what, const NodeEvents& events, const PortTable& ports)
      : what_(what), events_(events), table_(ports), ports_(ports.size()) {}

  void enqueues(const Port& port, const Packet& packet) override;
  void dequeued(const Port& port, const Packet& packet) override;
  void took_last(const Port& port) override;
  void overtook(const Port& port, std::size_t place) override;
  void transmits(const Port& port, const Packet& packet) override;
  void marked(const Port& port) override;
  void paused(const Port& port, bool begins) override;
  void collect(const Port& port, std::uint32_t link, PacketRecords& records) const override;
  void serialize(const Port& port, Archive& archive) override;

 private:
  /// A message at a port.
  struct Use {
    std::uint64_t packets = 0;
    Time first = Time::max(), last, waited;
  };
  struct PortHistory {
    explicit PortHistory(std::uint32_t most_bins) : queue(most_bins) {}

    QueueHistory queue;
    std::deque<Time> came;                        // arrivals of the packets that wait, in the order of the queue
    std::unordered_map<std::uint64_t, Use> uses;  // by source and number of the message
  };

  PortHistory& at(const Port& port);
  Use* use_of(const Port& port, const Packet& packet);

  PacketRecording what_;
  const NodeEvents& events_;
  const PortTable& table_;
  std::vector<std::unique_ptr<PortHistory>> ports_;
};

}  // namespace orrery::network
