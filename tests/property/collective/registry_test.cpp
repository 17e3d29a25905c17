// Every algorithm of the registry, whichever they are: its steps fit together, carry the right data, and give the
// times, bytes and messages that the engine computes. An algorithm that is added to the registry is held to all of
// this.
#include "orrery/collective/registry.hpp"
#include "link_counts.hpp"
#include "rounds.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <set>
#include <string>

#include "message_player.hpp"
#include "orrery/base/error.hpp"
#include "random_case.hpp"
#include "routes.hpp"
#include "step_simulation.hpp"

namespace orrery::collective::test {
namespace {

using Random = std::mt19937_64;
using topology::Shape;

constexpr std::uint32_t largest = 17;

/// Calls visit(entry, asked, task) for every algorithm, window, kind, parity and size up to `largest`. `asked`: the
/// kind that is asked for; the task has its shape or that of its parent.
template <class Visit>
void for_each_task(Visit visit) {
  for (const AlgorithmEntry& entry : algorithms())
    for (int k = 0; k < static_cast<int>(Kind::barrier); ++k)
      for (const Kind shape : std::set{static_cast<Kind>(k), parent(static_cast<Kind>(k))})
        for (std::uint32_t n = 2; n <= largest; ++n)
          for (const std::uint32_t window : {0U, 1U, 3U})
            for (const bool is_odd : {false, true}) {
              const auto asked = static_cast<Kind>(k);
              if (!entry.kinds.contains(shape) || (entry.powers_of_two_only && !std::has_single_bit(n))) continue;
              if ((window > 0 && !entry.takes_window) || (is_odd && !entry.differs_for_odd_chunks)) continue;
              visit(entry, asked,
                    GroupTask{.kind = shape,
                              .reduces = asked != Kind::broadcast && asked != Kind::scatter,
                              .size = n,
                              .bytes = Bytes(960 * n),
                              .window = window,
                              .is_odd_chunk = is_odd});
            }
}

std::string text_of(const AlgorithmEntry& entry, Kind asked, const GroupTask& task) {
  return std::string(entry.name) + (task.window > 0 ? std::to_string(task.window) : "") + ", " +
         std::string(name(asked)) + " as " + std::string(name(task.kind)) + " of " + std::to_string(task.size) +
         (task.is_odd_chunk ? ", odd chunks" : "");
}

// Every message is for a step of its receiver that waits for it, and every step waits for messages that are sent.
TEST(Registry, SendsAndReceivesMatch) {
  for_each_task([](const AlgorithmEntry& entry, Kind asked, const GroupTask& task) {
    SCOPED_TRACE(text_of(entry, asked, task));
    const auto algorithm = entry.make(task);
    StepTable table(*algorithm);
    for (const auto& [key, step] : table.steps) {
      std::vector<std::uint32_t> senders, receives = step.receives;
      for (const StepKey& sender : table.senders[key]) senders.push_back(sender.first);
      std::ranges::sort(senders);
      std::ranges::sort(receives);
      EXPECT_EQ(senders, receives);
      EXPECT_EQ(step.through_switch.has_value(), entry.is_in_switch);
      if (step.through_switch) {
        EXPECT_LE(step.bytes, step.through_switch->up);
      }
    }
    for (const auto& [key, senders] : table.senders) EXPECT_TRUE(table.steps.contains(key));
  });
}

/// Returns what the positions hold before the collective: all have their own data, shard or blocks; of a broadcast or
/// scatter only the root, position 0, has any.
Data initial(Kind asked, const GroupTask& task) {
  const std::uint32_t n = task.size;
  Data data(n, std::vector<Contributions>(asked == Kind::all_to_all ? n * n : n, 0));
  for (std::uint32_t i = 0; i < n; ++i)
    for (std::uint32_t b = 0; b < data[i].size(); ++b) {
      bool has = task.reduces || i == 0;
      if (task.kind == Kind::all_gather) has = b == i;
      if (task.kind == Kind::all_to_all) has = b / n == i;
      if (has) data[i][b] = Contributions{1} << i;
    }
  return data;
}

/// Returns what position i must hold in block b at the end; nothing if it does not matter.
std::optional<Contributions> wanted(Kind asked, std::uint32_t n, std::uint32_t i, std::uint32_t b) {
  const Contributions all = (Contributions{1} << n) - 1;
  const auto from = [](std::uint32_t position) { return Contributions{1} << position; };
  const auto if_it_gets = [](bool gets, Contributions value) { return gets ? std::optional(value) : std::nullopt; };
  switch (asked) {
    case Kind::all_reduce:
    case Kind::barrier:
      return all;
    case Kind::broadcast:
      return from(0);
    case Kind::reduce:
      return if_it_gets(i == 0, all);
    case Kind::reduce_scatter:
      return if_it_gets(b == i, all);
    case Kind::scatter:
      return if_it_gets(b == i, from(0));
    case Kind::all_gather:
      return from(b);
    case Kind::gather:
      return if_it_gets(i == 0, from(b));
    case Kind::all_to_all:
      return if_it_gets(b % n == i, from(b / n));
    case Kind::expert_dispatch:
    case Kind::expert_combine:
      break;  // which no algorithm carries out
  }
  return std::nullopt;
}

// Each algorithm carries blocks of data for each kind and size. Each member ends with the blocks that the collective
// promises, and none is added twice.
TEST(Registry, EveryMemberEndsWithTheRightData) {
  for_each_task([](const AlgorithmEntry& entry, Kind asked, const GroupTask& task) {
    SCOPED_TRACE(text_of(entry, asked, task));
    int added_twice = 0;
    const Data found = carry(*entry.make(task), initial(asked, task), added_twice);
    EXPECT_EQ(added_twice, 0);
    for (std::uint32_t i = 0; i < task.size; ++i)
      for (std::uint32_t b = 0; b < found[i].size(); ++b)
        EXPECT_EQ(found[i][b], wanted(asked, task.size, i, b).value_or(found[i][b])) << i << ", block " << b;
  });
}

// A message has the bytes of the blocks in it, where the data divide evenly into blocks.
TEST(Registry, MessagesHaveTheBytesOfTheirBlocks) {
  for_each_task([](const AlgorithmEntry& entry, Kind asked, const GroupTask& task) {
    SCOPED_TRACE(text_of(entry, asked, task));
    const auto algorithm = entry.make(task);
    const StepTable table(*algorithm);
    const auto bytes = [&](StepKey key, std::uint32_t message) {
      return algorithm->task().block() * algorithm->blocks(key.first, key.second, message).blocks.size();
    };
    for (const auto& [key, step] : table.steps) {
      for (std::uint32_t m = 0; m < step.sends.size(); ++m) EXPECT_EQ(step.bytes, bytes(key, m));
      if (!step.through_switch) continue;
      EXPECT_EQ(step.bytes, bytes(key, 0));
      EXPECT_GE(step.through_switch->down, bytes(key, 1));
    }
  });
}

/// A system and a group in it whose members are one dimension group by one algorithm, with one chunk.
struct DrawnCase {
  RandomCase sample;
  const AlgorithmEntry* entry = nullptr;
  std::vector<NpuId> members;  ///< by position
  GroupTask task;
};

/// Draws one to three dimensions with failed or slow links now and then.
void draw_dimensions(Random& random, const AlgorithmEntry& entry, bool whole, RandomCase& sample) {
  sample.dimensions.clear();
  for (std::size_t d = 0; d < (whole ? 1 + random() % 3 : 1); ++d) {
    topology::Dimension dimension{
        one_of(random, {Shape("Ring"), Shape("Mesh"), Shape("FullyConnected"), Shape("Switch")}),
        static_cast<std::uint32_t>(2 + random() % (whole ? 3 : largest)), Bandwidth::from_bytes_per_ns(25),
        one_of(random, {0.0, 77.5, 300.0})};
    if (entry.is_in_switch) {
      dimension.shape = Shape("Switch");
      dimension.in_switch_operations = 2 * largest;
    }
    sample.dimensions.push_back(dimension);
  }
  if (!whole && random() % 3 == 0) add_random_faults(random, sample);
}

/// Draws a case; nothing if it is none that the engine carries out in one dimension group of two or more.
std::optional<DrawnCase> draw_case(Random& random, const AlgorithmEntry& entry) {
  DrawnCase drawn{random_case(random, 24), &entry, {}, {}};
  RandomCase& sample = drawn.sample;
  sample.faults.clear();
  const bool whole = !entry.is_in_switch && random() % 3 == 0;
  draw_dimensions(random, entry, whole, sample);
  const auto window = entry.takes_window ? static_cast<std::uint32_t>(random() % 6) : 0;
  Options& options = sample.options;
  options.chunks = {};
  options.all_reduce.assign(whole ? 1 : sample.dimensions.size(), {entry.name, window, whole});
  options.all_gather = options.reduce_scatter = options.all_to_all = options.all_reduce;
  const bool own_lists = entry.kinds.contains(Kind::broadcast) && random() % 2 == 0;
  if (own_lists) options.broadcast = options.reduce = options.all_reduce;
  for (std::uint32_t npu = 0; npu < sample.num_npus(); ++npu)
    if (sample.rules.subgroup_is_ring || random() % 4 != 0) drawn.members.emplace_back(npu);
  if (whole && !sample.rules.subgroup_is_ring) std::ranges::shuffle(drawn.members, random);
  const auto n = static_cast<std::uint32_t>(drawn.members.size());
  sample.rules.sliding_windows = !sample.rules.reduce_every_message && random() % 2 == 0;
  sample.kind = static_cast<Kind>(random() % static_cast<int>(Kind::barrier));
  sample.size = Bytes(sample.size.count() + sample.num_npus());
  if (n < 2 || (entry.powers_of_two_only && !std::has_single_bit(n))) return std::nullopt;
  drawn.task = {.kind = own_lists && entry.kinds.contains(sample.kind) ? sample.kind : parent(sample.kind),
                .reduces = sample.kind != Kind::broadcast && sample.kind != Kind::scatter,
                .size = n,
                .bytes = sample.size,
                .window = window,
                .reduces_every_message = sample.rules.reduce_every_message,
                .slides = sample.rules.sliding_windows};
  if (!entry.kinds.contains(drawn.task.kind)) return std::nullopt;
  return drawn;
}

/// The messages of each step on links, of an algorithm in which all positions do the same in a step.
class StepLoads {
 public:
  StepLoads(const SteppedAlgorithm& algorithm, const DrawnCase& drawn, const network::DelayModel& delays)
      : members_(drawn.members) {
    if (!drawn.sample.rules.share_bandwidth || dynamic_cast<const RoundAlgorithm*>(&algorithm) == nullptr) return;
    Step step;
    for (std::uint64_t k = 0; k < algorithm.num_steps(0); ++k) {
      LinkCounts& counts = counts_.emplace_back(delays.topology());
      for (std::uint32_t i = 0; i < members_.size(); ++i) {
        algorithm.step(i, k, step);
        for (const Receiver& to : step.sends) counts.add(members_[i], members_[to.member]);
      }
    }
  }

