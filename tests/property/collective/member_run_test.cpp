// The members of a collective carry out its message program over links that are never busy. They complete when the
// engine says.
#include <gtest/gtest.h>

#include <algorithm>

#include "group_layout.hpp"
#include "message_player.hpp"
#include "orrery/collective/registry.hpp"
#include "random_case.hpp"
#include "random_custom_collective.hpp"
#include "routes.hpp"

namespace orrery::collective::test {
namespace {

/// Returns the delays between the NPUs of the world.
LinkDelays delays_of(const RandomCase& sample, const network::DelayModel& delays) {
  return {[&](std::uint32_t from, std::uint32_t to, Bytes size) {
            std::uint32_t d = 0;  // in which they differ
            while (delays.topology().coordinate(NpuId(from), d) == delays.topology().coordinate(NpuId(to), d)) ++d;
            return delays.path_delay(NpuId(from), NpuId(to), size * sample.at_once(d));
          },
          [&](std::uint32_t, std::uint32_t, Bytes up, Bytes down) {  // all ports are alike
            return delays.path_delay(NpuId(0), NpuId(1), std::max(up, down));
          }};
}

MessagePlayer player_of(const RandomCase& sample, const network::DelayModel& delays,
                        std::shared_ptr<const MessageProgram> program) {
  return {std::move(program), delays.topology().num_npus(), sample.options.rendezvous, delays_of(sample, delays)};
}

/// Draws a system in which each dimension serves one chunk at a time: then members serve chunks in the engine's order.
RandomCase one_at_a_time(std::mt19937_64& random) {
  RandomCase sample = random_case(random, 24);
  sample.options.chunks.active_chunks = sample.options.chunks.queues = 1;
  sample.options.chunks.overlap_latency = false;
  return sample;
}

/// Expects that members complete as the engine says, whether they start together or not, but no earlier than `least`, a
/// function of the last arrival. Returns the bytes that they sent.
template <class Least>
Bytes expect_engine_times(std::mt19937_64& random, const RandomCase& sample, const Least& least) {
  const network::DelayModel delays = sample.delays();
  const std::uint32_t num_npus = delays.topology().num_npus();
  Engine engine(delays, sample.engine_options());
  const auto layout = engine.layout({}, all_dimensions);
  const auto program = engine.message_program(*layout, sample.kind, sample.size);
  Bytes sent;
  for (const bool skew : {false, true}) {
    const std::vector<Time> arrivals = skew ? random_arrivals(random, num_npus) : std::vector<Time>(num_npus);
    std::vector<Time> completions(arrivals.size());
    engine.finish(*layout, sample.kind, sample.size, arrivals, completions);
    MessagePlayer player = player_of(sample, delays, program);
    std::vector<Time> played = player.run(arrivals);
    for (Time& time : played) time = std::max(time, least(std::ranges::max(arrivals)));
    if (!sample.may_share_links()) {  // members meet nobody on their links
      EXPECT_EQ(played, completions);
    }
    sent = player.sent();
    if (delays.topology().num_dimensions() == 1) {
      EXPECT_EQ(sent / num_npus, engine.traffic(*layout, sample.kind, sample.size)[0]);
    }
  }
  return sent;
}

// 600 random systems serve one chunk at a time in each dimension. Members that carry the collective out by themselves
// complete when the engine says.
TEST(MemberRun, AgreesWithTheEngine) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 600; ++round) {
    SCOPED_TRACE(round);
    RandomCase sample = one_at_a_time(random);
    if (round % 4 == 0) add_random_faults(random, sample);
    expect_engine_times(random, sample, [&](Time last) { return last + tick(sample.rules.rounding); });
  }
}

