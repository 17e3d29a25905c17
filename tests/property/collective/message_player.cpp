#include "message_player.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

namespace orrery::collective::test {

class MessagePlayer::Transport final : public CollectiveTransport {
 public:
  Transport(MessagePlayer& player, std::uint32_t member, Time now) : player_(player), member_(member), now_(now) {}

  Time now() const { return now_; }

  void send(std::uint32_t to, Bytes size, StepId step, Payload payload, std::uint32_t own_step) override {
    const bool clears = payload == Payload::clear_to_send;
    if (!clears) player_.sent_ += size;
    const Time delivered = now_ + player_.delays_.link(member_, to, size);
    player_.at(delivered, to, [&player = player_, to, from = member_, step, clears](Transport& transport) {
      player.members_[to].receive(from, step, clears, transport.now(), transport);
    });
    if (payload == Payload::acknowledged_data) wake({step.service, own_step}, delivered, false);
  }

  void send_to_switch(std::span<const MessageProgram::Receiver> members, Bytes size, Bytes result, StepId step,
                      Payload payload, std::uint32_t) override {
    if (payload != Payload::clear_to_send) player_.sent_ += size;
    for (const Receiver& to : members) {
      AtSwitch& here = player_.at_switch_[{to.member, step.service, step.step}];
      here.came.emplace_back(member_, now_);
      here.up = std::max(here.up, size);
      if (++here.count < members.size()) continue;
      Time delivered = Time::zero();
      for (const auto& [from, when] : here.came)
        delivered = std::max(delivered, when + player_.delays_.through_switch(from, to.member, here.up, result));
      player_.at(delivered, to.member, [&player = player_, to = to.member, from = member_, step](Transport& transport) {
        player.members_[to].receive(from, step, false, transport.now(), transport);
      });
    }
  }

  void wake(StepId step, Time time, bool /*reduces*/) override {
    player_.at(time, member_, [&player = player_, member = member_, step](Transport& transport) {
      player.members_[member].wake(step, transport.now(), transport);
    });
  }

 private:
  MessagePlayer& player_;
  std::uint32_t member_;
  Time now_;
};

MessagePlayer::MessagePlayer(std::shared_ptr<const MessageProgram> program, std::uint32_t num_members, bool rendezvous,
                             LinkDelays delays)
    : delays_(std::move(delays)), completions_(num_members) {
  for (std::uint32_t m = 0; m < num_members; ++m) members_.emplace_back(program, m, rendezvous);
}

void MessagePlayer::at(Time time, std::uint32_t member, Action action) {
  events_.push({time, order_++, member, std::move(action)});
}

std::vector<Time> MessagePlayer::run(const std::vector<Time>& arrivals) {
  for (std::uint32_t m = 0; m < arrivals.size(); ++m)
    at(arrivals[m], m, [this, m](Transport& transport) { members_[m].begin(transport.now(), transport); });
  while (!events_.empty()) {
    const Event event = events_.top();
    events_.pop();
    Transport transport(*this, event.member, event.time);
    const bool was_done = members_[event.member].is_done();
    event.action(transport);
    if (members_[event.member].is_done() && !was_done) completions_[event.member] = event.time;
  }
  for (const MemberRun& member : members_) {
    EXPECT_TRUE(member.is_done());
    EXPECT_FALSE(member.has_unsent_data());
  }
  return completions_;
}

}  // namespace orrery::collective::test
