#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "message_simulation.hpp"
#include "orrery/base/error.hpp"
#include "random_case.hpp"

namespace orrery::collective::test {
namespace {

std::vector<Ps> as_ps(const std::vector<Time>& times) {
  std::vector<Ps> result;
  for (const Time time : times) result.push_back(time.ps());
  return result;
}

std::vector<Time> finish(Engine& engine, const Layout& layout, const RandomCase& sample,
                         const std::vector<Time>& arrivals) {
  std::vector<Time> completions(arrivals.size());
  engine.finish(layout, sample.kind, sample.size, arrivals, completions);
  return completions;
}

/// Any group of two or more distinct NPUs in any order.
std::vector<NpuId> random_group(std::mt19937_64& random, std::uint32_t num_npus) {
  std::vector<NpuId> members;
  for (std::uint32_t npu = 0; npu < num_npus; ++npu) members.emplace_back(npu);
  std::ranges::shuffle(members, random);
  members.resize(std::uniform_int_distribution<std::size_t>(2, num_npus)(random));
  return members;
}

// The recurrences, closed forms and fixed order of the engine give, member by member, what a simulation of every single
// message gives: for skewed arrivals in the order recorded with equal ones, and for equal arrivals.
TEST(Collective, AgreesWithMessages) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 400; ++round) {
    SCOPED_TRACE(round);
    const RandomCase sample = random_case(random, 24);
    const topology::Topology topology = sample.topology();
    const Scenario scenario = scenario_of(sample, topology);
    Engine engine(topology, sample.options);
    const auto layout = engine.layout({}, all_dimensions);
    MessageSimulation together(scenario, nullptr);
    const std::vector<Time> equal(topology.num_npus());
    const std::vector<Time> skewed = random_arrivals(random, topology.num_npus());
    EXPECT_EQ(as_ps(finish(engine, *layout, sample, equal)), together.run(as_ps(equal)));
    MessageSimulation apart(scenario, &together.recorded());
    EXPECT_EQ(as_ps(finish(engine, *layout, sample, skewed)), apart.run(as_ps(skewed)));
  }
}

// One ring over members that are no neighbours: every edge has its own delay. Chunks of one phase are served in order.
TEST(Collective, RingOverAnyMembersAgreesWithMessages) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    RandomCase sample = random_case(random, 24);
    if (sample.num_npus() < 3) continue;
    sample.rules.subgroup_is_ring = true;
    sample.dimensions.push_back({topology::Shape::ring, 1, Bandwidth::from_bytes_per_ns(50), 100});
    sample.options.all_gather = sample.options.reduce_scatter = sample.options.all_to_all = sample.options.all_reduce =
        std::vector<Algorithm>(sample.dimensions.size());
    const topology::Topology topology = sample.topology();
    std::vector<NpuId> members = random_group(random, topology.num_npus());
    members.resize(std::min<std::size_t>(members.size(), topology.num_npus() - 1));
    const auto count = static_cast<std::uint32_t>(members.size());
    // The phases of a world that is one ring of as many NPUs, with this topology's delays.
    RandomCase line = sample;
    line.dimensions = {{topology::Shape::ring, count, Bandwidth::from_bytes_per_ns(50), 0}};
    line.options.all_reduce = {Algorithm{}};
    const topology::Topology line_topology = line.topology();
    const std::uint64_t chunk =
        std::max<std::uint64_t>(sample.size.count() / sample.options.splits, topology.num_npus());
    line.size = sample.size = Bytes(chunk * sample.options.splits);
    if (sample.rules.fixed_subgroup_endpoint_delay) line.options.endpoint_delay = Time::from_ns(10);
    Scenario scenario = scenario_of(line, line_topology);
    const std::uint64_t share = sample.rules.share_bandwidth ? std::min(scenario.num_chunks, scenario.in_service) : 1;
    scenario.link = [&](std::uint32_t from, std::uint32_t to, std::uint64_t bytes, std::uint32_t) {
      Ps total = 0;
      for (std::uint32_t d = 0; d < topology.num_dimensions(); ++d) {
        const std::uint32_t a = topology.coordinate(members[from], d);
        const std::uint32_t b = topology.coordinate(members[to], d);
        if (a == b) continue;
        total += topology.link_delay(d, topology.hops(d, std::max(a, b) - std::min(a, b)), Bytes(bytes * share)).ps();
        if (!topology.rules().charge_every_dimension) break;
      }
      return total;
    };
    Predecessors in_order(scenario.num_chunks, {std::nullopt});
    for (std::uint32_t c = scenario.in_service; c < scenario.num_chunks; ++c)
      in_order[c][0] = std::pair(c - scenario.in_service, 0U);
    Engine engine(topology, sample.options);
    const auto layout = engine.layout(members, all_dimensions);
    for (const bool skew : {false, true}) {
      const std::vector<Time> arrivals = skew ? random_arrivals(random, count) : std::vector<Time>(count);
      EXPECT_EQ(as_ps(finish(engine, *layout, sample, arrivals)),
                MessageSimulation(scenario, &in_order).run(as_ps(arrivals)));
    }
  }
}

