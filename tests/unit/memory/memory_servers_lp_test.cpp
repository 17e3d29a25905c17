// Memory servers as logical processes. A test plays the kernel: it hands the servers their events in the kernel's
// order, and keeps their answers to NPUs.
#include "orrery/memory/memory_servers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "fake_scheduler.hpp"

namespace orrery::memory::servers_lp {
namespace {

constexpr std::uint32_t first_server = 1000;  // LP of server 0

constexpr Time ns(std::int64_t count) { return Time::from_ns(count); }
constexpr Time ps(std::int64_t count) { return Time::from_ps(count); }

/// What an NPU is told: its access is done, or goes on.
struct Done {
  Time at;
  std::uint32_t npu = 0;
  std::uint32_t node = 0;
  bool goes_on = false;

  friend bool operator==(const Done&, const Done&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Done& done) {
    return out << "at " << done.at.ps() << " ps NPU " << done.npu << ", node " << done.node
               << (done.goes_on ? " goes on" : "");
  }
};

using AllDone = std::vector<Done>;

/// The memory of some NPUs on one rank or several, and the events under way to and from its servers.
class Memory {
 public:
  Memory(const RemoteMemoryOptions& options, std::uint32_t num_npus, std::vector<int> rank_of_npu = {})
      : memory_(options, num_npus) {
    for (std::uint32_t npu = 0; npu < num_npus; ++npu) of_npu_.emplace_back(rank_of_npu.empty() ? 0 : rank_of_npu[npu]);
    for (std::uint32_t s = 0; s < memory_.num_servers(); ++s) of_server_.push_back(of_npu_[memory_.host_of(s).index()]);
    for (int r = 0; r <= std::ranges::max(of_npu_).value(); ++r) {
      Part& part = *parts_.emplace_back(std::make_unique<Part>());
      part.servers = std::make_unique<MemoryServers>(
          part.kernel, memory_, Hosting{Rank(r), of_npu_, of_server_},
          [](NpuId npu, std::uint64_t node) {
            return Place{.file = "w." + std::to_string(npu.value()) + ".et", .node_name = "n" + std::to_string(node)};
          },
          [](GroupId group) { return "group " + std::to_string(group.value()); }, overrun);
    }
  }

  void ask(Time now, std::uint32_t npu, std::uint64_t bytes, std::uint32_t node = 0) {
    pdes::Event request = this->request(now, npu, node);
    request.detail = bytes;
    part_of(npu).servers->ask(server_rank(npu), request);
  }
  void ask(Time now, std::uint32_t npu, const GroupAccess& access) {
    part_of(npu).servers->ask(server_rank(npu), request(now, npu, static_cast<std::uint32_t>(access.node_id)), access);
  }

  /// Lets the servers handle all events, in the kernel's order. Returns the answers in the order of time and NPU.
  AllDone run() {
    AllDone answers;
    for (;;) {
      collect();
      if (under_way_.empty()) break;
      const auto next = std::ranges::min_element(
          under_way_, [](const UnderWay& a, const UnderWay& b) { return pdes::before(a.event, b.event); });
      UnderWay one = *next;
      under_way_.erase(next);
      Part& part = *parts_[one.rank.index()];
      part.kernel.time = one.event.time;
      if (!one.more.empty()) part.servers->unpack(one.event, one.more);
      if (one.event.stage() == pdes::Stage::server)
        part.servers->handle(one.event);
      else
        answers.push_back({one.event.time, one.event.target.value(), one.event.node, one.event.kind == access_goes_on});
    }
    std::ranges::stable_sort(answers, {}, [](const Done& done) { return std::tuple(done.at, done.npu); });
    return answers;
  }

  std::vector<MemoryStageRecord> stages(int rank) const {
    return parts_[static_cast<std::size_t>(rank)]->servers->stages();
  }

  std::optional<Overrun> overrun;

 private:
  struct Part {
    test_support::FakeScheduler kernel;
    std::unique_ptr<MemoryServers> servers;
  };
  struct UnderWay {
    Rank rank;
    pdes::Event event;
    std::vector<std::byte> more;
  };

