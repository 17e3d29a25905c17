#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "link_counts.hpp"
#include "message_simulation.hpp"
#include "orrery/base/error.hpp"
#include "orrery/collective/registry.hpp"
#include "random_case.hpp"

namespace orrery::collective::test {
namespace {

std::vector<Ps> as_ps(const std::vector<Time>& times) {
  std::vector<Ps> result;
  for (const Time time : times) result.push_back(time.ps());
  return result;
}

std::vector<Time> finish(Engine& engine, const GroupLayout& layout, const RandomCase& sample,
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
    const network::DelayModel delays = sample.delays();
    const Scenario scenario = scenario_of(sample, delays);
    Engine engine(delays, sample.engine_options());
    const auto layout = engine.layout({}, all_dimensions);
    MessageSimulation together(scenario, nullptr);
    const std::vector<Time> equal(delays.topology().num_npus());
    const std::vector<Time> skewed = random_arrivals(random, delays.topology().num_npus());
    EXPECT_EQ(as_ps(finish(engine, *layout, sample, equal)), together.run(as_ps(equal)));
    MessageSimulation apart(scenario, &together.recorded());
    EXPECT_EQ(as_ps(finish(engine, *layout, sample, skewed)), apart.run(as_ps(skewed)));
  }
}

// Up to 40 chunks pass one after the other, and one member is late, or several are: the engine stops evaluating chunks
// when their times repeat, and gives what a simulation of every message gives.
TEST(Collective, ManyChunksInARowAgreeWithMessages) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    RandomCase sample = random_case(random, 16);
    sample.options.chunks.active_chunks = sample.options.chunks.queues = 1;
    sample.options.chunks.overlap_latency = false;
    sample.options.chunks.splits = 1 + static_cast<std::uint32_t>(random() % 40);
    const network::DelayModel delays = sample.delays();
    const std::uint32_t num_npus = delays.topology().num_npus();
    const Scenario scenario = scenario_of(sample, delays);
    Engine engine(delays, sample.engine_options());
    const auto layout = engine.layout({}, all_dimensions);
    MessageSimulation together(scenario, nullptr);
    together.run(as_ps(std::vector<Time>(num_npus)));
    std::vector<Time> arrivals = random_arrivals(random, num_npus);
    if (random() % 2 == 0)
      for (std::size_t i = 1; i < arrivals.size(); ++i) arrivals[i] = Time::zero();
    std::ranges::shuffle(arrivals, random);
    MessageSimulation apart(scenario, &together.recorded());
    EXPECT_EQ(as_ps(finish(engine, *layout, sample, arrivals)), apart.run(as_ps(arrivals)));
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
    sample.dimensions.push_back({topology::Shape("Ring"), 1, Bandwidth::from_bytes_per_ns(50), 100});
    sample.options.all_gather = sample.options.reduce_scatter = sample.options.all_to_all = sample.options.all_reduce =
        std::vector<Algorithm>(sample.dimensions.size());
    const network::DelayModel delays = sample.delays();
    std::vector<NpuId> members = random_group(random, delays.topology().num_npus());
    members.resize(std::min<std::size_t>(members.size(), delays.topology().num_npus() - 1));
    const auto count = static_cast<std::uint32_t>(members.size());
    // The phases of a world that is one ring of as many NPUs, with this delays.
    RandomCase ring = sample;
    ring.dimensions = {{topology::Shape("Ring"), count, Bandwidth::from_bytes_per_ns(50), 0}};
    ring.options.all_reduce = {Algorithm{}};
    const network::DelayModel ring_delays = ring.delays();
    const std::uint64_t chunk =
        std::max<std::uint64_t>(sample.size.count() / sample.options.chunks.splits, delays.topology().num_npus());
    ring.size = sample.size = Bytes(chunk * sample.options.chunks.splits);
    if (sample.rules.fixed_subgroup_endpoint_delay) ring.options.endpoint_delay = Time::from_ns(10);
    Scenario scenario = scenario_of(ring, ring_delays);
    const std::uint64_t share = sample.rules.share_bandwidth ? std::min(scenario.num_chunks, scenario.in_service) : 1;
    LinkCounts counts(delays.topology());
    for (std::uint32_t i = 0; sample.rules.share_bandwidth && i < count; ++i)
      counts.add(members[i], members[(i + 1) % count]);
    scenario.link = [&](const Passage& message, std::uint64_t bytes) {
      Ps total = 0;
      for (std::uint32_t d = 0; d < delays.topology().num_dimensions(); ++d) {
        const std::uint32_t a = delays.topology().coordinate(members[message.from], d);
        const std::uint32_t b = delays.topology().coordinate(members[message.to], d);
        if (a == b) continue;
        const std::uint64_t load = counts.most(d, members[message.sender], members[message.receiver]);
        total += delays.link_delay(d, delays.topology().hops(d, a, b), Bytes(bytes * share * load)).ps();
        if (!delays.rules().charge_every_dimension) break;
      }
      return total;
    };
    Predecessors in_order(scenario.num_chunks, {std::nullopt});
    for (std::uint32_t c = scenario.in_service; c < scenario.num_chunks; ++c)
      in_order[c][0] = std::pair(c - scenario.in_service, 0U);
    Engine engine(delays, sample.engine_options());
    const auto layout = engine.layout(members, all_dimensions);
    for (const bool skew : {false, true}) {
      const std::vector<Time> arrivals = skew ? random_arrivals(random, count) : std::vector<Time>(count);
      EXPECT_EQ(as_ps(finish(engine, *layout, sample, arrivals)),
                MessageSimulation(scenario, &in_order).run(as_ps(arrivals)));
    }
  }
}

