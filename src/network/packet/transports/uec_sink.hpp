#pragma once

#include <cstdint>
#include <vector>

#include "orrery/base/archive.hpp"
#include "orrery/base/time.hpp"
#include "packet/packet.hpp"
#include "uec_rules.hpp"

namespace orrery::network {

/// A message under way, at its destination.
class UecSink {
 public:
  UecSink(const FlowId& flow, std::uint32_t port) : flow_(flow), port_(port) {}

  const FlowId& flow() const { return flow_; }
  std::uint32_t port() const { return port_; }  ///< number of the port by which its packets come
  bool has(std::uint32_t number) const;
  /// Returns whether all packets are there.
  bool is_over() const { return has_last_ && count_ == total_; }

  /// Takes a data packet. Returns whether to acknowledge it now; `is_from_it`: with what comes after it.
  bool take(const Packet& packet, bool& is_from_it);
  /// Turns a packet into its acknowledgement, but for its way.
  void acknowledge(Packet& packet, bool is_from_it) const;

  /// Notes the credit that the sender wants. Returns whether it wants more than before.
  bool want(std::int32_t target);
  /// Gives credit, in units. Returns how much there is in all.
  std::int32_t give(std::int32_t units) { return given_ += units; }
  std::int32_t wanted() const { return target_ - given_; }  ///< below 0: more was given than wanted

  enum class Queue : std::uint32_t { none, active, idle };
  struct Notes {
    Queue queue = Queue::none;  ///< queue of senders in which its sender waits for credit
    Time last_came;
  };
  Notes notes;
  void serialize(Archive& archive);

 private:
  void put(std::uint32_t number);

  FlowId flow_;
  std::uint32_t port_ = 0;
  std::uint32_t next_ = 0;   // all packets before it are there
  std::uint32_t count_ = 0;  // packets that are there
  std::uint32_t total_ = 0;
  std::uint32_t first_word_ = 0;
  std::vector<std::uint64_t> words_;  // a bit for each packet from 64 * first_word_ on
  std::uint64_t unacknowledged_ = 0;  // bytes since the last acknowledgement
  std::int32_t given_ = 0, target_ = 0;
  bool has_last_ = false, is_asked_ = false;
};

}  // namespace orrery::network