  Part& part_of(std::uint32_t npu) { return *parts_[of_npu_[npu].index()]; }
  Rank server_rank(std::uint32_t npu) const { return of_server_[memory_.server_of(NpuId(npu))]; }
  pdes::Event request(Time now, std::uint32_t npu, std::uint32_t node) {
    auto event = pdes::Event::make(now, pdes::Stage::server, LpId(npu), sequence_++,
                                   LpId(first_server + memory_.server_of(NpuId(npu))));
    event.node = node;
    return event;
  }
  void collect() {
    for (std::size_t r = 0; r < parts_.size(); ++r) {
      auto& kernel = parts_[r]->kernel;
      for (const auto& sent : kernel.sent) {
        EXPECT_TRUE(sent.more.empty() || sent.to.index() != r) << "bytes go with the event to another rank only";
        EXPECT_TRUE(sent.event.stage() == pdes::Stage::server || sent.event.kind == pdes::completion ||
                    sent.event.kind == access_goes_on);
        under_way_.push_back({sent.to, sent.event, sent.more});
      }
      for (const auto& event : kernel.scheduled) under_way_.push_back({Rank(static_cast<int>(r)), event, {}});
      kernel.sent.clear();
      kernel.scheduled.clear();
    }
  }

  RemoteMemory memory_;
  std::vector<Rank> of_npu_, of_server_;
  std::vector<std::unique_ptr<Part>> parts_;
  std::vector<UnderWay> under_way_;
  std::uint64_t sequence_ = 0;
};

/// Memories of 100 ns and 10 B/ns: an access of 1000 B takes 200 ns.
RemoteMemoryOptions memory_of_kind(std::string_view kind) {
  RemoteMemoryOptions options;
  options.kind = RemoteMemoryKind(kind);
  options.bandwidth = Bandwidth::from_bytes_per_ns(10);
  options.latency_ns = 100;
  options.npus_per_node = 2;
  return options;
}

/// A hierarchical pool without latencies for 4 NPUs in 2 nodes. All NPUs together load 4 B in each ns from its groups,
/// a node has links of 4 B/ns and an NPU a fabric of 1 B/ns. A piece has 10 B.
RemoteMemoryOptions pool_of_groups() {
  RemoteMemoryOptions options = memory_of_kind("hierarchical-pool");
  options.bandwidth = Bandwidth::from_bytes_per_ns(2);
  options.latency_ns = 0;
  options.hierarchy.groups = 2;
  options.hierarchy.switches = 1;
  options.hierarchy.link = Bandwidth::from_bytes_per_ns(4);
  options.hierarchy.fabric = Bandwidth::from_bytes_per_ns(1);
  options.hierarchy.chunk = Bytes(20);
  return options;
}

// NPU 3 asks at 0 ns, NPU 1 at 50 ns. The second access waits until the first one is done, and each answer has the node
// that asked.
TEST(MemoryServersLp, AnAccessWaitsForTheOneBeforeIt) {
  Memory pool(memory_of_kind("pool"), 4);
  pool.ask(ns(0), 3, 1000, 7);
  pool.ask(ns(50), 1, 500, 8);
  EXPECT_EQ(pool.run(), (AllDone{{ns(200), 3, 7}, {ns(350), 1, 8}}));
  pool.ask(ns(1000), 0, 1000);
  EXPECT_EQ(pool.run(), (AllDone{{ns(1200), 0, 0}}));
}

// Three NPUs ask at the same time. They are served in the order of their numbers, whoever asks first.
TEST(MemoryServersLp, AccessesOfOneMomentAreServedInTheOrderOfTheNpus) {
  for (std::vector<std::uint32_t> npus : {std::vector<std::uint32_t>{0, 1, 2}, {2, 1, 0}, {1, 2, 0}}) {
    Memory pool(memory_of_kind("pool"), 4);
    for (const std::uint32_t npu : npus) pool.ask(ns(10), npu, 1000);
    EXPECT_EQ(pool.run(), (AllDone{{ns(210), 0, 0}, {ns(410), 1, 0}, {ns(610), 2, 0}}));
  }
}

// Two nodes of two NPUs each. The NPUs of a node wait for each other, those of different nodes do not.
TEST(MemoryServersLp, NodesDoNotWaitForEachOther) {
  Memory nodes(memory_of_kind("per-node"), 4);
  for (std::uint32_t npu = 0; npu < 4; ++npu) nodes.ask(ns(0), npu, 1000);
  EXPECT_EQ(nodes.run(), (AllDone{{ns(200), 0, 0}, {ns(200), 2, 0}, {ns(400), 1, 0}, {ns(400), 3, 0}}));
}

// An access of 2^62 bytes at 1 mB/ns does not end in the range of time. It is reported with its NPU and node and gets
// no answer.
TEST(MemoryServersLp, AnAccessThatLeavesTheRangeOfTimeIsReported) {
  auto options = memory_of_kind("pool");
  options.bandwidth = Bandwidth::from_bytes_per_ns(1e-3);
  Memory pool(options, 4);
  pool.ask(ns(3), 2, std::uint64_t{1} << 62U, 9);
  EXPECT_TRUE(pool.run().empty());
  ASSERT_TRUE(pool.overrun);
  EXPECT_EQ(*pool.overrun, (Overrun{ns(3), NpuId(2), NodeId(9)}));
}

// 100 B are 10 pieces: each takes 2.5 ns at the groups, 2.5 ns at the links and 10 ns in the fabric. The request
// gathers others of its moment for 1 ps, which does not delay it.
TEST(MemoryServersLp, AHierarchicalPoolServesAnAccessAlone) {
  Memory pool(pool_of_groups(), 4);
  pool.ask(ns(7), 1, 100, 5);
  EXPECT_EQ(pool.run(), (AllDone{{ns(7) + ps(105'000), 1, 5}}));
}

// The four NPUs load 100 B each at 0 ns. A round takes 10 ns at the groups, 5 ns at the links of a node and 10 ns in a
// fabric: 25 ns + 9 * 10 ns (docs/memory.md). Accesses of another moment, even 1 ps later, are not in these rounds.
TEST(MemoryServersLp, AHierarchicalPoolGathersTheAccessesOfAMoment) {
  for (std::vector<std::uint32_t> npus : {std::vector<std::uint32_t>{0, 1, 2, 3}, {3, 1, 0, 2}}) {
    Memory pool(pool_of_groups(), 4);
    for (const std::uint32_t npu : npus) pool.ask(ns(0), npu, 100);
    EXPECT_EQ(pool.run(), (AllDone{{ns(115), 0, 0}, {ns(115), 1, 0}, {ns(115), 2, 0}, {ns(115), 3, 0}}));
  }
  Memory pool(pool_of_groups(), 4);
  pool.ask(ns(0), 0, 100);
  pool.ask(ps(1), 2, 100);
  const AllDone done = pool.run();
  ASSERT_EQ(done.size(), 2U);
  EXPECT_EQ(done[0], (Done{ns(105), 0, 0})) << "as if it were alone";
  EXPECT_EQ(done[1], (Done{ns(130), 2, 0})) << "the groups are free at 25 ns";
}

// Requests of 7 ns are served in the order of the events that led to them: NPU 3's was known to come since 2 ns, those
// of the others since 4 ns. NPU 1 brought about its own and that of NPU 2, and NPU 2 that of NPU 0.
TEST(MemoryServersLp, RequestsAreServedInTheOrderOfEvents) {
  RemoteMemoryOptions options = memory_of_kind("pool");
  options.orders_requests = true;
  Memory pool(options, 4);
  const auto ask = [&](std::uint32_t npu, std::int64_t since, std::uint32_t origin) {
    GroupAccess alone;
    alone.size = Bytes(1000);
    alone.place.access = EventPlace::first_of(NpuId(origin)).next(ns(since), origin == npu ? 0 : 1).next(ns(7), 0);
    pool.ask(ns(7), npu, alone);
  };
  ask(0, 4, 2);
  ask(1, 4, 1);
  ask(2, 4, 1);
  ask(3, 2, 3);
  EXPECT_EQ(pool.run(), (AllDone{{ns(207), 3, 0}, {ns(407), 1, 0}, {ns(607), 2, 0}, {ns(807), 0, 0}}));
}

/// Returns a pool in which few bytes take no time. It serves requests in the order of the events behind them.
RemoteMemoryOptions pool_without_latency() {
  RemoteMemoryOptions options = memory_of_kind("pool");
  options.rounding = Rounding::down_to_ns;
  options.latency_ns = 0;
  options.orders_requests = options.may_take_no_time = true;
  return options;
}

// 5 bytes take no time at 10 B/ns, 100 bytes take 10 ns. The answer to the first request of 7 ns comes 2 ps later, in
// the same ns. The third request waits for the second, and takes no time after that. What is asked for within a ns
// counts from its begin.
TEST(MemoryServersLp, AnAccessMayTakeNoTime) {
  Memory pool(pool_without_latency(), 4);
  const auto ask = [&](Time now, std::uint32_t npu, std::uint64_t bytes) {
    GroupAccess alone;
    alone.size = Bytes(bytes);
    alone.place.access = EventPlace::first_of(NpuId(npu)).next(ns(4), 0).next(now, 0);
    pool.ask(now, npu, alone);
  };
  ask(ns(7), 0, 5);
  ask(ns(7), 1, 100);
  ask(ns(7), 2, 5);
  EXPECT_EQ(pool.run(), (AllDone{{ns(7) + ps(2), 0, 0}, {ns(17), 1, 0}, {ns(17), 2, 0}}));
  ask(ns(30) + ps(2), 0, 5);
  EXPECT_EQ(pool.run(), (AllDone{{ns(30) + ps(4), 0, 0}}));
  ask(ns(40) + ps(2), 0, 10);
  EXPECT_EQ(pool.run(), (AllDone{{ns(41), 0, 0}}));
}

// NPUs 0 and 1 ask at 7 ns, each because of an event of its own, that of NPU 0 first. The access of NPU 0 ends at once,
// in that event, and NPU 0 asks again because of it. This comes before the request of NPU 1. NPU 2 asks for what takes
// no time while the memory is busy. It is told 2 ps later that its access goes on, and at 27 ns that it is done.
TEST(MemoryServersLp, WhatFollowsFromAnAccessThatEndsAtOnceComesBeforeLaterEvents) {
  Memory pool(pool_without_latency(), 4);
  const auto event_of = [](std::uint32_t npu) { return EventPlace::first_of(NpuId(npu)).next(ns(4), 0); };
  const auto ask = [&](Time now, std::uint32_t npu, std::uint32_t node, std::uint64_t bytes) {
    GroupAccess alone;
    alone.node_id = node;
    alone.size = Bytes(bytes);
    alone.place.access = event_of(npu).next(memory::whole_ns(now), node);
    if (bytes < 10) alone.place.end = event_of(npu);
    pool.ask(now, npu, alone);
  };
  ask(ns(7), 0, 0, 5);
  ask(ns(7), 1, 0, 100);
  ask(ns(7) + ps(2), 0, 1, 100);
  ask(ns(9), 2, 0, 5);
  EXPECT_EQ(
      pool.run(),
      (AllDone{{ns(7) + ps(2), 0, 0}, {ns(9) + ps(2), 2, 0, true}, {ns(17), 0, 1}, {ns(27), 1, 0}, {ns(27), 2, 0}}));
}

GroupAccess load(std::uint32_t node, std::uint64_t bytes, std::uint32_t members = 2) {
  return {.node_id = node,
          .size = Bytes(bytes),
          .group = GroupId(6),
          .ordinal = 0,
          .members = members,
          .kind = trace::NodeKind::mem_load,
          .collective = trace::CollectiveKind::all_gather};
}

// NPUs 0 and 3 load 100 B together: the access begins when NPU 3 asks, at 40 ns, and the groups read the 100 B once. So
// both have them as soon as one that loads alone. The stages say what has passed them.
TEST(MemoryServersLp, AGroupAccessBeginsWithItsLastMember) {
  Memory pool(pool_of_groups(), 4);
  pool.ask(ns(0), 0, load(11, 100));
  EXPECT_TRUE(pool.run().empty());
  pool.ask(ns(40), 3, load(12, 100));
  EXPECT_EQ(pool.run(), (AllDone{{ns(145), 0, 11}, {ns(145), 3, 12}}));
  const auto stages = pool.stages(0);
  ASSERT_EQ(stages.size(), 3U);
  EXPECT_EQ(stages[0].bytes, Bytes(100));
  EXPECT_EQ(stages[1].bytes, Bytes(200));
  EXPECT_EQ(stages[2].bytes, Bytes(200));
}

// The second access of a group does not meet the first one, and a group of one member waits for nobody.
TEST(MemoryServersLp, AccessesOfAGroupAreKeptApartByTheirNumber) {
  Memory pool(pool_of_groups(), 4);
  GroupAccess second = load(13, 100);
  second.ordinal = 1;
  pool.ask(ns(0), 0, load(11, 100));
  pool.ask(ns(0), 1, second);
  EXPECT_TRUE(pool.run().empty());
  GroupAccess alone = load(14, 100, 1);
  alone.group = GroupId(7);
  pool.ask(ns(0), 2, alone);
  EXPECT_EQ(pool.run(), (AllDone{{ns(105), 2, 14}}));
}

// The members of a group disagree on the size of their access, or on what it is. The message says where and what.
TEST(MemoryServersLp, MembersOfAGroupMustAgree) {
  GroupAccess store = load(12, 100);
  store.kind = trace::NodeKind::mem_store;
  store.collective = trace::CollectiveKind::reduce_scatter;
  for (const auto& [other, words] :
       {std::pair{load(12, 99), "99 bytes"}, std::pair{store, "store with reduce-scatter"}}) {
    Memory pool(pool_of_groups(), 4);
    pool.ask(ns(0), 0, load(11, 100));
    pool.ask(ns(1), 3, other);
    std::string message;
    try {
      pool.run();
    } catch (const Error& error) {
      message = error.what();
    }
    for (const std::string expected : {"w.3.et", "'n12'", "the members of group 6 disagree on their access number 1",
                                       "100 bytes at NPU 0, node 11 'n11' of w.0.et", words})
      EXPECT_NE(message.find(expected), std::string::npos) << expected << " in: " << message;
  }
}

// The same accesses with the NPUs on one rank, and dealt to three ranks. The answers are the same. Only the rank of the
// pool has its stages.
TEST(MemoryServersLp, TheAnswerIsTheSameOnSeveralRanks) {
  for (const std::string_view kind : {"per-node", "pool", "hierarchical-pool"}) {
    const auto options = kind == "hierarchical-pool" ? pool_of_groups() : memory_of_kind(kind);
    const auto done = [&](std::vector<int> ranks) {
      Memory memory(options, 4, std::move(ranks));
      for (std::uint32_t npu = 0; npu < 4; ++npu)
        for (const std::int64_t time : {0, 30}) memory.ask(ns(time), npu, 100 + 50 * npu);
      if (kind == "hierarchical-pool")
        for (std::uint32_t npu = 0; npu < 3; ++npu) memory.ask(ns(npu), npu, load(npu, 70, 3));
      return memory.run();
    };
    const AllDone alone = done({});
    EXPECT_EQ(alone.size(), kind == "hierarchical-pool" ? 11U : 8U);
    EXPECT_EQ(done({2, 0, 1, 0}), alone) << kind;
  }
  Memory pool(pool_of_groups(), 4, {1, 0, 2, 0});
  pool.ask(ns(0), 1, 100);
  pool.run();
  EXPECT_TRUE(pool.stages(0).empty());
  ASSERT_EQ(pool.stages(1).size(), 3U);
  EXPECT_EQ(pool.stages(1).front().bytes, Bytes(100));
}

}  // namespace
}  // namespace orrery::memory::servers_lp
