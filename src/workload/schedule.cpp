#include "schedule.hpp"

#include <algorithm>

namespace orrery::workload {
namespace {

/// Returns the forward passes of the warm-up, then one forward and one backward pass in turn, then the backward passes
/// that are left. `forward` and `backward` return the pass with a number; both count in the order of the stage.
template <class Forward, class Backward>
std::vector<Pass> alternate(std::uint32_t warm_up, std::uint32_t count, Forward forward, Backward backward) {
  std::vector<Pass> passes;
  passes.reserve(2 * std::size_t{count});
  for (std::uint32_t k = 0; k < warm_up; ++k) passes.push_back(forward(k));
  for (std::uint32_t k = 0; k < count; ++k) {
    if (warm_up + k < count) passes.push_back(forward(warm_up + k));
    passes.push_back(backward(k));
  }
  return passes;
}

}  // namespace

// Sources: GPipe: Huang et al., NeurIPS 2019. 1F1B and its interleaved form: Narayanan et al., SC 2021, section 2.2.
// With interleaving, micro-batches go through the chunks in groups of pp, backward from the last chunk to the first.
// For the last stage to have work, stage p must be 2 (pp - p - 1) passes ahead in its first chunk, and one group more
// for each further chunk.
std::vector<Pass> passes_of(const Parallel& parallel, std::uint32_t stage) {
  const std::uint32_t pp = parallel[Axis::pp], batches = parallel.micro_batches, chunks = parallel.interleaving;
  const auto plain = [](bool forward) { return [forward](std::uint32_t k) { return Pass{forward, k, 0}; }; };
  if (parallel.schedule == Schedule::gpipe) return alternate(batches, batches, plain(true), plain(false));
  if (chunks == 1) return alternate(std::min(pp - stage - 1, batches), batches, plain(true), plain(false));
  const auto unit = [&](bool forward) {
    return [=](std::uint32_t k) {
      const std::uint32_t chunk = k / pp % chunks;
      return Pass{forward, k / (pp * chunks) * pp + k % pp, forward ? chunk : chunks - 1 - chunk};
    };
  };
  const std::uint32_t count = batches * chunks;
  const std::uint32_t warm_up = std::min((pp - stage - 1) * 2 + (chunks - 1) * pp, count);
  return alternate(warm_up, count, unit(true), unit(false));
}

}  // namespace orrery::workload