/// Any kind on any group, trees and `one*` included; nothing if the engine refuses it.
struct AnyCase {
  RandomCase sample;
  std::unique_ptr<Engine> engine;
  std::shared_ptr<const Layout> layout;
  std::uint32_t count = 0;
};

std::optional<AnyCase> any_case(std::mt19937_64& random) {
  AnyCase any{random_case(random, 48), nullptr, nullptr, 0};
  RandomCase& sample = any.sample;
  const auto choice = random() % 4;
  Algorithm algorithm{static_cast<AlgorithmKind>(random() % 4), 0, choice == 0};
  if (choice <= 1) sample.options.all_reduce.assign(sample.dimensions.size(), algorithm);
  sample.options.all_gather = sample.options.reduce_scatter = sample.options.all_to_all = sample.options.all_reduce;
  sample.options.queues = 1 + static_cast<std::uint32_t>(random() % 4);
  sample.kind = static_cast<Kind>(random() % 9);
  any.engine = std::make_unique<Engine>(sample.topology(), sample.options);
  std::vector<NpuId> members = random_group(random, sample.num_npus());
  if (random() % 2 == 0) members.clear();
  any.count = members.empty() ? sample.num_npus() : static_cast<std::uint32_t>(members.size());
  any.layout = any.engine->layout(members, all_dimensions);
  try {
    any.engine->validate(*any.layout, sample.kind);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    return std::nullopt;
  }
  return any;
}