// 300 random tori and rows of one to three dimensions, whose positions exchange data with all neighbours at once: in
// both directions, or over all axes, with slow ports, rendezvous and members that come late. No message meets another
// one.
TEST(MemberRun, ToriAgreeWithTheEngine) {
  std::mt19937_64 random(17);
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    RandomCase sample = one_at_a_time(random);
    sample.rules = AllRules::physical();
    const std::size_t count = pick(random, 1, 3);
    topology::Dimension side = sample.dimensions[0];
    side.in_switch_operations = 0;
    side.oversubscription = 1;
    sample.dimensions.assign(count, side);
    for (topology::Dimension& dimension : sample.dimensions) {
      dimension.shape = topology::Shape(one_of(random, {"Ring", "Ring", "Mesh"}));
      dimension.size = static_cast<std::uint32_t>(pick(random, 2, 5));
      dimension.bandwidth = Bandwidth::from_bytes_per_ns(static_cast<double>(pick(random, 1, 100)));
    }
    Options& options = sample.options;
    options.all_reduce = options.all_gather = options.reduce_scatter = options.all_to_all =
        std::vector<Algorithm>(count, Algorithm{});
    options.broadcast = options.reduce = {};
    options.chunks.directions = one_of(random, {Directions::one, Directions::both});
    options.chunks.dimension_order = count > 1 ? DimensionOrder::all_axes : DimensionOrder::ascending;
    if (count == 1) options.chunks.directions = Directions::both;
    sample.kind = one_of(random, {Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter, Kind::all_to_all});
    sample.faults = {};
    if (round % 3 == 0)
      sample.faults.push_back({.dimension = 0, .npus = {NpuId(0)}, .port = {0.5, 2}, .failed = false});
    const network::DelayModel delays = sample.delays();
    Engine engine(delays, sample.engine_options());
    const auto layout = engine.layout({}, all_dimensions);
    const auto program = engine.message_program(*layout, sample.kind, sample.size);
    for (const bool skew : {false, true}) {
      const std::vector<Time> arrivals =
          skew ? random_arrivals(random, layout->num_members) : std::vector<Time>(layout->num_members);
      std::vector<Time> completions(arrivals.size());
      engine.finish(*layout, sample.kind, sample.size, arrivals, completions);
      MessagePlayer player = player_of(sample, delays, program);
      std::vector<Time> played = player.run(arrivals);
      for (Time& time : played) time = std::max(time, std::ranges::max(arrivals) + tick(sample.rules.rounding));
      EXPECT_EQ(played, completions);
      Bytes sent;
      for (const Bytes bytes : engine.traffic(*layout, sample.kind, sample.size)) sent += bytes;
      EXPECT_LE(sent.count(), player.sent().count() / layout->num_members);
      EXPECT_GE(sent.count() + count, player.sent().count() / layout->num_members);
    }
  }
}

/// Draws one dimension with an algorithm of the registry for all kinds that it carries out.
RandomCase one_dimension(const AlgorithmEntry& entry, std::mt19937_64& random) {
  RandomCase sample = one_at_a_time(random);
  topology::Dimension dimension = sample.dimensions[0];
  dimension.size = entry.powers_of_two_only ? 2U << random() % 4 : 2 + static_cast<std::uint32_t>(random() % 20);
  if (entry.is_in_switch) {
    dimension.shape = topology::Shape("Switch");
    dimension.in_switch_operations = 1;
    dimension.oversubscription = 1;
  }
  sample.dimensions = {dimension};
  Options& options = sample.options;
  options.all_reduce = options.all_gather = options.reduce_scatter = options.all_to_all = {{entry.name}};
  if (entry.kinds.contains(Kind::broadcast)) options.broadcast = options.reduce = options.all_reduce;
  do {
    sample.kind = static_cast<Kind>(random() % (static_cast<int>(Kind::scatter) + 1));
  } while (!entry.kinds.contains(sample.kind) && !entry.kinds.contains(parent(sample.kind)));
  return sample;
}

// Every algorithm in one dimension, in several chunks one after the other. The engine lets no member complete a
// broadcast or reduce before all have begun, and lets every chunk wait so; members that act for themselves do not. So
// these two kinds are compared in one chunk.
TEST(MemberRun, EveryAlgorithmAgreesWithTheEngine) {
  std::mt19937_64 random(14);
  for (const AlgorithmEntry& entry : algorithms())
    for (int round = 0; round < 200; ++round) {
      SCOPED_TRACE(std::string(entry.name) + ", round " + std::to_string(round));
      RandomCase sample = one_dimension(entry, random);
      const bool has_root = entry.kinds.contains(sample.kind) && parent(sample.kind) != sample.kind;
      if (has_root) {
        sample.options.chunks.splits = 1;
        sample.size = Bytes(sample.size.count() + sample.num_npus());  // no remainder makes a second chunk
      }
      expect_engine_times(random, sample, [&](Time last) {
        const Time least = last + tick(sample.rules.rounding);
        return has_root ? std::max(least, last + sample.options.endpoint_delay * 2) : least;
      });
    }
}

