#pragma once

#include <functional>
#include <memory>
#include <span>

#include "action_times.hpp"
#include "channel_key.hpp"
#include "execution.hpp"
#include "orrery/network/link_servers.hpp"
#include "orrery/npu/resumed_from.hpp"
#include "orrery/pdes/event.hpp"
#include "orrery/pdes/model.hpp"

namespace orrery::npu {

/// A receive that has been posted and waits for its message.
struct PostedReceive {
  NodeId node;
  Time since;
};

/// How an NPU carries out its sends and receives: matches messages with receives by their channels, waits for receivers
/// with rendezvous, and knows what its receives may lead to. One for each NPU.
class Messaging {
 public:
  virtual ~Messaging() = default;

  /// Begins a send, which holds a place of its resource.
  virtual void begin_send(Execution& npu, NodeId send, Time now) = 0;
  /// Begins a receive. Its message may have come before.
  virtual void begin_receive(Execution& npu, NodeId receive, Time now) = 0;

  // Where a message is one event of another NPU.
  /// See pdes::Model::admit.
  virtual bool admit(Execution& npu, pdes::Event& event);
  /// Handles an event that `admit` has let through.
  virtual void handle(Execution& npu, const pdes::Event& event);
  /// Returns who sent what such an event brings, and when.
  virtual LastArrival departure_of(const Execution& npu, const pdes::Event& event) const;

  // Where messages go over links.
  /// Takes in a message that is at this NPU. Returns whether a node has completed.
  virtual bool arrive(Execution& npu, const network::Message& message, Time now);

  /// Ends a time: the NPU has begun all that it begins at that time.
  virtual void settle(Execution&, Time) {}

  /// Returns whether receives have been posted of which it is not known whether their messages are there already. They
  /// then end at once, so that the NPU cannot go on before it is known.
  virtual bool is_undecided() const { return false; }
  /// Returns what must become known before these receives are decided.
  virtual pdes::Awaited awaited_by_undecided() const { return {}; }
  /// Forgets the undecided receives, when all of them are decided.
  virtual void forget_undecided() {}

  /// Returns the least delays from the messages of posted receives to what other ranks may notice.
  virtual ActionTimes after_posted() const = 0;
  /// Returns the least times of what other ranks may notice, because of messages that are known and on their way.
  virtual ActionTimes after_arriving() const { return {}; }
  /// Writes the state, or reads it and takes note again of what the NPU awaits. `pending`: the events to come for it.
  /// `resumed_from`: as for Npu::serialize.
  virtual void serialize(Execution& npu, Archive& archive, std::span<const pdes::Event> pending,
                         const ResumedFrom* resumed_from) = 0;
  /// Calls visit(channel, receive) for each posted receive, in no particular order.
  virtual void for_each_posted(const std::function<void(ChannelKey, const PostedReceive&)>& visit) const = 0;

 protected:
  /// Throws Error (bad_input) if a message has not the size of the receive that it is matched with.
  static void require_size(const Execution& npu, NodeId receive, Bytes size);
};

/// Returns the messaging of an NPU: over links where there are any, else by the delays of the network.
std::unique_ptr<Messaging> make_messaging(const Context& context);

}  // namespace orrery::npu
