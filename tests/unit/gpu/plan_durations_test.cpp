// Plans in place of algorithms: two or four GPUs at a switch with links of 450 GB/s and 150 ns.
#include <gtest/gtest.h>

#include "orrery/collective/collective.hpp"
#include "orrery/gpu/alone.hpp"
#include "orrery/gpu/options.hpp"
#include "plan_text.hpp"

namespace orrery::gpu {
namespace {

using collective::Kind;

/// A plan in which two GPUs store their chunk of an all-gather at each other and say so.
Plan gather(std::uint64_t least, std::uint64_t most) {
  std::vector<std::vector<test::Json>> blocks;
  for (int gpu = 0; gpu < 2; ++gpu)
    blocks.push_back({test::Json::array({test::operation("put", {test::chunks("o", gpu)}, {test::remote(1, gpu)}),
                                         test::words("signal", {0}), test::words("wait", {0})})});
  test::Json plan = test::plan_of(blocks, {.collective = "allgather", .input = 1, .output = 2, .scratch = 0});
  plan["min_message_size"] = least;
  plan["max_message_size"] = most;
  return test::parse(plan);
}

Options options_with(std::vector<Plan> plans) {
  Options options;
  options.profile = ProfileName("h100");
  options.parameters = (*options.profile)->parameters;
  for (Plan& plan : plans) options.plans[Kind::all_gather].push_back(std::make_shared<const Plan>(std::move(plan)));
  return options;
}

network::DelayModel switch_of(std::uint32_t size) {
  return network::DelayModel(topology::Topology({{.shape = topology::Shape("Switch"),
                                                  .size = size,
                                                  .bandwidth = Bandwidth::from_bytes_per_ns(450),
                                                  .latency_ns = 150}}));
}

collective::Options rings() {
  collective::Options options;
  options.all_reduce = options.all_gather = options.reduce_scatter = options.all_to_all = {collective::Algorithm{}};
  return options;
}

/// Returns the completions of all-gathers of `size` bytes a member, whose members arrive at 0 and at 5 us.
std::vector<Time> completions(const collective::Options& options, Bytes size) {
  const network::DelayModel delays = switch_of(2);
  collective::Engine engine(delays, options);
  const auto layout = engine.layout({}, collective::all_dimensions);
  const std::vector<Time> arrivals = {Time::zero(), Time::from_ns(5000)};
  std::vector<Time> ends(2);
  engine.finish(*layout, Kind::all_gather, size, arrivals, ends);
  return ends;
}

TEST(PlanDurations, MembersCompleteTogetherAfterTheLastArrival) {
  const Options gpus = options_with({gather(0, 1 << 30)});
  collective::Options options = rings();
  options.custom.whole = plan_durations(gpus);
  const Plan& plan = *gpus.plans.at(Kind::all_gather).front();
  const Time alone =
      simulate_alone(make_program(plan, Bytes(8192)), *ProfileName("h100"), gpus.parameters, gpus.granularity()).whole;
  EXPECT_EQ(completions(options, Bytes(4096)), std::vector(2, Time::from_ns(5000) + alone));
}

TEST(PlanDurations, SizeThatNoPlanHasTakesTheAlgorithm) {
  collective::Options options = rings();
  const auto ring = completions(options, Bytes(4096));
  options.custom.whole = plan_durations(options_with({gather(16384, 1 << 30)}));
  EXPECT_EQ(completions(options, Bytes(4096)), ring);
  EXPECT_NE(completions(options, Bytes(8192)), completions(rings(), Bytes(8192)));
}

TEST(PlanDurations, EachSizeHasThePlanOfItsRange) {
  const auto durations = plan_durations(options_with({gather(0, 8192), gather(8193, 1 << 30)}));
  EXPECT_TRUE(durations->carrier(Kind::all_gather, 2, Bytes(8192)));
  EXPECT_TRUE(durations->carrier(Kind::all_gather, 2, Bytes(8193)));
  EXPECT_FALSE(durations->carrier(Kind::all_gather, 2, Bytes((1 << 30) + 1)));
  EXPECT_FALSE(durations->carrier(Kind::all_gather, 4, Bytes(8192)));
  EXPECT_FALSE(durations->carrier(Kind::all_reduce, 2, Bytes(8192)));
}

}  // namespace
}  // namespace orrery::gpu
