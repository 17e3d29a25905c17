#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <tuple>
#include <vector>

#include "orrery/collective/member_run.hpp"
#include "orrery/collective/message_program.hpp"

namespace orrery::collective::test {

/// Delays of messages on links that are never busy, between members of a communicator.
struct LinkDelays {
  std::function<Time(std::uint32_t from, std::uint32_t to, Bytes size)> link;
  /// From a member through the switch to another one: the longer of what goes up and of what comes down counts.
  std::function<Time(std::uint32_t from, std::uint32_t to, Bytes up, Bytes down)> through_switch;
};

/// Lets every member of a collective carry out its part of a message program by itself (MemberRun). Messages and
/// wake-ups are events of one queue.
class MessagePlayer {
 public:
  MessagePlayer(std::shared_ptr<const MessageProgram> program, std::uint32_t num_members, bool rendezvous,
                LinkDelays delays);

  /// Returns when the members complete. Expects that all do, and that no data are left unsent.
  std::vector<Time> run(const std::vector<Time>& arrivals);
  /// Returns the bytes that all members have sent, without clears to send.
  Bytes sent() const { return sent_; }

 private:
  class Transport;
  using Action = std::function<void(Transport&)>;
  struct Event {
    Time time;
    std::uint64_t order = 0;
    std::uint32_t member = 0;
    Action action;
    bool operator>(const Event& other) const { return std::pair(time, order) > std::pair(other.time, other.order); }
  };
  /// What the switch has for one member in one step.
  struct AtSwitch {
    std::uint32_t count = 0;
    Bytes up;
    std::vector<std::pair<std::uint32_t, Time>> came;  ///< member and time
  };

  void at(Time time, std::uint32_t member, Action action);

  LinkDelays delays_;
  std::vector<MemberRun> members_;
  std::vector<Time> completions_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint64_t order_ = 0;
  Bytes sent_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, AtSwitch> at_switch_;  ///< member, service, step
};

}  // namespace orrery::collective::test
