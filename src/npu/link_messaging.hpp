#pragma once

#include <utility>
#include <vector>

#include "matcher.hpp"
#include "messaging.hpp"

namespace orrery::npu {

/// Messages over the links of the congestion-aware network. There an NPU awaits anything at any time
/// (pdes::Options::lps_run_ahead is off), so that what comes for it comes at its time.
class LinkMessaging final : public Messaging {
 public:
  void begin_send(Execution& npu, NodeId send, Time now) override;
  void begin_receive(Execution& npu, NodeId receive, Time now) override;
  void settle(Execution& npu, Time now) override;
  bool arrive(Execution& npu, const network::Message& message, Time now) override;
  ActionTimes after_posted() const override { return posted_; }
  void serialize(Execution& npu, Archive& archive, std::span<const pdes::Event> pending,
                 const ResumedFrom* resumed_from) override;
  void for_each_posted(const std::function<void(ChannelKey, const PostedReceive&)>& visit) const override;

 private:
  struct Clearance {};

  Matcher<PostedReceive, Bytes> receives_;  // posted receives, and the sizes of messages that none waits for yet
  // With rendezvous: sends that wait, and clear-to-send messages that no send waits for yet.
  Matcher<NodeId, Clearance> clearances_;
  // Sends that leave when the NPU has begun all that it begins at this time, and what sends their data.
  std::vector<std::pair<NodeId, EventPlace>> cleared_;
  ActionTimes posted_;
};

/// Puts a message of this NPU on its first link. Control messages do not count as traffic, as in the congestion-unaware
/// network. `place`: EventPlaces::next_sending.
void put_on_links(Execution& npu, const network::Message& message, Time now, const EventPlace& place);

/// Returns the event with which an NPU calls its first link. LinkServers sets its target, kind and node.
pdes::Event link_call(Execution& npu, Time now);

}  // namespace orrery::npu
