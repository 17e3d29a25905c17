#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "orrery/base/archive.hpp"
#include "orrery/base/event_place.hpp"
#include "orrery/base/hosting.hpp"
#include "orrery/base/overrun.hpp"
#include "orrery/network/credit_waits.hpp"
#include "orrery/network/flit_records.hpp"
#include "orrery/network/message.hpp"
#include "orrery/network/options.hpp"
#include "orrery/network/record.hpp"
#include "orrery/pdes/scheduler.hpp"
#include "orrery/topology/topology.hpp"

namespace orrery::network {

struct PacketRecords;

/// The logical processes of a network that live on one rank. NPUs of the rank hand messages to it, and it hands them on
/// to processes and NPUs of any rank.
class MessageNetwork {
 public:
  virtual ~MessageNetwork() = default;

  /// Schedules what happens without a message, at time 0 of a run that does not go on from a checkpoint.
  virtual void start() {}
  /// Sends a message of an NPU of this rank. `call` is an event of the source for stage server; this sets its target,
  /// kind and node.
  virtual void send(const Message& message, pdes::Event call) = 0;
  /// Sends a message that has a place among simultaneous ones (Rules::orders_messages). `place`: place of what hands
  /// the message on if the first link is free; what ends the service there comes directly after it.
  virtual void send_in_order(const Message& message, pdes::Event call, const EventPlace&) { send(message, call); }
  /// Sends a message with Message::combining to a switch, which hands the result to all `destinations` in the dimension
  /// group of the source. `message.destination` is another NPU there.
  virtual void multicast(const Message& message, std::vector<NpuId> destinations, pdes::Event call) = 0;
  /// Returns when no message is on the circuits of an NPU of this rank that a change of the configuration ends: `now`
  /// or later (O1). Messages that wait for such a circuit count.
  virtual Time drained(NpuId, std::uint32_t /*before*/, std::uint32_t /*after*/, Time now) const { return now; }
  /// Handles an event for a process of this rank.
  virtual void serve(const pdes::Event& event) = 0;
  /// Returns how far an event of a process of this rank reaches (pdes::Model::scope).
  virtual pdes::Scope scope(const pdes::Event&) const { return pdes::Scope::anywhere; }
  /// Fetches what an event for a process of this rank needs (pdes::Model::prefetch).
  virtual void prefetch(const pdes::Event&) const {}
  /// Ends a time: the processes of this rank, or of a cell of it, have handled all events of this time.
  virtual void settle() {}
  /// Returns the message of an event `Delivery::arrived`, and forgets it.
  virtual Message take(const pdes::Event& event) = 0;
  /// Returns the place of an event by which the network tells an NPU of a message, and forgets it; unknown without
  /// Rules::orders_messages.
  virtual EventPlace take_place(const pdes::Event&) { return {}; }
  /// Keeps a message that has come with an event of another rank: see pdes::Model::unpack.
  virtual void unpack(pdes::Event& event, std::span<const std::byte> bytes) = 0;

  // For checkpoints.
  /// Returns the rank on which a process of any rank lives.
  virtual Rank host_of(LpId process) const = 0;
  /// Returns the processes of this rank that have done anything, ascending, and gets ready to write their states.
  virtual std::vector<LpId> used() = 0;
  /// Returns what `unpack` needs to know of a pending event of a process or of an NPU of this rank; empty if that is
  /// nothing. It knows no slots, because those of another rank will be others.
  virtual std::vector<std::byte> pack(const pdes::Event& event) const = 0;
  /// Writes the state of a process of this rank, which follows `used`, or reads it, which follows `unpack` for its
  /// events.
  virtual void serialize(LpId process, Archive& archive) = 0;

  /// Returns one record per link of this rank that carried data, in ascending link order.
  virtual std::vector<LinkRecord> records() const = 0;
  /// Returns what is kept of messages and queues of this rank (PacketRecording); nothing by default.
  virtual PacketRecords packet_records() const;
  /// Returns one record per link of this rank in dimensions that are simulated flit by flit, by dimension, group and
  /// link, of those that carried flits.
  virtual std::vector<FlitRecord> flit_records() const { return {}; }
  /// Returns which packets wait at devices of this rank for credits, when no event is left; none by default.
  virtual std::vector<CreditWait> credit_waits() const { return {}; }
  /// Returns what is wrong when no event is left and all messages have come: packets that are nowhere, or buffers that
  /// are not empty. Empty if all is well.
  virtual std::string find_leak() const { return {}; }
};

/// What the part of a network on one rank works with. All of it outlives the part.
struct RankPart {
  pdes::Scheduler& kernel;
  std::span<const NpuId> npus;  ///< NPUs of this rank, ascending
  Hosting hosting;
  LpId first_process;               ///< id of the network's first logical process
  std::optional<Overrun>& overrun;  ///< takes an overrun if it has no earlier one
};

/// A network whose messages pass through logical processes, as all ranks know it.
class SimulatedNetwork {
 public:
  virtual ~SimulatedNetwork() = default;

  /// Returns the number of logical processes, on all ranks together.
  virtual std::uint32_t num_processes() const = 0;
  /// Returns the least time from an event of a process to the events that follow from it; max() if there are no
  /// processes.
  virtual Time least_relay_delay() const = 0;
  /// Returns the least time from an event of a process to the events on other ranks that follow from it; max() if
  /// nothing passes between ranks. O(NPUs * dimensions) for shapes, O(links) for graphs.
  virtual Time relay_delay_between_ranks(const Hosting& hosting) const = 0;
  /// Returns the least time from an event of a process to an event of an NPU, if processes answer NPUs of their own
  /// rank only; none if they answer any NPU, after the relay delay.
  virtual std::optional<Time> own_answer_delay() const { return {}; }
  /// Returns the least time from an event of a process to a notice for the source of a request, which is of its own
  /// rank; none if there are no requests (Message::Request). Other answers come after the relay delay.
  virtual std::optional<Time> notice_delay() const { return {}; }
  /// Returns whether all messages among these NPUs pass processes of NPUs of a set only, as far as it is known.
  /// `is_in`: whether an NPU is one of the set.
  virtual bool keeps_within(std::span<const NpuId>, const std::function<bool(NpuId)>&) const { return false; }
  /// Returns the NPU that a process belongs to: it lives on the same rank, and in the same cell. None if a process
  /// belongs to several; then a rank has one cell.
  virtual std::optional<NpuId> owner_of(std::uint32_t) const { return {}; }
  /// Makes the processes of one rank. The network must outlive them.
  virtual std::unique_ptr<MessageNetwork> on_rank(const RankPart& part) const = 0;
};

/// Makes the network that the options choose. The topology must outlive it. Returns null for a model that computes the
/// delay of each message without logical processes (DelayModel). Throws Error (bad_input) if the topology is too large
/// for the model.
std::unique_ptr<const SimulatedNetwork> make_network(const topology::Topology& topology, const Options& options);

}  // namespace orrery::network
