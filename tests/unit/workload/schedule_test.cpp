#include "../../../src/workload/schedule.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "orrery/base/error.hpp"

namespace orrery::workload {
namespace {

Parallel pipeline(Schedule schedule, std::uint32_t stages, std::uint32_t micro_batches) {
  Parallel parallel;
  parallel.pipeline.schedule = schedule;
  parallel[Axis::pp] = stages;
  parallel.micro_batches = micro_batches;
  return parallel;
}

/// Returns "F0 F1 B0 ..."; I and W are the two parts of a backward pass, lower case is chunk 1, + joins pairs.
std::string text(const std::vector<Pass>& passes) {
  std::string result;
  for (const Pass& pass : passes) {
    const char letter = (pass.chunk == 0 ? "FBIW" : "fbiw")[static_cast<std::size_t>(pass.kind)];
    result += letter + std::to_string(pass.micro_batch) + (pass.is_with_next ? "+" : " ");
  }
  return result;
}

/// Returns the largest number of passes whose activations are kept at a time.
int most_kept(const std::vector<Pass>& passes) {
  int kept = 0, most = 0;
  for (const Pass& pass : passes) {
    kept += pass.is_forward() ? 1 : pass.makes_weight_gradients() ? -1 : 0;
    most = std::max(most, kept);
  }
  return most;
}

// Two stages and four micro-batches. Stage 1 puts one gradient of weights off with ZB-H1; ZB-V goes down and back up;
// DualPipe is the same on both stages but for the direction.
TEST(Schedule, Orders) {
  const auto order = [](Schedule schedule, std::uint32_t stage) {
    return text(passes_of(pipeline(schedule, 2, 4), stage));
  };
  EXPECT_EQ(order(Schedule::one_forward_one_backward, 0), "F0 F1 B0 F2 B1 F3 B2 B3 ");
  EXPECT_EQ(order(Schedule::zb_h1, 0), "F0 F1 I0 W0 F2 I1 W1 F3 I2 W2 I3 W3 ");
  EXPECT_EQ(order(Schedule::zb_h1, 1), "F0 I0 F1 I1 W0 F2 I2 W1 F3 I3 W2 W3 ");
  EXPECT_EQ(order(Schedule::dual_pipe, 0), "F0 f2 F1 b2 f3+B0 b3 I1 W1 ");
  EXPECT_EQ(order(Schedule::dual_pipe, 1), "f2 F0 f3 B0 F1+b2 B1 i3 w3 ");
  EXPECT_TRUE(order(Schedule::zb_v, 1).starts_with("F0 f0 F1 f1 "));
}

// 1F1B with delayed gradients of weights: they follow those of inputs of the same micro-batch.
TEST(Schedule, DelayedWeightGradients) {
  auto parallel = pipeline(Schedule::one_forward_one_backward, 2, 2);
  parallel.pipeline.delayed_weight_gradients = true;
  EXPECT_EQ(text(passes_of(parallel, 0)), "F0 F1 I0 W0 I1 W1 ");
}

// Pipelines of 2 to 8 stages. Each micro-batch passes each part of the model once forward, then for the gradients of
// inputs, then for those of weights.
TEST(Schedule, EachPassOnceAndInOrder) {
  for (const Schedule schedule : {Schedule::zb_h1, Schedule::zb_v, Schedule::dual_pipe})
    for (const std::uint32_t stages : {2U, 4U, 8U}) {
      const auto parallel = pipeline(schedule, stages, 3 * stages);
      std::map<std::tuple<std::uint32_t, std::uint32_t>, int> state;  // 1: forward, 2: inputs, 3: all
      for (std::uint32_t stage = 0; stage < stages; ++stage)
        for (const Pass& pass : passes_of(parallel, stage)) {
          int& at = state[{pass.micro_batch, parallel.virtual_stage(stage, pass.chunk)}];
          EXPECT_EQ(at, pass.is_forward() ? 0 : pass.kind == Pass::Kind::weights ? 2 : 1);
          at = pass.is_forward() ? 1 : pass.makes_weight_gradients() ? 3 : 2;
        }
      EXPECT_EQ(state.size(), std::size_t{3} * stages * parallel.num_virtual_stages());
      for (const auto& [key, at] : state) EXPECT_EQ(at, 3);
    }
}

// Pipelines of 2 to 8 stages. ZB-H1 keeps the activations of as many micro-batches as the first stage of 1F1B, ZB-V as
// many passes of half a stage twice, and DualPipe one more than there are stages.
TEST(Schedule, KeptActivations) {
  for (const std::uint32_t stages : {2U, 4U, 8U})
    for (std::uint32_t stage = 0; stage < stages; ++stage) {
      const auto kept = [&](Schedule schedule) {
        return most_kept(passes_of(pipeline(schedule, stages, 3 * stages), stage));
      };
      const int all = static_cast<int>(stages);
      EXPECT_EQ(kept(Schedule::one_forward_one_backward), all - static_cast<int>(stage));
      EXPECT_EQ(kept(Schedule::zb_h1), all);
      EXPECT_LE(kept(Schedule::zb_v), 2 * all);
      EXPECT_EQ(kept(Schedule::dual_pipe), all + 1);
    }
}

/// Returns what bounds need of the passes of a stage: the first pass, those of the first micro-batch, kind and chunk of
/// the last one, and the largest sum of activations that are kept, where those of chunks differ.
std::string outline_of(const std::vector<Pass>& passes) {
  std::vector<Pass> first = {passes.front()};
  std::ranges::copy_if(passes, std::back_inserter(first), [](const Pass& pass) { return pass.micro_batch == 0; });
  Pass last = passes.back();
  last.micro_batch = 0;
  first.push_back(last);
  const int of_chunk[] = {7, 11, 3, 20};
  int kept = 0, most = 0;
  for (const Pass& pass : passes) {
    kept += pass.is_forward() ? of_chunk[pass.chunk] : pass.makes_weight_gradients() ? -of_chunk[pass.chunk] : 0;
    most = std::max(most, kept);
  }
  return text(first) + std::to_string(most);
}

// Pipelines of 1 to 7 stages and up to 12 times as many micro-batches, of all schedules. Fewer micro-batches have the
// same outline, and with 1F1B and ZB-H1 their number has a limit.
TEST(Schedule, FewerMicroBatchesHaveTheSameOutline) {
  for (const Schedule schedule : {Schedule::one_forward_one_backward, Schedule::gpipe, Schedule::zb_h1, Schedule::zb_v})
    for (std::uint32_t stages = 1; stages <= 7; ++stages)
      for (std::uint32_t chunks = 1; chunks <= 4; ++chunks)
        for (std::uint32_t count = 1; count <= 12 * stages; ++count)
          for (const bool is_delayed : {false, true}) {
            auto parallel = pipeline(schedule, stages, count);
            parallel.interleaving = chunks;
            parallel.pipeline.delayed_weight_gradients = is_delayed;
            try {
              require_possible_schedule(parallel);
            } catch (const Error&) {
              continue;
            }
            const Parallel fewer = with_fewer_micro_batches(parallel);
            for (std::uint32_t stage = 0; stage < stages; ++stage) {
              const auto known = orrery::workload::most_kept(parallel, stage);
              ASSERT_EQ(known.has_value(),
                        schedule == Schedule::one_forward_one_backward || schedule == Schedule::gpipe);
              if (known) {
                ASSERT_EQ(static_cast<int>(*known), most_kept(passes_of(parallel, stage)));
              }
              ASSERT_EQ(outline_of(passes_of(fewer, stage)), outline_of(passes_of(parallel, stage)))
                  << stages << ' ' << chunks << ' ' << count << ' ' << stage;
            }
            if (schedule == Schedule::one_forward_one_backward || schedule == Schedule::zb_h1) {
              EXPECT_LE(fewer.micro_batches, 4 * stages);
            }
          }
}

// A pipeline whose two directions have copies: stage p holds parts p and pp - 1 - p. With ZB-V it holds p and
// 2 pp - 1 - p.
TEST(Schedule, VirtualStages) {
  for (const Schedule schedule : {Schedule::zb_v, Schedule::dual_pipe}) {
    const auto parallel = pipeline(schedule, 4, 8);
    for (std::uint32_t stage = 0; stage < 4; ++stage)
      for (const std::uint32_t chunk : {0U, 1U})
        EXPECT_EQ(parallel.stage_of(parallel.virtual_stage(stage, chunk), chunk), stage);
    EXPECT_EQ(parallel.virtual_stage(1, 1), schedule == Schedule::zb_v ? 6 : 2);
  }
}

}  // namespace
}  // namespace orrery::workload
