#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "orrery/pdes/scheduler.hpp"

namespace orrery::test_support {

/// A scheduler that keeps what it is asked for, in order, and does nothing with it. A test hands events to the logical
/// process itself.
class FakeScheduler final : public pdes::Scheduler {
 public:
  struct Sent {
    Rank to;
    pdes::Event event;
    std::vector<std::byte> more;
  };
  struct Posted {
    Rank to;
    std::vector<std::byte> message;
  };

  void schedule(const pdes::Event& event) override { scheduled.push_back(event); }
  void send(Rank to, pdes::Event event, std::span<const std::byte> more = {}) override {
    sent.push_back({to, event, {more.begin(), more.end()}});
  }
  void resume(const pdes::Event& event) override { resumed.push_back(event); }
  bool is_certain(Time, pdes::Awaited) const override { return certain; }
  bool advance(LpId, Time) override { return false; }
  void wait_until_certain(LpId client) override { waiting.push_back(client); }
  void post(Rank to, std::span<const std::byte> message) override {
    posted.push_back({to, {message.begin(), message.end()}});
  }
  Time now() const override { return time; }
  std::uint32_t depth(LpId lp) const override {
    const auto found = depths.find(lp);
    return found == depths.end() ? 0 : found->second;
  }
  void raise_depth(LpId lp, std::uint32_t depth) override {
    if (depth > depths[lp]) depths[lp] = depth;
  }

  std::vector<pdes::Event> scheduled, resumed;
  std::vector<Sent> sent;
  std::vector<Posted> posted;
  std::vector<LpId> waiting;
  std::map<LpId, std::uint32_t> depths;
  Time time;
  bool certain = true;
};

}  // namespace orrery::test_support
