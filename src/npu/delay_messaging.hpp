#pragma once

#include <memory>
#include <vector>

#include "matcher.hpp"
#include "messaging.hpp"

namespace orrery::npu {

/// Messages of the congestion-unaware network. A message is one event, a delay after the data leave. It becomes known
/// when it is sent, which may be before its time or, if this NPU is ahead of others, after it.
class DelayMessaging final : public Messaging {
 public:
  /// If senders wait, the data of a send leave when the receiver has posted its receive and the clear to send is there.
  explicit DelayMessaging(bool senders_wait);

  void begin_send(Execution& npu, NodeId send, Time now) override;
  void begin_receive(Execution& npu, NodeId receive, Time now) override;
  bool admit(Execution& npu, pdes::Event& event) override;
  void handle(Execution& npu, const pdes::Event& event) override;
  LastArrival departure_of(const Execution& npu, const pdes::Event& event) const override;
  bool is_undecided() const override { return !undecided_.empty(); }
  pdes::Awaited awaited_by_undecided() const override;
  void forget_undecided() override { undecided_.clear(); }
  ActionTimes after_posted() const override { return posted_; }
  ActionTimes after_arriving() const override { return arriving_; }
  void serialize(Execution& npu, Archive& archive, std::span<const pdes::Event> pending,
                 const ResumedFrom* resumed_from) override;
  void for_each_posted(const std::function<void(ChannelKey, const PostedReceive&)>& visit) const override;

 private:
  /// A receive whose message may be there already, for all that this NPU knows.
  struct Undecided {
    NodeId receive;
    pdes::Awaited awaited;
  };
  using Clearances = Matcher<NodeId, pdes::Event>;

  void transfer(Execution& npu, NodeId send, Time now, Time there, const EventPlace& place);
  bool admit_data(Execution& npu, pdes::Event& event);
  bool admit_clear_to_send(Execution& npu, pdes::Event& event);
  void match(Execution& npu, pdes::Event& message, const PostedReceive& receive);
  void receive_at_once(Execution& npu, const pdes::Event& message, NodeId receive, Time now);
  bool decide(NodeId receive);
  void take_over(const NpuSpec& resumed, const NpuSpec& resumed_from);

  Matcher<PostedReceive, pdes::Event> receives_;  // posted receives, and messages that none waits for yet
  // If senders wait: sends that wait, and clear-to-send messages that no send waits for yet.
  std::unique_ptr<Clearances> clearances_;
  ActionTimes posted_, arriving_;
  std::vector<Undecided> undecided_;
};

}  // namespace orrery::npu