  std::uint64_t most(std::uint32_t d, std::uint32_t sender, std::uint32_t receiver, std::uint64_t step) const {
    return counts_.empty() ? 1 : counts_[step].most(d, members_[sender], members_[receiver]);
  }
  bool are_all_one(std::uint32_t num_dimensions) const {
    for (std::uint64_t k = 0; k < counts_.size(); ++k)
      for (std::uint32_t i = 0; i < members_.size(); ++i)
        for (std::uint32_t j = 0; j < members_.size(); ++j)
          for (std::uint32_t d = 0; i != j && d < num_dimensions; ++d)
            if (most(d, i, j, k) > 1) return false;
    return true;
  }

 private:
  const std::vector<NpuId>& members_;
  std::vector<LinkCounts> counts_;  ///< [steps]
};

/// Returns the delay of a message that shares links with those that are sent at the same time: `load_of(d)` of all
/// positions in dimension d, and `at_once` of its sender over a link to a switch.
template <class LoadOf>
Ps link_delay(const network::DelayModel& delays, NpuId from, NpuId to, Bytes bytes, std::uint64_t at_once,
              LoadOf load_of) {
  Time total;
  delays.for_each_leg(from, to, [&](std::uint32_t d, std::uint32_t hops, const topology::Port& port) {
    const bool one_link = delays.topology().dimension(d).shape == Shape("Switch");
    total += delays.link_delay(d, hops, bytes * std::max<std::uint64_t>(one_link ? at_once : 1, load_of(d)), port);
  });
  return total.ps();
}

/// Returns the delay through the switch of the only dimension.
Ps switch_delay(const network::DelayModel& delays, NpuId from, NpuId to, SwitchLoad load) {
  const topology::Links& links = delays.topology().links();
  const auto port = [&](NpuId npu) {
    return links.empty() ? topology::Port{} : links.port(0, links.kind_of_port(0, npu));
  };
  const double latency = std::max(port(from).latency, port(to).latency);
  const auto delay = [&](NpuId npu, Bytes bytes) {
    return delays.link_delay(0, 2, bytes, {port(npu).bandwidth, latency}).ps();
  };
  return std::max(delay(from, load.up), delay(to, load.down));
}

StepCosts costs_of(const DrawnCase& drawn, const network::DelayModel& delays, std::uint32_t messages_at_once,
                   const StepLoads& loads) {
  const Options& options = drawn.sample.options;
  const std::uint32_t at_once = drawn.sample.rules.share_bandwidth ? messages_at_once : 1;
  return {.endpoint_delay = options.endpoint_delay.ps(),
          .rendezvous = options.rendezvous,
          .reduction = [&](Bytes bytes) -> Ps {
            if (!(options.local_memory.bytes_per_ns() > 0)) return 0;
            return 3 * local_memory_delay(bytes, options.local_memory, delays.rounding()).ps();
          },
          .link =
              [&, at_once](std::uint32_t from, std::uint32_t to, Bytes bytes, std::uint64_t step) {
                return link_delay(delays, drawn.members[from], drawn.members[to], bytes, at_once,
                                  [&](std::uint32_t d) { return loads.most(d, from, to, step); });
              },
          .clear_to_send =
              [&, at_once](std::uint32_t sender, std::uint32_t receiver, std::uint64_t step) {
                return link_delay(delays, drawn.members[receiver], drawn.members[sender], clear_to_send_bytes, at_once,
                                  [&](std::uint32_t d) { return loads.most(d, sender, receiver, step); });
              },
          .through_switch =
              [&](std::uint32_t from, std::uint32_t to, SwitchLoad load) {
                return switch_delay(delays, drawn.members[from], drawn.members[to], load);
              }};
}

// Whatever the system, the group and the arrivals, the engine's times, closed forms among them, are those of the steps
// taken literally; so are those of members that carry out the message program by themselves; and the bytes are those of
// the messages.
TEST(Registry, TimesAndBytesAreThoseOfTheSteps) {
  Random random(21);
  for (const AlgorithmEntry& entry : algorithms()) {
    int compared = 0;
    for (int round = 0; round < 600; ++round) {
      SCOPED_TRACE(std::string(entry.name) + ", round " + std::to_string(round));
      const std::optional<DrawnCase> drawn = draw_case(random, entry);
      if (!drawn) continue;
      ++compared;
      const RandomCase& sample = drawn->sample;
      const network::DelayModel delays = sample.delays();
      Engine engine(delays, sample.engine_options());
      const auto layout = engine.layout(drawn->members, all_dimensions);
      engine.validate(*layout, sample.kind);
      const auto algorithm = entry.make(drawn->task);
      const StepLoads loads(*algorithm, *drawn, delays);
      const StepCosts costs = costs_of(*drawn, delays, algorithm->messages_at_once(), loads);
      StepSimulation simulation(*algorithm, costs);
      const auto n = static_cast<std::uint32_t>(drawn->members.size());
      MessagePlayer player(engine.message_program(*layout, sample.kind, sample.size), n, sample.options.rendezvous,
                           {[&](std::uint32_t from, std::uint32_t to, Bytes bytes) {
                              return Time::from_ps(costs.link(from, to, bytes, 0));
                            },
                            [&](std::uint32_t from, std::uint32_t to, Bytes up, Bytes down) {
                              return Time::from_ps(costs.through_switch(from, to, {up, down}));
                            }});
      const std::vector<Time> arrivals = round % 2 == 0 ? std::vector<Time>(n) : random_arrivals(random, n);
      const Time last = std::ranges::max(arrivals);
      std::vector<Time> completions(n), of_steps, of_members = player.run(arrivals);
      engine.finish(*layout, sample.kind, sample.size, arrivals, completions);
      std::vector<Ps> starts;
      for (const Time arrival : arrivals) starts.push_back(arrival.ps());
      for (const Ps finish : simulation.run(starts))
        of_steps.push_back(std::max(Time::from_ps(finish), last + tick(delays.rounding())));
      if (algorithm->sliding_window() == nullptr) {
        EXPECT_EQ(completions, of_steps);
      }
      // Members that act for themselves complete a broadcast or reduce of its own when they have nothing left to do.
      const bool has_root = drawn->task.kind == Kind::broadcast || drawn->task.kind == Kind::reduce;
      for (Time& time : of_members) {
        time = std::max(time, last + tick(delays.rounding()));
        if (has_root) time = std::max(time, last + sample.options.endpoint_delay * 2);
      }
      // Members over links that are never busy meet nobody on them.
      if (loads.are_all_one(delays.topology().num_dimensions())) {
        EXPECT_EQ(completions, of_members);
      }
      EXPECT_GE(std::ranges::min(completions), last + engine.minimum_duration(*layout));
      Bytes counted;
      for (const Bytes bytes : engine.traffic(*layout, sample.kind, sample.size)) counted += bytes;
      if (sample.dimensions.size() == 1 || !sample.rules.charge_every_dimension) {
        EXPECT_LE(counted.count(), player.sent().count() / n);
        EXPECT_GE(counted.count() + sample.dimensions.size(), player.sent().count() / n);
      }
    }
    EXPECT_GT(compared, 60) << entry.name;
  }
}

// The engine carries out what an entry says, and nothing else. What it refuses it refuses by name, with algorithms that
// it does carry out.
TEST(Registry, EntriesSayWhatIsPossible) {
  for (const AlgorithmEntry& entry : algorithms())
    for (int k = 0; k < static_cast<int>(Kind::barrier); ++k)
      for (std::uint32_t n = 2; n <= largest; ++n) {
        const auto kind = static_cast<Kind>(k);
        const topology::Dimension dimension{Shape("Switch"), n, Bandwidth::from_bytes_per_ns(25), 100, 1};
        const auto refusal = [&](std::string_view algorithm) {
          Options options;
          options.all_reduce = options.all_gather = options.reduce_scatter = options.all_to_all = {{algorithm}};
          Engine engine(test_support::delays({dimension}), options);
          try {
            engine.validate(*engine.layout({}, all_dimensions), kind);
          } catch (const Error& error) {
            EXPECT_EQ(error.code(), ErrorCode::bad_input);
            return std::string(error.what());
          }
          return std::string();
        };
        const bool possible =
            entry.kinds.contains(parent(kind)) && (!entry.powers_of_two_only || std::has_single_bit(n));
        const std::string text = refusal(entry.name);
        EXPECT_EQ(text.empty(), possible) << entry.name << ", " << name(kind) << ", " << n << ": " << text;
        if (text.empty()) continue;
        EXPECT_NE(text.find(entry.name), std::string::npos) << text;
        const std::string list = text.substr(text.find("possible: "));
        for (const AlgorithmEntry& other : algorithms())
          if (list.find(other.name) != std::string::npos) {
            EXPECT_EQ(refusal(other.name), "") << text;
          }
      }
}

// Each algorithm has names, with and without a window. Each name leads back to the algorithm.
TEST(Registry, NamesAreFound) {
  for (const AlgorithmEntry& entry : algorithms())
    for (const bool whole : {false, true})
      for (const std::uint32_t window : {0U, 1U, 12U}) {
        if ((whole && entry.whole_name.empty()) || (window > 0 && !entry.takes_window)) continue;
        const Algorithm algorithm{entry.name, window, whole};
        EXPECT_EQ(find_algorithm(name(algorithm)), algorithm);
      }
  for (const std::string_view known : algorithm_names()) EXPECT_TRUE(find_algorithm(known)) << known;
  for (const char* const unknown : {"", "Ring", "ring2", "direct0", "direct02", "direct-1", "oneInSwitch"})
    EXPECT_FALSE(find_algorithm(unknown)) << unknown;
}

}  // namespace
}  // namespace orrery::collective::test
