#include "schedule.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "folded_schedule.hpp"
#include "mirrored_schedule.hpp"
#include "orrery/base/error.hpp"
#include "requirements.hpp"

namespace orrery::workload {
namespace {

using enum Pass::Kind;

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

/// Divides each backward pass in two. The gradients of weights follow those of inputs after `delay` more of these, and
/// at the end at the latest.
std::vector<Pass> divided(const std::vector<Pass>& whole, std::size_t delay) {
  std::vector<Pass> passes, waiting;
  std::size_t next = 0;
  const auto add_weights = [&] { passes.push_back(waiting[next++]); };
  for (Pass pass : whole) {
    if (pass.kind == backward) pass.kind = inputs;
    passes.push_back(pass);
    if (pass.is_forward()) continue;
    waiting.push_back({weights, pass.micro_batch, pass.chunk});
    if (waiting.size() - next > delay) add_weights();
  }
  while (next < waiting.size()) add_weights();
  return passes;
}

/// Returns how many forward passes a stage has before its first backward one with interleaved 1F1B, if it has as many.
std::uint32_t interleaved_warm_up(const Parallel& parallel, std::uint32_t stage) {
  // The forward pass of a pair is of another micro-batch than its backward pass.
  const std::uint32_t of_pairs = pairs_passes(parallel) ? 1 : 0;
  return (parallel[Axis::pp] - stage - 1) * 2 + (parallel.interleaving - 1) * parallel[Axis::pp] + of_pairs;
}

std::vector<Pass> plain_passes(const Parallel& parallel, std::uint32_t stage) {
  const std::uint32_t pp = parallel[Axis::pp], batches = parallel.micro_batches, chunks = parallel.interleaving;
  const auto plain = [](Pass::Kind kind) { return [kind](std::uint32_t k) { return Pass{kind, k, 0}; }; };
  if (parallel.pipeline.schedule == Schedule::gpipe)
    return alternate(batches, batches, plain(forward), plain(backward));
  if (chunks == 1 && !pairs_passes(parallel))
    return alternate(std::min(pp - stage - 1, batches), batches, plain(forward), plain(backward));
  const auto unit = [&](Pass::Kind kind) {
    return [=](std::uint32_t k) {
      const std::uint32_t chunk = k / pp % chunks;
      return Pass{kind, k / (pp * chunks) * pp + k % pp, kind == forward ? chunk : chunks - 1 - chunk};
    };
  };
  const std::uint32_t count = batches * chunks;
  const std::uint32_t warm_up = std::min(interleaved_warm_up(parallel, stage), count);
  auto passes = alternate(warm_up, count, unit(forward), unit(backward));
  if (!pairs_passes(parallel)) return passes;
  // The last forward pass of the warm-up is no half of a pair: the backward pass after it may be of its micro-batch.
  for (std::size_t i = warm_up; i + 1 < passes.size(); ++i)
    passes[i].is_with_next = passes[i].is_forward() && !passes[i + 1].is_forward();
  return passes;
}

void require_interleaving(const Parallel& parallel) {
  constexpr std::string_view key = "workload.parallel.interleaving";
  if (parallel.interleaving == 1) return;
  if (parallel[Axis::pp] == 1) refuse(key, parallel.interleaving, "1 without a pipeline");
  if (parallel.pipeline.schedule == Schedule::gpipe) refuse(key, parallel.interleaving, "1 with the GPipe schedule");
  if (parallel.pipeline.schedule != Schedule::one_forward_one_backward)
    refuse(key, parallel.interleaving, "1, or workload.parallel.schedule: 1f1b, which alone can be interleaved");
  require_multiple("workload.parallel.micro-batches", parallel.micro_batches, "pp (the schedule is interleaved)",
                   parallel[Axis::pp]);
}

/// Passes go in pairs where a forward pass follows each backward one.
void require_pairs(const Parallel& parallel) {
  const auto refuse_pairs = [](std::string_view found, std::string_view expected) {
    throw Error(ErrorCode::bad_input, {.key = "workload.parallel.expert-overlap"},
                fmt::format("found batches with {}", found), std::string(expected));
  };
  const Schedule schedule = parallel.pipeline.schedule;
  if (schedule != Schedule::one_forward_one_backward && schedule != Schedule::dual_pipe)
    refuse_pairs("a schedule that has no pairs of forward and backward passes",
                 "true or false, or workload.parallel.schedule: 1f1b or dualpipe");
  if (parallel.sharding.zero > 1 || parallel.sharding.offload.any())
    refuse_pairs("states that are moved for each pass",
                 "true or false, or workload.parallel.zero: 0 or 1 and no offload");
}

void require_micro_batches(const Parallel& parallel, std::uint32_t fewest, std::string_view schedule) {
  if (parallel.micro_batches < fewest)
    refuse("workload.parallel.micro-batches", parallel.micro_batches,
           fmt::format("{} or more for schedule {} with {} stages", fewest, schedule, parallel[Axis::pp]));
}

void require_two_directions(const Parallel& parallel) {
  if (parallel[Axis::pp] % 2 != 0)
    refuse("workload.parallel.pp", parallel[Axis::pp], "an even number of stages for schedule dualpipe");
  if (parallel.micro_batches % 2 != 0)
    refuse("workload.parallel.micro-batches", parallel.micro_batches,
           "an even number for schedule dualpipe, half of them for each direction");
  require_micro_batches(parallel, 2 * parallel[Axis::pp], "dualpipe");
  if (parallel.sharding.zero > 1)
    refuse("workload.parallel.zero", parallel.sharding.zero,
           "0 or 1: with schedule dualpipe two stages have the same layers and reach them at different times");
  if (parallel.sharding.gather_before_forward)
    throw Error(ErrorCode::bad_input, {.key = "workload.parallel.gather-before-forward"},
                "found true, but the two directions of schedule dualpipe need parameters in different orders", "false");
}

}  // namespace

// Sources: GPipe: Huang et al., NeurIPS 2019. 1F1B and its interleaved form: Narayanan et al., SC 2021, section 2.2.
// With interleaving, micro-batches go through the chunks in groups of pp, backward from the last chunk to the first.
// For the last stage to have work, stage p must be 2 (pp - p - 1) passes ahead in its first chunk, and one group more
// for each further chunk. ZB-H1: Qi et al., ICLR 2024, section 3.1: stage p puts p gradients of weights off, so that
// each stage keeps the activations of pp micro-batches, as the first stage of 1F1B does.
std::vector<Pass> passes_of(const Parallel& parallel, std::uint32_t stage) {
  if (parallel.is_inference()) {
    std::vector<Pass> passes;
    for (std::uint32_t k = 0; k < parallel.micro_batches; ++k) passes.push_back({forward, k, 0});
    return passes;
  }
  if (parallel.is_folded()) return folded_passes(parallel[Axis::pp], parallel.micro_batches)[stage];
  if (parallel.is_mirrored()) return mirrored_passes(parallel[Axis::pp], parallel.micro_batches, stage);
  auto passes = plain_passes(parallel, stage);
  if (parallel.pipeline.schedule == Schedule::zb_h1) return divided(passes, stage);
  return parallel.pipeline.delayed_weight_gradients ? divided(passes, 0) : passes;
}

// A stage puts (v - 1) pp + 2 (pp - 1) forward passes ahead at most, v the number of chunks, and ZB-H1 pp - 1 gradients
// of weights. From then on its passes repeat themselves after pp v forward and pp v backward ones. With 4 pp
// micro-batches there are 4 pp v of each: those ahead, and a whole repetition.
Parallel with_fewer_micro_batches(const Parallel& parallel) {
  const auto schedule = parallel.pipeline.schedule;
  Parallel fewer = parallel;
  if (!parallel.is_inference() && (schedule == Schedule::one_forward_one_backward || schedule == Schedule::zb_h1))
    fewer.micro_batches = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(parallel.micro_batches, std::uint64_t{4} * parallel[Axis::pp]));
  return fewer;
}

