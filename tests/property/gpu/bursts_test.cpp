// The four rules of docs/gpu.md, Bursts: random runs of requests at FIFO servers against formulas, and programs in
// bursts against the same programs line by line.
#include <gtest/gtest.h>

#include <random>

#include "gpu_servers.hpp"
#include "kernels.hpp"
#include "orrery/gpu/alone.hpp"

namespace orrery::gpu {
namespace {

using gpu_servers::Ps;

class Draw {
 public:
  explicit Draw(std::uint32_t seed) : random_(seed) {}
  Ps of(Ps low, Ps high) { return std::uniform_int_distribution<Ps>(low, high)(random_); }
  std::vector<Ps> list(std::size_t size, Ps low, Ps high) {
    std::vector<Ps> values;
    for (std::size_t i = 0; i < size; ++i) values.push_back(of(low, high));
    return values;
  }

 private:
  std::mt19937 random_;
};

// Rule 1: a run through idle servers of any service and latency.
TEST(Bursts, RunOfEqualRequestsEndsWhenTheFormulaSays) {
  Draw draw(1);
  for (int i = 0; i < 4000; ++i) {
    const auto servers = static_cast<std::size_t>(draw.of(1, 4));
    const auto service = draw.list(servers, 1, 20), latency = draw.list(servers, 0, 300);
    const Ps first = draw.of(0, 100), count = draw.of(1, 200), spacing = draw.of(0, 30);
    ASSERT_EQ(gpu_servers::run_of_requests({service, latency}, first, count, spacing),
              gpu_servers::run_formula(service, latency, first, count, spacing));
  }
}

// Rule 2: so many requests under way at a time, through any servers.
TEST(Bursts, ClosedLoopEndsWhenTheFormulaSays) {
  Draw draw(2);
  for (int i = 0; i < 4000; ++i) {
    const auto servers = static_cast<std::size_t>(draw.of(1, 4));
    const auto service = draw.list(servers, 1, 20), latency = draw.list(servers, 0, 300);
    const Ps count = draw.of(1, 200), window = draw.of(1, 80);
    ASSERT_EQ(gpu_servers::closed_loop({service, latency}, count, window),
              gpu_servers::closed_loop_formula(service, latency, count, window));
  }
}

// Rule 3: equal loops that begin together at one server.
TEST(Bursts, EqualClosedLoopsShareAServerRoundRobin) {
  Draw draw(3);
  for (int i = 0; i < 2000; ++i) {
    const Ps streams = draw.of(1, 6), count = draw.of(1, 60), window = draw.of(1, 12);
    const Ps service = draw.of(1, 20), latency = draw.of(0, 300);
    ASSERT_EQ(gpu_servers::symmetric_loops(streams, count, window, service, latency),
              gpu_servers::symmetric_formula(streams, count, window, service, latency));
  }
}

// Rule 4: a stream in bursts through servers of one service ends as line by line.
TEST(Bursts, StreamInBurstsEndsAsLineByLine) {
  Draw draw(4);
  for (int i = 0; i < 4000; ++i) {
    const auto servers = static_cast<std::size_t>(draw.of(1, 4));
    const Ps service = draw.of(1, 20);
    const std::vector<Ps> equal(servers, service);
    const auto latency = draw.list(servers, 0, 300);
    const Ps first = draw.of(0, 100), count = draw.of(1, 200), spacing = draw.of(0, 40), size = draw.of(1, 70);
    ASSERT_EQ(gpu_servers::stream_in_bursts({equal, latency}, first, count, spacing, size, service),
              gpu_servers::run_of_requests({equal, latency}, first, count, spacing));
  }
}

Time time_of(const KernelName& kernel, Bytes bytes, std::uint32_t blocks, std::uint32_t bursts) {
  const ProfileName h100("h100");
  KernelShape shape = kernel->usual;
  shape.bytes = bytes;
  if (blocks > 0) shape.blocks = blocks;
  return simulate_alone(kernel->make(shape), *h100, h100->parameters, {bursts}).whole;
}

/// Two blocks that send to each other: their bursts end as their lines do, but for the acknowledgements of one burst,
/// which come together. They hold up data on their way, and the end of the block.
TEST(Bursts, OneBlockStoresInBurstsAsLineByLine) {
  Draw draw(5);
  for (int i = 0; i < 12; ++i) {
    const Bytes bytes(static_cast<std::uint64_t>(draw.of(1, 8'000'000)));
    const auto bursts = static_cast<std::uint32_t>(draw.of(2, 64));
    const Time by_line = time_of(KernelName("put"), bytes, 1, 0),
               in_bursts = time_of(KernelName("put"), bytes, 1, bursts);
    const double acks = 8.0 / 128 * (static_cast<double>(bytes.count()) / bursts + 16384) / 0.450;  // ps
    EXPECT_LE(std::abs(static_cast<double>((in_bursts - by_line).ps())), 1000 + 2 * acks)
        << bytes.count() << " in " << bursts;
  }
}

/// Many blocks and directions share links: within 0.8 % with 256 bursts (docs/gpu.md, Bursts).
TEST(Bursts, SharedLinksAreWithinTheBound) {
  for (const char* name : {"put", "get", "packets"}) {
    const Time by_line = time_of(KernelName(name), Bytes(256 << 20), 12, 0);
    const Time in_bursts = time_of(KernelName(name), Bytes(256 << 20), 12, 256);
    EXPECT_NEAR(static_cast<double>(in_bursts.ps()) / static_cast<double>(by_line.ps()), 1, 0.008) << name;
  }
}

}  // namespace
}  // namespace orrery::gpu