// Over several dimensions a broadcast or reduce that goes whole moves data only in the dimension groups that hold data.
// The members send the bytes that the engine counts, and the last member completes when the engine says.
TEST(MemberRun, BroadcastAndReduceGoWhole) {
  std::mt19937_64 random(15);
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    RandomCase sample = one_at_a_time(random);
    sample.kind = round % 2 == 0 ? Kind::broadcast : Kind::reduce;
    sample.rules.charge_every_dimension = true;
    std::vector<Algorithm> algorithms;
    for (std::size_t d = 0; d < sample.dimensions.size(); ++d)
      algorithms.push_back({random() % 3 == 0 ? "ring" : "binomialTree"});
    sample.options.all_reduce = sample.options.broadcast = sample.options.reduce = algorithms;
    sample.options.chunks.splits = 1;
    const network::DelayModel delays = sample.delays();
    Engine engine(delays, sample.engine_options());
    const auto layout = engine.layout({}, all_dimensions);
    const std::vector<Time> arrivals(delays.topology().num_npus());
    std::vector<Time> completions(arrivals.size());
    engine.finish(*layout, sample.kind, sample.size, arrivals, completions);
    const auto program = engine.message_program(*layout, sample.kind, sample.size);
    MessagePlayer player = player_of(sample, delays, program);
    const std::vector<Time> played = player.run(arrivals);
    // Receivers that had no data before send their clear to send earlier. In a Mesh the longest way of a ring may begin
    // at such a position.
    bool goes_back = false;
    for (std::size_t d = 0; d < algorithms.size(); ++d)
      goes_back |= sample.dimensions[d].shape == topology::Shape("Mesh") && algorithms[d].name == "ring";
    if (program->num_chunks() == 1 && !sample.options.rendezvous && !goes_back) {
      EXPECT_EQ(std::ranges::max(played), std::ranges::max(completions));
    }
    EXPECT_LE(std::ranges::max(played), std::ranges::max(completions));
    Bytes counted;
    for (const Bytes bytes : engine.traffic(*layout, sample.kind, sample.size)) counted += bytes;
    const std::uint64_t sent = (player.sent() / delays.topology().num_npus()).count();
    EXPECT_LE(counted.count(), sent);
    EXPECT_GE(counted.count() + delays.topology().num_dimensions(), sent);
  }
}

// Where messages do not share links, members of a custom collective complete as the engine says. The engine lets none
// of them complete before all have begun.
TEST(MemberRun, CustomCollectivesAgreeWithTheEngine) {
  std::mt19937_64 random(15);
  for (int round = 0; round < 400; ++round) {
    SCOPED_TRACE(round);
    RandomCase sample = one_at_a_time(random);
    if (round % 4 == 0) add_random_faults(random, sample);
    sample.options.chunks.splits = 1;
    sample.rules.share_bandwidth = false;
    sample.options.custom.of_kind[sample.kind] = {random_custom_collective(random, sample.num_npus())};
    expect_engine_times(random, sample, [&](Time last) {
      const Time begun = last + (sample.rules.bare_custom_collectives ? Time::zero() : sample.options.endpoint_delay);
      return std::max(begun, last + tick(sample.rules.rounding));
    });
  }
}

// With many chunks and queues and members that come at any time, all members complete: they never wait in a circle.
TEST(MemberRun, EndsWhateverTheQueues) {
  std::mt19937_64 random(13);
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    const RandomCase sample = random_case(random, 24);
    const network::DelayModel delays = sample.delays();
    Engine engine(delays, sample.engine_options());
    const auto layout = engine.layout({}, all_dimensions);
    player_of(sample, delays, engine.message_program(*layout, sample.kind, sample.size))
        .run(random_arrivals(random, delays.topology().num_npus()));
  }
}

}  // namespace
}  // namespace orrery::collective::test