// With 1F1B, after the forward passes at the beginning each further one is followed by a backward one, also if this is
// divided, as its second part then follows at once.
std::optional<std::uint32_t> most_kept(const Parallel& parallel, std::uint32_t stage) {
  if (parallel.is_inference()) return {};
  if (parallel.pipeline.schedule == Schedule::gpipe) return parallel.micro_batches;
  if (parallel.pipeline.schedule != Schedule::one_forward_one_backward) return {};
  if (parallel.interleaving == 1 && !pairs_passes(parallel))
    return std::min(parallel[Axis::pp] - stage, parallel.micro_batches);
  return std::min(interleaved_warm_up(parallel, stage) + 1, parallel.micro_batches * parallel.interleaving);
}

void require_possible_schedule(const Parallel& parallel) {
  require_interleaving(parallel);
  if (pairs_passes(parallel)) require_pairs(parallel);
  const std::uint32_t stages = parallel[Axis::pp];
  const bool is_plain =
      parallel.pipeline.schedule == Schedule::one_forward_one_backward || parallel.pipeline.schedule == Schedule::gpipe;
  if (!is_plain && stages == 1)
    refuse("workload.parallel.pp", stages, "2 or more, or workload.parallel.schedule: 1f1b without a pipeline");
  if (parallel.pipeline.schedule == Schedule::zb_h1) require_micro_batches(parallel, stages, "zb-h1");
  if (parallel.is_folded()) require_micro_batches(parallel, 2 * stages, "zb-v");
  if (parallel.is_mirrored()) require_two_directions(parallel);
}

}  // namespace orrery::workload
