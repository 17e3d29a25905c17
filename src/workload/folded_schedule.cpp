#include "folded_schedule.hpp"

#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "orrery/base/error.hpp"

namespace orrery::workload {
namespace {

/// Simulates all stages in units of time. In each unit a stage executes the pass that comes first in the steady state,
/// of those that can run; gradients of weights fill the units in which nothing else can.
class FoldedPasses {
 public:
  FoldedPasses(std::uint32_t stages, std::uint32_t micro_batches)
      : last_(stages - 1), micro_batches_(micro_batches), made_(stages), state_(stages) {}

  std::vector<std::vector<Pass>> make() {
    std::uint64_t left = std::uint64_t{6} * (last_ + 1) * micro_batches_;
    for (std::vector<std::pair<std::uint32_t, Pass>> begun; left > 0; left -= begun.size()) {
      begun.clear();
      for (std::uint32_t stage = 0; stage <= last_; ++stage)
        if (const auto pass = choose(stage)) begun.emplace_back(stage, *pass);
      ensure(!begun.empty(), "a folded schedule without a next pass");
      for (const auto& [stage, pass] : begun) finish(stage, pass);
    }
    return std::move(made_);
  }

 private:
  /// How many passes of a kind and chunk a stage has executed, and the activations that it keeps.
  struct State {
    std::array<std::array<std::uint32_t, 2>, 4> done{};  ///< passes done, by Pass::Kind and chunk
    std::uint32_t kept = 0;
  };
  using enum Pass::Kind;

  std::uint32_t& done(std::uint32_t stage, Pass::Kind kind, std::uint32_t chunk) {
    return state_[stage].done[static_cast<std::size_t>(kind)][chunk];
  }
  /// Returns how many micro-batches can have executed this pass by the end of this unit of time.
  std::uint32_t available(std::uint32_t stage, Pass::Kind kind, std::uint32_t chunk) {
    const bool goes_down = (kind == forward) == (chunk == 0);
    if (kind == weights) return done(stage, inputs, chunk);
    if (goes_down && stage > 0) return done(stage - 1, kind, chunk);
    if (!goes_down && stage < last_) return done(stage + 1, kind, chunk);
    if (kind == forward) return chunk == 0 ? micro_batches_ : done(stage, forward, 0);
    return chunk == 1 ? done(stage, forward, 1) : done(stage, inputs, 1);
  }
  bool can_run(std::uint32_t stage, Pass::Kind kind, std::uint32_t chunk) {
    if (kind == forward && state_[stage].kept == 2 * (last_ + 1)) return false;
    return done(stage, kind, chunk) < available(stage, kind, chunk);
  }
  /// Returns the unit of time of a pass in the steady state, in which each stage executes six passes for each
  /// micro-batch: a micro-batch takes four units for a stage on its way down, forward and backward, and two on its way
  /// up.
  std::uint64_t steady_time(std::uint32_t stage, const Pass& pass) const {
    const std::uint64_t down = 4 * std::uint64_t{stage}, up = 2 * std::uint64_t{last_ - stage}, all = last_;
    const bool is_first_chunk = pass.chunk == 0;
    const std::uint64_t forward_time = is_first_chunk ? down : 4 * all + 1 + up;
    const std::uint64_t inputs_time = is_first_chunk ? 10 * all + 3 + up : 6 * all + 2 + down;
    const std::uint64_t time = pass.is_forward() ? forward_time : inputs_time;
    return time + (pass.kind == weights ? (is_first_chunk ? 1 : 2) : 0) + 6 * std::uint64_t{pass.micro_batch};
  }
  std::optional<Pass> choose(std::uint32_t stage) {
    std::optional<Pass> best;
    std::pair<bool, std::uint64_t> lowest;
    for (const Pass::Kind kind : {forward, inputs, weights})
      for (const std::uint32_t chunk : {0U, 1U}) {
        if (!can_run(stage, kind, chunk)) continue;
        const Pass pass{kind, done(stage, kind, chunk), chunk};
        const std::pair rank{kind == weights, steady_time(stage, pass)};
        if (!best || rank < lowest) best = pass, lowest = rank;
      }
    return best;
  }
  void finish(std::uint32_t stage, const Pass& pass) {
    ++done(stage, pass.kind, pass.chunk);
    if (pass.is_forward()) ++state_[stage].kept;
    if (pass.kind == weights) --state_[stage].kept;
    made_[stage].push_back(pass);
  }

  std::uint32_t last_, micro_batches_;
  std::vector<std::vector<Pass>> made_;
  std::vector<State> state_;
};

}  // namespace

std::vector<std::vector<Pass>> folded_passes(std::uint32_t stages, std::uint32_t micro_batches) {
  return FoldedPasses(stages, micro_batches).make();
}

}  // namespace orrery::workload