// A later arrival never makes anybody earlier; shifting all arrivals shifts all completions; nobody completes before
// the last arrival and the least duration; the memo does not change a result.
TEST(Collective, IsMonotoneAndShiftInvariantAndBounded) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 600; ++round) {
    SCOPED_TRACE(round);
    const std::optional<AnyCase> any = any_case(random);
    if (!any) continue;
    const std::vector<Time> arrivals = random_arrivals(random, any->count);
    const std::vector<Time> completions = finish(*any->engine, *any->layout, any->sample, arrivals);
    const Time earliest = *std::ranges::max_element(arrivals) + any->engine->minimum_duration(*any->layout);
    EXPECT_GE(any->engine->minimum_duration(*any->layout), tick(any->sample.rules.rounding));
    EXPECT_GE(*std::ranges::min_element(completions), earliest);
    const Time shift = Time::from_ps(static_cast<std::int64_t>(random() % 1'000'000'000));
    std::vector<Time> later = arrivals;
    for (Time& time : later) time += shift;
    std::vector<Time> shifted = finish(*any->engine, *any->layout, any->sample, later);
    for (std::size_t i = 0; i < shifted.size(); ++i) EXPECT_EQ(shifted[i], completions[i] + shift);
    later = arrivals;
    later[random() % later.size()] += shift;
    shifted = finish(*any->engine, *any->layout, any->sample, later);
    for (std::size_t i = 0; i < shifted.size(); ++i) EXPECT_GE(shifted[i], completions[i]);
    EXPECT_EQ(finish(*any->engine, *any->layout, any->sample, arrivals), completions);
    EXPECT_EQ(any->engine->traffic(*any->layout, any->sample.kind, any->sample.size).size(),
              any->sample.dimensions.size());
  }
}

// Members that arrive together take the memo. Arrivals that differ by less than can matter take the recurrences: one
// member a tick earlier than the others changes nobody's completion, or makes it earlier by a tick at the most.
TEST(Collective, FastPathIsTheGeneralPath) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 600; ++round) {
    SCOPED_TRACE(round);
    const std::optional<AnyCase> any = any_case(random);
    if (!any) continue;
    const Time start = Time::from_ps(static_cast<std::int64_t>(1 + random() % 1'000'000'000));
    std::vector<Time> arrivals(any->count, start);
    const std::vector<Time> together = finish(*any->engine, *any->layout, any->sample, arrivals);
    arrivals[random() % arrivals.size()] -= Time::from_ps(1);
    const std::vector<Time> apart = finish(*any->engine, *any->layout, any->sample, arrivals);
    for (std::size_t i = 0; i < apart.size(); ++i) {
      EXPECT_LE(apart[i], together[i]);
      EXPECT_GE(apart[i], together[i] - Time::from_ps(1));
    }
  }
}

// Physical rules: the bytes that a member sends in a dimension cannot pass its links faster than their bandwidth. A
// member has one link in a ring of algorithms that send one message at a time, whatever chunks are in service.
TEST(Collective, NeverBeatsTheLinkUnderPhysicalRules) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 400; ++round) {
    SCOPED_TRACE(round);
    RandomCase sample = random_case(random, 32);
    sample.rules = Rules::physical();
    sample.options.queues = 1 + static_cast<std::uint32_t>(random() % 4);
    sample.options.active_chunks = 1 + static_cast<std::uint32_t>(random() % 16);
    for (Algorithm& algorithm : sample.options.all_reduce)
      if (algorithm.kind == AlgorithmKind::direct) algorithm = {};
    sample.options.all_gather = sample.options.reduce_scatter = sample.options.all_to_all = sample.options.all_reduce;
    Engine engine(sample.topology(), sample.options);
    const auto layout = engine.layout({}, all_dimensions);
    const std::vector<Time> completions = finish(engine, *layout, sample, random_arrivals(random, sample.num_npus()));
    const Traffic& traffic = engine.traffic(*layout, sample.kind, sample.size);
    for (std::size_t d = 0; d < traffic.size(); ++d) {
      const Time bound = delay(0, traffic[d], sample.dimensions[d].bandwidth, Rounding::up_to_ps);
      EXPECT_GE(*std::ranges::min_element(completions) + Time::from_ps(1), bound) << "dimension " << d;
    }
  }
}

// Results do not depend on what was asked before.
TEST(Collective, OrderOfCallsDoesNotMatter) {
  std::mt19937_64 random(6);
  for (int round = 0; round < 100; ++round) {
    const RandomCase sample = random_case(random, 24);
    const std::vector<Time> arrivals = random_arrivals(random, sample.num_npus());
    Engine fresh(sample.topology(), sample.options);
    Engine used(sample.topology(), sample.options);
    RandomCase other = sample;
    for (const std::uint64_t bytes : {100U, 5000U, 77777U}) {
      other.size = Bytes(bytes);
      finish(used, *used.layout({}, all_dimensions), other, random_arrivals(random, sample.num_npus()));
    }
    finish(used, *used.layout({}, all_dimensions), sample, std::vector<Time>(sample.num_npus()));
    EXPECT_EQ(finish(fresh, *fresh.layout({}, all_dimensions), sample, arrivals),
              finish(used, *used.layout({}, all_dimensions), sample, arrivals));
  }
}

}  // namespace
}  // namespace orrery::collective::test
