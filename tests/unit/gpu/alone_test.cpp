// Programs by themselves: times computed by hand from the parameters of h100 (two GPUs, links of 450 GB/s and 150 ns).
#include "orrery/gpu/alone.hpp"

#include <gtest/gtest.h>

#include "kernels.hpp"
#include "orrery/base/error.hpp"

namespace orrery::gpu {
namespace {

const ProfileName h100("h100");

/// A program of two GPUs with one block of 1024 threads each, which starts without a prologue.
Program two_gpus() {
  Program program;
  program.name = "test";
  program.is_plan = false;
  program.gpus.resize(2);
  for (Gpu& gpu : program.gpus) gpu.blocks.resize(1);
  return program;
}

Timing run(const Program& program, const Parameters& parameters = h100->parameters, Granularity granularity = {}) {
  return simulate_alone(program, *h100, parameters, granularity);
}

Operand local(std::uint64_t bytes) { return {.bytes = Bytes(bytes)}; }
Operand remote(std::uint32_t gpu, std::uint64_t bytes, Access access = Access::remote) {
  return {.bytes = Bytes(bytes), .gpu = gpu, .buffer = Buffer::scratch, .access = access};
}

// Two GPUs whose blocks do nothing: the launch and the end of the kernel.
TEST(Alone, EmptyProgramTakesItsLaunchAndEnd) { EXPECT_EQ(run(two_gpus()).whole, Time::from_ns(1050 + 100)); }

// The same as a plan: its load too.
TEST(Alone, PlanIsLoadedFirst) {
  Program program = two_gpus();
  program.is_plan = true;
  EXPECT_EQ(run(program).whole, Time::from_ns(1050 + 1250 + 100));
}

// GPU 0 says a word, GPU 1 awaits it: op, out 280, two links of 150 with 36 bytes (80 ps) each, in 150, a poll of 240.
TEST(Alone, WordTravelsAndIsPolled) {
  Program program = two_gpus();
  const auto [from, to] = program.connect(0, 1);
  program.gpus[0].add(program.gpus[0].blocks[0], {.kind = OperationKind::rlxsignal}, {}, {}, std::array{from});
  program.gpus[1].add(program.gpus[1].blocks[0], {.kind = OperationKind::wait}, {}, {}, std::array{to});
  const Timing timing = run(program);
  const Time word = Time::from_ns(1050 + 220 + 280 + 300 + 150 + 240 + 100) + Time::from_ps(80);
  EXPECT_EQ(timing.ends[1], word);
  EXPECT_EQ(timing.ends[0], Time::from_ns(1050 + 220 + 100));
  EXPECT_EQ(timing.last, 1U);
  EXPECT_EQ(timing.counts.requests[static_cast<std::size_t>(RequestKind::word)], 1U);
}

// A release waits for the acknowledgement of the store, then for the fence.
TEST(Alone, ReleaseWaitsForAcknowledgements) {
  Program program = two_gpus();
  const auto [from, to] = program.connect(0, 1);
  Gpu& sender = program.gpus[0];
  sender.add(sender.blocks[0], {.kind = OperationKind::put, .pays_op = false}, std::array{local(128)},
             std::array{remote(1, 128)});
  sender.add(sender.blocks[0], {.kind = OperationKind::signal, .pays_op = false}, {}, {}, std::array{from});
  // 156 bytes hold a link for 347 ps, the acknowledgement of 8 bytes for 18 ps. There and back: out + way + in, and
  // way + out. Then the fence.
  const Time there = Time::from_ns(280 + 300 + 150) + Time::from_ps(347),
             back = Time::from_ns(300 + 280) + Time::from_ps(18);
  EXPECT_EQ(run(program).ends[0], Time::from_ns(1050 + 280 + 300 + 100) + there + back);
}

// GPU 0 loads a line of GPU 1: touch, load, and what the request and the data hold their links.
TEST(Alone, LoadTakesTheWayThereAndBack) {
  Program program = two_gpus();
  Gpu& asker = program.gpus[0];
  asker.add(asker.blocks[0], {.kind = OperationKind::get, .pays_op = false}, std::array{remote(1, 128)},
            std::array{local(128)});
  // touch 370, load 950; 28 bytes of the request take 63 ps, 156 of the answer 347 ps.
  EXPECT_EQ(run(program).ends[0], Time::from_ns(1050 + 370 + 950 + 100) + Time::from_ps(63 + 347));
}

// Three blocks on two streaming multiprocessors: the third begins when one of them is over.
TEST(Alone, BlocksWaitForAStreamingMultiprocessor) {
  Program program = two_gpus();
  program.gpus[0].blocks.resize(3);
  for (Block& block : program.gpus[0].blocks) program.gpus[0].add(block, {.kind = OperationKind::nop});
  Parameters parameters = h100->parameters;
  parameters.sms = 2;
  EXPECT_EQ(run(program).ends[0], Time::from_ns(1050 + 20 + 100));
  EXPECT_EQ(run(program, parameters).ends[0], Time::from_ns(1050 + 40 + 100));
}

// Two blocks of one GPU, of which one comes 20 ns later: both leave 450 ns after it.
TEST(Alone, BarrierJoinsBlocks) {
  Program program = two_gpus();
  Gpu& gpu = program.gpus[0];
  gpu.blocks.resize(2);
  gpu.add(gpu.blocks[0], {.kind = OperationKind::nop});
  for (Block& block : gpu.blocks) gpu.add(block, {.kind = OperationKind::barrier, .barrier = {0, 2}});
  EXPECT_EQ(run(program).ends[0], Time::from_ns(1050 + 20 + 450 + 100));
}

// Block 1 releases what block 0 acquires: it counts 240 ns later, and the poll takes as long.
TEST(Alone, SemaphoreLetsAnotherBlockGoOn) {
  Program program = two_gpus();
  Gpu& gpu = program.gpus[0];
  gpu.blocks.resize(2);
  gpu.semaphores = {0};
  gpu.add(gpu.blocks[0], {.kind = OperationKind::sem_acquire}, {}, {}, std::array{0U});
  gpu.add(gpu.blocks[1], {.kind = OperationKind::nop});
  gpu.add(gpu.blocks[1], {.kind = OperationKind::sem_release}, {}, {}, std::array{0U});
  EXPECT_EQ(run(program).ends[0], Time::from_ns(1050 + 20 + 240 + 240 + 100));
}

// GPU 1 waits for a word that nobody sends: the message names GPU, block, operation and channel.
TEST(Alone, StuckBlockIsTold) {
  Program program = two_gpus();
  const auto [from, to] = program.connect(0, 1);
  program.gpus[1].add(program.gpus[1].blocks[0], {.kind = OperationKind::wait}, {}, {}, std::array{to});
  try {
    (void)run(program);
    FAIL() << "the program ended";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    EXPECT_NE(error.text().find("GPU 1, thread block 0, operation 0 (wait)"), std::string::npos) << error.text();
    EXPECT_NE(error.text().find("word 1 of channel 0 from GPU 0"), std::string::npos) << error.text();
  }
}

// GPUs that links join in pairs have no switch that adds up: the program is refused.
TEST(Alone, SumOfTheSwitchNeedsASwitch) {
  const KernelName kernel("in-switch");
  KernelShape shape = kernel->usual;
  shape.bytes = Bytes(8192);
  const ProfileName mi300x("mi300x");  // whose GPUs have links to each other
  EXPECT_THROW((void)simulate_alone(kernel->make(shape), *mi300x, mi300x->parameters, {}), Error);
}

// Section 3.5 of the design: words of control that pass data or wait. Both directions, 16 MiB, 32 blocks of 1024.
TEST(Alone, RequestsThatWaitForDataCostLoadsMoreThanStores) {
  const auto time = [](const char* name, Arbitration arbitration) {
    const KernelName kernel(name);
    KernelShape shape = kernel->usual;
    shape.bytes = Bytes(16 << 20);
    Parameters parameters = h100->parameters;
    parameters.arbitration = arbitration;
    return static_cast<double>(run(kernel->make(shape), parameters).whole.ps()) * 1e-6;
  };
  EXPECT_NEAR(time("put", Arbitration::fair), 54.2, 0.1);
  EXPECT_NEAR(time("get", Arbitration::fair), 57.7, 0.1);
  EXPECT_NEAR(time("get", Arbitration::fifo), 70.2, 0.1);
}

// Section 3.6: each GPU sends its own share and the data of all to the switch once.
TEST(Alone, SumOfTheSwitchMovesEachByteOnce) {
  const KernelName kernel("in-switch");
  KernelShape shape = kernel->usual;
  shape.bytes = Bytes(1 << 20);
  const Timing timing = run(kernel->make(shape));
  const auto lines = [&](RequestKind kind) { return timing.counts.requests[static_cast<std::size_t>(kind)]; };
  const std::uint64_t whole = (1U << 20U) / 128;
  EXPECT_EQ(lines(RequestKind::switch_part), 8 * whole);
  EXPECT_EQ(lines(RequestKind::switch_store), whole);
}

// Times of a program of the rules in Python, which the design has beside it: with bursts of 64 (shared/reference/gpu).
TEST(Alone, KernelsTakeWhatTheReferenceProgramSays) {
  struct Case {
    const char* kernel;
    const char* profile;
    std::uint64_t bytes;
    double us;
  };
  for (const Case& known :
       {Case{"put", "h100", 1024, 6.343}, Case{"put", "h100", 1 << 20, 9.457}, Case{"put", "h100", 128 << 20, 389.800},
        Case{"get", "h100", 1024, 4.353}, Case{"get", "h100", 1 << 20, 7.453}, Case{"get", "h100", 128 << 20, 432.451},
        Case{"packets", "h100", 1024, 4.286}, Case{"one-shot", "h100", 1024, 4.584},
        Case{"one-shot", "h100", 4096, 4.848}, Case{"one-shot", "h100", 16384, 5.749},
        Case{"one-shot-blocks", "a100", 8192, 6.456}}) {
    const KernelName kernel(known.kernel);
    const ProfileName profile(known.profile);
    KernelShape shape = kernel->usual;
    shape.bytes = Bytes(known.bytes);
    const Timing timing = simulate_alone(kernel->make(shape), *profile, profile->parameters, {64});
    EXPECT_NEAR(static_cast<double>(timing.whole.ps()) * 1e-6, known.us, 0.0006 + known.us * 1e-5)
        << known.kernel << " of " << known.bytes;
  }
}

}  // namespace
}  // namespace orrery::gpu
