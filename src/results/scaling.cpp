#include "orrery/results/scaling.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>
#include <vector>

#include "dealt_load.hpp"
#include "orrery/base/error.hpp"

namespace orrery::results {
namespace {

/// Returns 0, 1, ...
std::vector<std::uint32_t> numbers_below(std::uint32_t count) {
  std::vector<std::uint32_t> below(count);
  std::iota(below.begin(), below.end(), 0U);
  return below;
}

/// Returns [blocks] the rank of the first NPU of each.
std::vector<std::uint32_t> ranks_of_blocks(const Load& load, std::uint32_t num_ranks) {
  const std::uint64_t blocks = load.record.num_blocks, npus = load.num_npus;
  std::vector<std::uint32_t> ranks;
  for (std::uint64_t block = 0; block < blocks; ++block) {
    const std::uint64_t first_npu = (block * npus + blocks - 1) / blocks;
    ranks.push_back(static_cast<std::uint32_t>(first_npu * num_ranks / npus));
  }
  return ranks;
}

/// Returns the part that takes most of the time that is lost. `row` has all times and counts.
ScalingLimit limit_of(const ScalingRow& row, const DealtLoad& dealt, const RankSpeed& speed) {
  constexpr double good = 0.8;
  if (row.efficiency >= good) return ScalingLimit::events;
  const double busiest = static_cast<double>(row.most_events) * speed.event_time;
  const double without_latency = dealt.run({speed.event_time, speed.message_time, 0}).time;
  const std::array<std::pair<double, ScalingLimit>, 4> losses{{
      {busiest - row.mean_events * speed.event_time, ScalingLimit::imbalance},
      {row.time_without_messages - busiest, ScalingLimit::dependencies},
      {without_latency - row.time_without_messages, ScalingLimit::messages},
      {row.time - without_latency, ScalingLimit::latency},
  }};
  return std::ranges::max_element(losses, {}, &std::pair<double, ScalingLimit>::first)->second;
}

}  // namespace

std::string_view name(ScalingLimit limit) {
  constexpr std::array<std::string_view, 5> names{"events", "imbalance", "dependencies", "messages", "latency"};
  return names.at(static_cast<std::size_t>(limit));
}

ScalingRow predict_scaling(const Load& load, std::uint32_t ranks, const RankSpeed& speed) {
  ensure(ranks >= 1 && ranks <= load.record.num_blocks, "a prediction for as many ranks as there are blocks, at most");
  const std::vector<std::uint32_t> rank_of_block = ranks_of_blocks(load, ranks);
  const DealtLoad dealt(load, {rank_of_block, numbers_below(ranks)});
  ScalingRow row;
  row.ranks = ranks;
  row.most_events = dealt.most_events();
  row.mean_events = static_cast<double>(dealt.all_events()) / ranks;
  row.events_sent = dealt.events_sent();
  row.posts_sent = dealt.posts_sent();
  row.messages = dealt.num_messages();
  const DealtLoad::Outcome outcome = dealt.run(speed);
  row.waits = outcome.waits;
  row.time = outcome.time;
  row.time_without_messages = dealt.run({speed.event_time, 0, 0}).time;
  row.time_ahead = row.time;
  if (load.runs_ahead) {
    const DealtLoad by_block(load, {numbers_below(load.record.num_blocks), rank_of_block});
    row.time_ahead = std::min(row.time, std::max(static_cast<double>(row.most_events) * speed.event_time,
                                                 by_block.run({speed.event_time, 0, speed.latency}).time));
  }
  const double alone = row.mean_events * ranks * speed.event_time;
  if (row.time > 0) row.speedup = alone / row.time;
  if (row.time_ahead > 0) row.speedup_ahead = alone / row.time_ahead;
  row.efficiency = row.speedup / ranks;
  row.limit = limit_of(row, dealt, speed);
  return row;
}

}  // namespace orrery::results