/// The links of one dimension as docs/model.md (3) has them, found by a search in the group.
class PlainLinks {
 public:
  explicit PlainLinks(const RandomCase& sample) : sample_(sample), delays_(sample.delays()) {}

  /// Within a group of dimension d.
  Ps delay(std::uint32_t from, std::uint32_t to, std::uint32_t d, std::uint64_t bytes) const {
    double bandwidth[] = {1, 1};
    double latency[] = {1, 1};
    double left[] = {1.0 * sample_.dimensions[d].links, 1.0 * sample_.dimensions[d].links};
    const bool loses_one = sample_.dimensions[d].shape == topology::Shape("Switch");  // of several links side by side
    for (const topology::LinkFault& fault : sample_.faults)
      for (const NpuId npu : fault.npus)
        for (const int end : {0, 1})
          if ((!fault.failed || loses_one) && fault.dimension == d && npu.value() == (end == 0 ? from : to)) {
            bandwidth[end] *= fault.failed ? (left[end] - 1) / left[end] : fault.port.bandwidth;
            latency[end] *= fault.failed ? 1 : fault.port.latency;
            left[end] -= fault.failed ? 1 : 0;
          }
    const topology::Dimension& dimension = sample_.dimensions[d];
    const double of_links = dimension.bandwidth.bytes_per_ns() * dimension.links;
    double slowest = of_links * std::min(bandwidth[0], bandwidth[1]);
    if (dimension.oversubscription > 1) slowest = std::min(slowest, of_links / dimension.oversubscription);
    return orrery::delay(hops(from, to, d) * dimension.latency_ns * std::max(latency[0], latency[1]), Bytes(bytes),
                         Bandwidth::from_bytes_per_ns(slowest), sample_.rules.rounding)
        .ps();
  }

 private:
  bool has_link(std::uint32_t a, std::uint32_t b, std::uint32_t d) const {
    const std::uint32_t n = sample_.dimensions[d].size;
    const std::uint32_t ca = delays_.topology().coordinate(NpuId(a), d),
                        cb = delays_.topology().coordinate(NpuId(b), d);
    const std::uint32_t apart = std::max(ca, cb) - std::min(ca, cb);
    if (sample_.dimensions[d].shape == topology::Shape("Ring") && apart != 1 && apart != n - 1) return false;
    if (sample_.dimensions[d].shape == topology::Shape("Mesh") && apart != 1) return false;
    return std::ranges::none_of(sample_.faults, [&](const topology::LinkFault& fault) {
      return fault.failed && fault.dimension == d &&
             ((fault.npus[0].value() == a && fault.npus[1].value() == b) ||
              (fault.npus[0].value() == b && fault.npus[1].value() == a));
    });
  }

