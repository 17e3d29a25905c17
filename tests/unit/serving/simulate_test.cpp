// Whole runs with linear costs on random lists of requests: conservation of tokens and blocks, limits of a step, times
// by hand, Little's law, and one answer for each number of ranks.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "mpi_world.hpp"
#include "orrery/base/error.hpp"
#include "orrery/serving/description.hpp"
#include "orrery/serving/metrics.hpp"

namespace orrery::serving {
namespace {

constexpr std::int64_t us = 1'000'000;

/// Returns instances with linear costs.
Description description_of(std::vector<Role> roles, std::uint32_t blocks) {
  Description description;
  description.step.model = StepModelName("linear");
  description.step.linear = {Time::from_ps(5000 * us), Time::from_ps(20 * us), Time::from_ps(10 * us),
                             Time::from_ps(us / 50), false};
  description.record_steps = true;
  description.kv_bytes_per_token = 1000;
  description.requests.count = description.requests.prompt.value = description.requests.output.value = 1;
  for (const Role role : roles) {
    InstanceOptions instance;
    instance.name = "i";
    instance.role = role;
    instance.kv_blocks = blocks;
    description.instances.push_back(instance);
  }
  return description;
}

Requests random_requests(std::uint32_t seed, std::uint32_t count, std::uint32_t most) {
  std::mt19937 random(seed);
  const auto draw = [&](std::uint32_t below) { return static_cast<std::uint32_t>(random() % below); };
  Requests requests;
  Time now;
  for (std::uint32_t i = 0; i < count; ++i) {
    Request request;
    now += Time::from_ps(std::int64_t{draw(20'000)} * us);
    request.arrival = now;
    request.prompt = 1 + draw(most * 2 / 3);
    request.output = 1 + draw(most / 3);
    request.first_id = requests.ids.size();
    request.num_ids = request.prompt / 16;
    const std::uint32_t common = draw(8);
    for (std::uint32_t b = 0; b < request.num_ids; ++b) requests.ids.push_back(b < common ? b : 1000 + i * 100 + b);
    requests.list.push_back(request);
  }
  return requests;
}

Scenario scenario_of(const Description& description, Requests requests) {
  Scenario scenario = make_scenario(description);
  scenario.requests = std::move(requests);
  scenario.validate();
  return scenario;
}

void expect_conserved(const Scenario& scenario, const Results& results) {
  std::map<std::uint32_t, std::uint64_t> computed;
  std::size_t item = 0;
  for (const StepRecord& step : results.steps) {
    std::uint64_t tokens = 0;
    for (std::uint32_t i = 0; i < step.num_items; ++i, ++item) {
      computed[results.items[item].request] += results.items[item].tokens;
      tokens += results.items[item].tokens;
    }
    const SchedulerOptions& options = scenario.instances.front().scheduler;
    EXPECT_LE(tokens, options.max_tokens);
    EXPECT_LE(step.num_items, options.max_seqs);
    EXPECT_LE(step.used_blocks, scenario.instances.front().kv_blocks);
  }
  for (const RequestRecord& record : results.requests) {
    const Request& request = scenario.requests[record.id];
    const std::uint64_t twice = record.decode_instance >= 0 ? request.prompt : 0;
    const std::uint64_t all = computed[record.id] + record.prefix_hit + record.transferred - record.lost - twice;
    // Nothing is left of a request that was preempted while its last token was under way.
    EXPECT_TRUE(all == std::uint64_t{request.prompt} + request.output - 1 || (all == 0 && record.preemptions > 0))
        << record.id;
    EXPECT_LE(record.arrival, record.scheduled);
    EXPECT_LT(record.scheduled, record.first);
    EXPECT_EQ(record.first == record.last, request.output == 1);
  }
  for (const InstanceRecord& record : results.instances) EXPECT_EQ(record.used_at_end, 0U);
}

class RandomLists : public ::testing::TestWithParam<std::uint32_t> {};

// Random lists on four arrangements of instances, with all policies: no token and no block is lost.
TEST_P(RandomLists, ConserveTokensAndBlocks) {
  const std::uint32_t seed = GetParam();
  std::mt19937 random(seed);
  const std::vector<std::vector<Role>> all_roles{{Role::both},
                                                 {Role::both, Role::both, Role::both},
                                                 {Role::prefill, Role::decode},
                                                 {Role::prefill, Role::decode, Role::decode}};
  Description description = description_of(all_roles[seed % 4], 40);
  for (InstanceOptions& instance : description.instances) {
    instance.scheduler.prefix_cache = seed % 3 != 0;
    instance.scheduler.ahead = seed % 2 == 0;
    instance.scheduler.reserve_full = seed % 5 < 3;
    instance.scheduler.max_seqs = 1U << (seed % 6);
    instance.scheduler.max_tokens = 64U << (seed % 3);
  }
  const auto policies = PolicyName::all();
  description.router.policy = policies[seed % policies.size()];
  const Scenario scenario = scenario_of(description, random_requests(seed, 40, 400));
  expect_conserved(scenario, simulate(scenario, test::world()));
}
INSTANTIATE_TEST_SUITE_P(Seeds, RandomLists, ::testing::Range(0U, 60U));

// One request of 100 + 3 tokens on one instance: the times of its first and last token by hand.
TEST(Serving, MakesOneTokenAStepAfterThePrefill) {
  Description description = description_of({Role::both}, 100);
  description.router.dispatch = description.router.report = Time::zero();
  Requests requests;
  requests.list.push_back({.arrival = Time::from_ps(7), .prompt = 100, .output = 3});
  const Results results = simulate(scenario_of(description, requests), test::world());
  if (!test::world().is_root()) return;
  const std::int64_t prefill = (5000 + 100 * 20 + 10) * us, decode = (5000 + 20 + 10) * us + 100 * us / 50;
  EXPECT_EQ(results.requests[0].first.ps(), 7 + prefill);
  EXPECT_EQ(results.requests[0].last.ps(), 7 + prefill + 2 * decode + us / 50);
}

// 60 requests, two at a time: the integral of the number in the system is the sum of the times in it, exactly.
TEST(Serving, ObeysLittlesLawExactly) {
  Description description = description_of({Role::both}, 60);
  description.router.dispatch = description.router.report = Time::zero();
  description.instances[0].scheduler.max_seqs = 2;
  const Scenario scenario = scenario_of(description, random_requests(4, 60, 300));
  const Results results = simulate(scenario, test::world());
  if (!test::world().is_root()) return;
  std::uint64_t in_system = 0;
  for (const RequestRecord& record : results.requests)
    in_system += static_cast<std::uint64_t>((record.last - record.arrival).ps());
  const InstanceRecord& instance = results.instances[0];
  EXPECT_EQ(instance.running_sum_low + instance.waiting_sum_low, in_system);
}

// Requests and instances that contradict each other: each is refused with a message that names them.
TEST(Serving, RefusesWhatCannotEverRun) {
  const auto fault_of = [](Description description, Requests requests) -> std::string {
    try {
      scenario_of(description, std::move(requests));
    } catch (const Error& error) {
      return error.what();
    }
    return "no fault";
  };
  Requests one;
  one.list.push_back({.arrival = {}, .prompt = 1000, .output = 9});
  EXPECT_NE(fault_of(description_of({Role::both}, 10), one).find("request 0 needs 63 KV blocks, instance i.0 has 10"),
            std::string::npos);
  Description limited = description_of({Role::both}, 100);
  limited.instances[0].scheduler.max_length = 500;
  EXPECT_NE(fault_of(limited, one).find("request 0: 1000 + 9 tokens exceed max-length 500"), std::string::npos);
  EXPECT_NE(fault_of(description_of({Role::prefill}, 100), one).find("none with the role decode"), std::string::npos);
  Description hasty = description_of({Role::both, Role::both}, 100);
  hasty.router.policy = PolicyName("least-requests");
  hasty.router.dispatch = Time::zero();
  EXPECT_NE(fault_of(hasty, one).find("'serving.router.dispatch': found 0"), std::string::npos);
  Description mixed = description_of({Role::both, Role::both}, 100);
  mixed.instances[1].scheduler.block = 32;
  EXPECT_NE(fault_of(mixed, one).find("blocks of 16 and of 32 tokens"), std::string::npos);
}

// 80 GB of memory, 16 GB of weights, 2 GB of reserve: the blocks by hand, on one NPU and on two.
TEST(Serving, FindsBlocksThatWeightsLeave) {
  Description description = description_of({Role::both}, 0);
  description.memory = Bytes(80'000'000'000);
  description.weight_bytes = 16'000'000'000;
  description.kv_bytes_per_token = 131072;
  InstanceOptions& instance = description.instances[0];
  instance.reserve = Bytes(2'000'000'000);
  EXPECT_EQ(kv_blocks(description, instance), 25748U);  // (72 - 16 - 2) GB / (16 * 131072 B) - 1
  instance.parallel.tp = 2;
  EXPECT_EQ(kv_blocks(description, instance), 59126U);  // (72 - 8 - 2) GB / (8 * 131072 B) - 1
  description.weight_bytes = 200'000'000'000;
  EXPECT_THROW(kv_blocks(description, instance), Error);
}

// Llama 3 70B and DeepSeek-V3: the published bytes of keys and values of a token.
TEST(Serving, KnowsTheKeysAndValuesOfModels) {
  workload::Transformer llama{.layers = 80, .hidden = 8192};
  llama.attention = {.heads = 64, .kv_heads = 8, .head_size = 128};
  EXPECT_EQ(kv_bytes_per_token(llama, 2), 327680U);
  EXPECT_EQ(kv_bytes_per_token(llama, 1), 163840U);
  workload::Transformer deepseek{.layers = 61, .hidden = 7168};
  deepseek.latent = {.key_value = 512, .rotary = 64};
  EXPECT_EQ(kv_bytes_per_token(deepseek, 2), 70272U);
}

// Times from 1 ps to 123 s: the middle of the bin of each is within 1 %.
TEST(TokenGaps, HaveBinsOfOnePercent) {
  for (const std::int64_t ps : {1L, 127L, 128L, 1000L, 8'441'277'123L, 123'456'789'012'345L}) {
    const double middle = TokenGaps::middle_of(TokenGaps::bin_of(Time::from_ps(ps)));
    EXPECT_NEAR(middle / static_cast<double>(ps), 1, 0.01) << ps;
  }
}

}  // namespace
}  // namespace orrery::serving
