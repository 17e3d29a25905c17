#include "sketches.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace orrery::synthesis {
namespace {

/// Slots whose sizes are pooled.
struct Pool {
  std::vector<std::pair<double, std::uint32_t>> slots;  ///< each with the mean of its own sizes
  std::vector<SizeSample> samples;
  std::uint64_t support = 0;
  double mean = 0;  ///< mean of the logarithms of the sizes of its nodes
};

/// Returns the number by which sizes are compared: the first one that nodes of this kind have.
double magnitude(const Sizes& sizes) {
  const double value = sizes.flops > 0   ? static_cast<double>(sizes.flops)
                       : sizes.bytes > 0 ? static_cast<double>(sizes.bytes)
                                         : static_cast<double>(sizes.ps);
  return std::log(1 + value);
}

void update(Pool& pool) {
  pool.support = 0;
  pool.mean = 0;
  for (const SizeSample& sample : pool.samples) {
    pool.support += sample.support;
    pool.mean += magnitude(sample.sizes) * static_cast<double>(sample.support);
  }
  if (pool.support > 0) pool.mean /= static_cast<double>(pool.support);
}

void merge(Pool& into, Pool&& other) {
  into.slots.insert(into.slots.end(), other.slots.begin(), other.slots.end());
  into.samples.insert(into.samples.end(), other.samples.begin(), other.samples.end());
  update(into);
}

/// Pools until each pool has enough support, or is the only one. `pools` are ascending by their means.
void pool_up(std::vector<Pool>& pools, std::uint64_t min_support) {
  for (std::size_t i = 0; i < pools.size() && pools.size() > 1;) {
    if (pools[i].support >= min_support) {
      ++i;
      continue;
    }
    const bool before =
        i > 0 && (i + 1 == pools.size() || pools[i].mean - pools[i - 1].mean <= pools[i + 1].mean - pools[i].mean);
    const std::size_t other = before ? i - 1 : i + 1;
    merge(pools[other], std::move(pools[i]));
    pools.erase(pools.begin() + static_cast<std::ptrdiff_t>(i));
    if (before) --i;
  }
}

}  // namespace

Sketch sketch_of(std::vector<SizeSample> samples, std::uint64_t min_support) {
  std::ranges::sort(samples, {}, &SizeSample::sizes);
  std::vector<SizeSample> distinct;
  double total = 0;
  for (const SizeSample& sample : samples) {
    total += static_cast<double>(sample.support);
    if (!distinct.empty() && distinct.back().sizes == sample.sizes)
      distinct.back().support += sample.support;
    else
      distinct.push_back(sample);
  }
  const bool is_exact = distinct.size() <= Sketch::most_points;
  const auto least = static_cast<double>(min_support);
  Sketch sketch;
  double before = 0;
  std::size_t last_bin = Sketch::most_points;
  for (const SizeSample& sample : distinct) {
    const auto weight = static_cast<double>(sample.support);
    const auto bin = static_cast<std::size_t>((before + weight / 2) / total * Sketch::most_points);
    // What is left for a point of its own has to be enough for it.
    const bool is_enough = !sketch.points.empty() && sketch.points.back().weight >= least && total - before >= least;
    before += weight;
    if (sketch.points.empty() || (is_enough && (is_exact || bin != last_bin))) sketch.points.emplace_back();
    last_bin = bin;
    SketchPoint& point = sketch.points.back();
    point.weight += weight;
    point.flops += weight * static_cast<double>(sample.sizes.flops);
    point.bytes += weight * static_cast<double>(sample.sizes.bytes);
    point.ps += weight * static_cast<double>(sample.sizes.ps);
  }
  for (SketchPoint& point : sketch.points) {
    point.flops /= point.weight;
    point.bytes /= point.weight;
    point.ps /= point.weight;
    point.weight /= total;
  }
  return sketch;
}

Sketches sketch_slots(std::span<const SlotSizes> slots, std::uint64_t min_support) {
  std::map<std::uint32_t, std::vector<Pool>> families;
  for (std::uint32_t s = 0; s < slots.size(); ++s) {
    Pool& pool = families[slots[s].family].emplace_back();
    pool.samples = slots[s].samples;
    update(pool);
    pool.slots = {{pool.mean, s}};
  }
  Sketches result;
  result.of_slot.resize(slots.size());
  result.rank_of_slot.resize(slots.size());
  for (auto& [family, pools] : families) {
    std::ranges::stable_sort(pools, {}, &Pool::mean);
    pool_up(pools, min_support);
    for (Pool& pool : pools) {
      if (pool.slots.size() > 1) result.merged += static_cast<std::uint32_t>(pool.slots.size());
      std::ranges::sort(pool.slots);
      for (std::uint32_t rank = 0; rank < pool.slots.size(); ++rank) {
        result.of_slot[pool.slots[rank].second] = static_cast<std::uint32_t>(result.sketches.size());
        result.rank_of_slot[pool.slots[rank].second] = rank;
      }
      result.sketches.push_back(sketch_of(std::move(pool.samples), min_support));
    }
  }
  return result;
}

}  // namespace orrery::synthesis