  std::uint32_t hops(std::uint32_t from, std::uint32_t to, std::uint32_t d) const {
    if (sample_.dimensions[d].shape == topology::Shape("Switch")) return 2;
    const std::uint32_t stride = delays_.topology().stride(d);
    const std::uint32_t first = from - delays_.topology().coordinate(NpuId(from), d) * stride;
    std::vector<std::uint32_t> reached{from};
    for (std::uint32_t count = 0;; ++count) {
      if (std::ranges::find(reached, to) != reached.end()) return count;
      std::vector<std::uint32_t> next = reached;
      for (const std::uint32_t a : reached)
        for (std::uint32_t c = 0; c < sample_.dimensions[d].size; ++c)
          if (const std::uint32_t b = first + c * stride; b != a && has_link(a, b, d)) next.push_back(b);
      std::ranges::sort(next);
      next.erase(std::ranges::unique(next).begin(), next.end());
      reached = next;
    }
  }

  const RandomCase& sample_;
  network::DelayModel delays_;
};

// Slow ports and failed links: a chunk over several dimensions, or several chunks in one, whose order is that in which
// they were cut.
TEST(Collective, DifferingLinksAgreeWithMessages) {
  std::mt19937_64 random(7);
  int differing = 0;
  for (int round = 0; round < 600; ++round) {
    SCOPED_TRACE(round);
    RandomCase sample = random_case(random, 32);
    add_random_faults(random, sample);
    const auto num_used = std::ranges::count_if(sample.dimensions, [](const auto& d) { return d.size > 1; });
    if (num_used > 1) sample.options.chunks.splits = 1;
    const network::DelayModel delays = sample.delays();
    Scenario scenario = scenario_of(sample, delays);
    if (num_used > 1 && scenario.num_chunks > 1) continue;
    const std::uint64_t share = sample.rules.share_bandwidth ? std::min(scenario.num_chunks, scenario.in_service) : 1;
    const PlainLinks plain(sample);
    std::vector<std::uint32_t> dimension_of;
    for (const PhaseOfChunk& phase : scenario.phases) dimension_of.push_back(phase.queue);
    scenario.link = [&, loads = loads_of(sample, scenario, delays)](const Passage& message, std::uint64_t bytes) {
      const std::uint32_t d = dimension_of[message.phase];
      const std::uint64_t at_once = std::max(sample.at_once(d), loads(message));
      return plain.delay(message.from, message.to, d, bytes * share * at_once);
    };
    Predecessors in_order(scenario.num_chunks, Predecessors::value_type(scenario.phases.size()));
    for (std::uint32_t c = scenario.in_service; num_used == 1 && c < scenario.num_chunks; ++c)
      in_order[c][0] = std::pair(c - scenario.in_service, 0U);
    Engine engine(delays, sample.engine_options());
    const auto layout = engine.layout({}, all_dimensions);
    for (const bool skew : {false, true}) {
      const auto arrivals = skew ? random_arrivals(random, delays.topology().num_npus())
                                 : std::vector<Time>(delays.topology().num_npus());
      const auto completions = finish(engine, *layout, sample, arrivals);
      EXPECT_EQ(as_ps(completions), MessageSimulation(scenario, &in_order).run(as_ps(arrivals)));
      if (!skew) differing += std::ranges::minmax(completions).min != std::ranges::minmax(completions).max;
    }
  }
  EXPECT_GT(differing, 100);
}

// If all ports of a dimension are slow alike, it is a slower dimension.
TEST(Collective, PortsThatAreSlowAlikeAreASlowerDimension) {
  std::mt19937_64 random(8);
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    RandomCase sample = random_case(random, 32);
    for (topology::Dimension& dimension : sample.dimensions) dimension.oversubscription = 1;  // no matter of ports
    RandomCase slower = sample;
    RandomCase faulty = sample;
    for (std::uint32_t d = 0; d < sample.dimensions.size(); ++d) {
      slower.dimensions[d].bandwidth =
          Bandwidth::from_bytes_per_ns(sample.dimensions[d].bandwidth.bytes_per_ns() * 0.5);
      slower.dimensions[d].latency_ns *= 2;
      topology::LinkFault fault{d, {}, {0.5, 2}, false};
      for (std::uint32_t npu = 0; npu < sample.num_npus(); ++npu) fault.npus.emplace_back(npu);
      faulty.faults.push_back(fault);
    }
    Engine engine(slower.delays(), sample.engine_options());
    Engine with_faults(faulty.delays(), sample.engine_options());
    for (const auto& arrivals : {std::vector<Time>(sample.num_npus()), random_arrivals(random, sample.num_npus())})
      EXPECT_EQ(finish(engine, *engine.layout({}, all_dimensions), sample, arrivals),
                finish(with_faults, *with_faults.layout({}, all_dimensions), sample, arrivals));
  }
}

