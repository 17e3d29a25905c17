#include <gtest/gtest.h>

#include <functional>

#include "orrery/base/error.hpp"
#include "orrery/memory/remote_memory.hpp"

namespace orrery::memory {
namespace {

constexpr Time ns(std::int64_t count) { return Time::from_ns(count); }
constexpr Time ps(std::int64_t count) { return Time::from_ps(count); }

std::string message_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    return error.what();
  }
  return {};
}

RemoteMemoryOptions under_astra_sim(RemoteMemoryOptions options) {
  options.rounding = Rounding::down_to_ns;
  options.own_memory_takes_turns = false;
  return options;
}

RemoteMemoryOptions remote(RemoteMemoryKind kind, std::uint32_t npus_per_node = 0) {
  return {kind, Bandwidth::from_bytes_per_ns(40), 150.5, npus_per_node};
}

// An access takes latency + size / bandwidth. Under `astra-sim` rules each of the two is cut to whole ns before they
// are added.
TEST(RemoteMemory, AnAccessTakesLatencyAndTransfer) {
  const RemoteMemory physical(remote(RemoteMemoryKind("per-npu")), 4);
  EXPECT_EQ(physical.access_time(Bytes(4000)), ps(250'500));
  EXPECT_EQ(physical.access_time(Bytes(4001)), ps(250'525));
  const RemoteMemory astra_sim(under_astra_sim(remote(RemoteMemoryKind("per-npu"))), 4);
  EXPECT_EQ(astra_sim.access_time(Bytes(4000)), ns(250));
  EXPECT_EQ(astra_sim.access_time(Bytes(4039)), ns(250));
  EXPECT_EQ(astra_sim.access_time(Bytes(4040)), ns(251));
}

// A memory without latency. An access takes a tick if NPUs share the memory, and may take no time if they do not.
TEST(RemoteMemory, AnAccessToASharedServerTakesATickAtLeast) {
  auto options = remote(RemoteMemoryKind("pool"));
  options.latency_ns = 0;
  EXPECT_EQ(RemoteMemory(options, 4).service_delay(), ps(1));
  EXPECT_EQ(RemoteMemory(under_astra_sim(options), 4).access_time(Bytes(1)), ns(1));
  options.kind = RemoteMemoryKind("per-npu");
  EXPECT_EQ(RemoteMemory(under_astra_sim(options), 4).access_time(Bytes(1)), Time::zero());
}

// 8 NPUs, and 2 of them in a node where there are nodes.
TEST(RemoteMemory, ServersOfEachKind) {
  EXPECT_EQ(RemoteMemory(remote(RemoteMemoryKind("none")), 8).num_servers(), 0U);
  EXPECT_EQ(RemoteMemory(remote(RemoteMemoryKind("per-npu")), 8).num_servers(), 0U);
  const RemoteMemory pool(remote(RemoteMemoryKind("pool")), 8);
  EXPECT_EQ(pool.num_servers(), 1U);
  EXPECT_EQ(pool.server_of(NpuId(7)), 0U);
  EXPECT_EQ(pool.npus_per_server(), 8U);
  const RemoteMemory nodes(remote(RemoteMemoryKind("per-node"), 2), 8);
  EXPECT_EQ(nodes.num_servers(), 4U);
  EXPECT_EQ(nodes.server_of(NpuId(4)), 2U);
  EXPECT_EQ(nodes.server_of(NpuId(5)), 2U);
  EXPECT_EQ(nodes.first_npu_of(2), NpuId(4));
  EXPECT_EQ(nodes.host_of(2), NpuId(4));
  EXPECT_EQ(nodes.host_of(3), NpuId(7));
}

// Nodes must divide the 8 NPUs, and a memory needs a bandwidth and a latency that is not negative.
TEST(RemoteMemory, RefusesWhatDoesNotFit) {
  const auto refused = [](RemoteMemoryOptions options) { return message_of([&] { options.validate(8); }) != ""; };
  EXPECT_TRUE(refused(remote(RemoteMemoryKind("per-node"), 0)));
  EXPECT_TRUE(refused(remote(RemoteMemoryKind("per-node"), 3)));
  EXPECT_FALSE(refused(remote(RemoteMemoryKind("per-node"), 4)));
  auto no_bandwidth = remote(RemoteMemoryKind("pool"));
  no_bandwidth.bandwidth = Bandwidth();
  EXPECT_TRUE(refused(no_bandwidth));
  auto negative = remote(RemoteMemoryKind("pool"));
  negative.latency_ns = -1;
  EXPECT_TRUE(refused(negative));
  no_bandwidth.kind = RemoteMemoryKind("none");
  EXPECT_FALSE(refused(no_bandwidth));
}

// Requests at 0, 10, 100 ns of 60 ns each: 0 .. 60, 60 .. 120 after waiting for 50, 120 .. 180 after waiting for 20.
// The server is idle again at 180, so a request at 200 is served at once.
TEST(MemoryServer, FirstComeFirstServed) {
  MemoryServer server;
  EXPECT_EQ(server.serve(ns(0), ns(60)), ns(60));
  EXPECT_EQ(server.serve(ns(10), ns(60)), ns(120));
  EXPECT_EQ(server.serve(ns(100), ns(60)), ns(180));
  EXPECT_EQ(server.serve(ns(200), ns(60)), ns(260));
  EXPECT_EQ(server.num_served(), 4U);
}

}  // namespace
}  // namespace orrery::memory
