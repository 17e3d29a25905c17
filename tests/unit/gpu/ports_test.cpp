// The ports of memory and links of a GPU.
#include "orrery/gpu/ports.hpp"

#include <gtest/gtest.h>

#include "kernels.hpp"
#include "orrery/gpu/alone.hpp"

namespace orrery::gpu {
namespace {

constexpr Time ns(std::int64_t value) { return Time::from_ns(value); }

/// Memory moves 1 byte per ns, and the ports to the links 2.
Parameters slow_ports() {
  Parameters parameters;
  parameters.noc = Noc::ports;
  parameters.memory_rate = Bandwidth::from_bytes_per_ns(1);
  parameters.io_rate = Bandwidth::from_bytes_per_ns(2);
  return parameters;
}
Request request(RequestKind kind, std::uint64_t bytes) {
  return {.kind = kind, .wants_ack = true, .bytes = bytes, .held = bytes, .wire = bytes};
}

// Blocks read 100 bytes at 0 and 100 at 50 ns: the second are through at 200. A store of 100 bytes that has come at 150
// follows them. A load is answered when memory begins with it, and as much later as memory is slower than the link.
TEST(Ports, MemoryServesOneAfterTheOther) {
  const Parameters parameters = slow_ports();
  Ports ports(parameters);
  EXPECT_EQ(ports.move(ns(0), 100), ns(100));
  EXPECT_EQ(ports.move(ns(50), 100), ns(200));
  EXPECT_EQ(ports.come(ns(150), request(RequestKind::store, 100)), ns(300));
  EXPECT_EQ(ports.come(ns(200), request(RequestKind::load, 100)), ns(350));
  EXPECT_EQ(ports.move(ns(1000), 100), ns(1100));
}

// What has been coming while the server was free is through at once, and what comes with it follows it. What leaves is
// handed over so that its last byte is there when the port is through.
TEST(Ports, DataPassCutThrough) {
  const Parameters parameters = slow_ports();
  Ports ports(parameters);
  EXPECT_EQ(ports.come(ns(500), request(RequestKind::store, 100)), ns(500));
  EXPECT_EQ(ports.come(ns(500), request(RequestKind::answer, 100)), ns(550));
  EXPECT_EQ(ports.leave(ns(0), request(RequestKind::store, 100), ns(50)), ns(0));
  EXPECT_EQ(ports.leave(ns(0), request(RequestKind::store, 100), ns(20)), ns(50 + 30));
  EXPECT_EQ(ports.leave(ns(0), request(RequestKind::word, 100), ns(20)), ns(0));
  EXPECT_EQ(ports.come(ns(0), request(RequestKind::ack, 100)), ns(0));
}

// A copy engine reads memory itself, which its stores without acknowledgements tell.
TEST(Ports, CopyEnginesReadMemory) {
  const Parameters parameters = slow_ports();
  Ports ports(parameters);
  Request copied = request(RequestKind::store, 100);
  copied.wants_ack = false;
  EXPECT_EQ(ports.leave(ns(0), copied, ns(50)), ns(0));
  EXPECT_EQ(ports.move(ns(0), 100), ns(200));
}

// With `noc: none` nothing waits.
TEST(Ports, WithoutThemNothingTakesTime) {
  const Parameters parameters;
  Ports ports(parameters);
  EXPECT_EQ(ports.move(ns(3), 1 << 30), ns(3));
  EXPECT_EQ(ports.come(ns(3), request(RequestKind::store, 1 << 30)), ns(3));
  EXPECT_EQ(ports.leave(ns(3), request(RequestKind::store, 1 << 30), ns(1)), ns(3));
}

Time time_of(std::string_view name, const Parameters& parameters, std::uint64_t bytes, std::uint32_t blocks = 1,
             std::uint32_t threads = 256) {
  KernelShape shape = (*KernelName::find(name))->usual;
  shape.bytes = Bytes(bytes);
  shape.blocks = blocks;
  shape.threads = threads;
  const Profile& reference = **ProfileName::find("h100");
  return simulate_alone((*KernelName::find(name))->make(shape), reference, parameters, {0}).whole;
}

// A kernel that reads and writes 1 MiB of its own memory takes at least what its memory takes for both.
TEST(Ports, KernelsWaitForMemory) {
  Parameters parameters = slow_ports();
  parameters.memory_rate = Bandwidth::from_bytes_per_ns(10);
  const Time free = time_of("scale", Parameters{}, 1 << 20, 64), bound = time_of("scale", parameters, 1 << 20, 64);
  const double in_memory = 2.0 * (1 << 20) / 10;  // ns
  EXPECT_LT(static_cast<double>(free.ps()) * 1e-3, 0.2 * in_memory);
  EXPECT_GT(static_cast<double>(bound.ps()) * 1e-3, in_memory);
  EXPECT_LT(static_cast<double>(bound.ps()) * 1e-3, 1.05 * in_memory + 2000);
}

// A block of 256 threads loads 4 KiB in lock step. As four wavefronts it has four times 1 KiB in flight, and they do
// not wait for each other: it is no slower. With 8 lines in flight only one of them loads at a time, which takes
// longer. A block of one wavefront is as in lock step.
TEST(Ports, WavefrontsLoadByThemselves) {
  const auto with = [](std::uint32_t wavefront, std::uint32_t outstanding) {
    Parameters parameters;
    parameters.wavefront = wavefront;
    parameters.outstanding = outstanding;
    return parameters;
  };
  const Time lock_step = time_of("get", with(0, 256), 1 << 20), apart = time_of("get", with(64, 256), 1 << 20);
  const Time lone = time_of("get", with(64, 8), 1 << 20);
  EXPECT_LE(apart, lock_step);
  EXPECT_GT(apart, Time::from_ps(lock_step.ps() / 2));
  EXPECT_EQ(time_of("get", with(64, 256), 1 << 18, 1, 64), time_of("get", with(0, 256), 1 << 18, 1, 64));
  EXPECT_GT(lone, Time::from_ps(2 * apart.ps()));
}

}  // namespace
}  // namespace orrery::gpu