void choose_orders(std::mt19937_64& random, Options& options) {
  options.chunks.dimension_order = static_cast<DimensionOrder>(random() % 3);
  options.chunks.chunk_order = static_cast<ChunkOrder>(random() % 3);
  options.chunks.overlap_latency = random() % 2 == 0;
}

/// Any kind on any group in any order, trees and `one*` included; nothing if the engine refuses it.
struct AnyCase {
  RandomCase sample;
  std::unique_ptr<Engine> engine;
  std::shared_ptr<const GroupLayout> layout;
  std::uint32_t count = 0;
};

std::optional<AnyCase> any_case(std::mt19937_64& random) {
  AnyCase any{random_case(random, 48), nullptr, nullptr, 0};
  RandomCase& sample = any.sample;
  const auto choice = random() % 4;
  const Algorithm algorithm{algorithms()[random() % algorithms().size()].name, 0, choice == 0};
  for (topology::Dimension& dimension : sample.dimensions)
    if (dimension.shape == topology::Shape("Switch") && dimension.oversubscription == 1 && random() % 4 != 0)
      dimension.in_switch_operations = static_cast<std::uint32_t>(random() % 64);
  if (choice <= 1) sample.options.all_reduce.assign(sample.dimensions.size(), algorithm);
  sample.options.all_gather = sample.options.reduce_scatter = sample.options.all_to_all = sample.options.all_reduce;
  if (random() % 2 == 0) sample.options.broadcast = sample.options.all_reduce;
  if (random() % 2 == 0) sample.options.reduce = sample.options.all_reduce;
  sample.options.chunks.queues = 1 + static_cast<std::uint32_t>(random() % 4);
  sample.options.collectives_at_a_time = 1 + static_cast<std::uint32_t>(random() % 2);
  if (random() % 2 == 0) choose_orders(random, sample.options);
  sample.kind = static_cast<Kind>(random() % 9);
  if (random() % 2 == 0) add_random_faults(random, sample);
  any.engine = std::make_unique<Engine>(sample.delays(), sample.engine_options());
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
// member uses one link where algorithms send one message at a time, whatever chunks are in service, and all that it has
// in direct.
TEST(Collective, NeverBeatsTheLinkUnderPhysicalRules) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 400; ++round) {
    SCOPED_TRACE(round);
    RandomCase sample = random_case(random, 32);
    sample.rules = AllRules::physical();
    sample.options.chunks.queues = 1 + static_cast<std::uint32_t>(random() % 4);
    sample.options.chunks.active_chunks = 1 + static_cast<std::uint32_t>(random() % 16);
    choose_orders(random, sample.options);
    const network::DelayModel delays = sample.delays();
    Engine engine(delays, sample.engine_options());
    const auto layout = engine.layout({}, all_dimensions);
    const std::vector<Time> completions = finish(engine, *layout, sample, random_arrivals(random, sample.num_npus()));
    const CollectiveTraffic& traffic = engine.traffic(*layout, sample.kind, sample.size);
    for (std::size_t d = 0; d < traffic.size(); ++d) {
      const bool is_direct = sample.options.all_reduce[d].name == "direct";
      const auto& wiring = delays.topology().wiring(static_cast<std::uint32_t>(d));
      const std::uint64_t links = is_direct ? wiring.num_injection_links() / wiring.size() : 1;
      const Time bound = delay(0, traffic[d] / std::max<std::uint64_t>(links, 1),
                               sample.dimensions[d].bandwidth_of_links(), Rounding::up_to_ps);
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
    Engine fresh(sample.delays(), sample.engine_options());
    Engine used(sample.delays(), sample.engine_options());
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
