#include "mirrored_schedule.hpp"

#include <algorithm>
#include <array>
#include <deque>

namespace orrery::workload {
namespace {

/// Makes the passes of one stage. The near direction is the one that enters the pipeline at the stage's end of it, the
/// far direction the other one.
class MirroredPasses {
 public:
  MirroredPasses(std::uint32_t stages, std::uint32_t micro_batches, std::uint32_t stage)
      : half_(micro_batches / 2), stages_(stages), is_second_half_(stage >= stages / 2) {
    depth_ = std::min(stage, stages - 1 - stage);
  }

  std::vector<Pass> make() {
    const std::uint32_t above = stages_ / 2 - depth_ - 1;  // stages between this one and the middle
    fill(above);
    work(above);
    drain(above);
    return std::move(passes_);
  }

 private:
  enum class Direction : std::uint8_t { near, far };
  using enum Direction;

  void fill(std::uint32_t above) {
    for (std::uint32_t i = 0; i < 2 * above; ++i) forward(near);
    for (std::uint32_t i = 0; i <= depth_; ++i) {
      forward(near);
      forward(far);
    }
    for (std::uint32_t i = 0; i < above; ++i) {
      inputs(far);
      weights();
      forward(far);
    }
  }
  void work(std::uint32_t above) {
    const std::uint32_t rounds = half_ - stages_ + depth_ + 1;
    for (std::uint32_t i = 0; i < rounds; ++i) {
      forward(near, i > 0 || above > 0);  // in the middle the first backward pass needs this forward pass
      backward(far);
      forward(far, true);
      backward(near);
    }
    for (std::uint32_t i = 0; i < above; ++i) {
      backward(far);
      forward(far, true);
      backward(near);
    }
  }
  /// From the middle of the last backward passes on, the gradients of weights are delayed.
  void drain(std::uint32_t above) {
    const std::uint32_t last = 2 * (depth_ + 1), whole = (depth_ + 1) / 2 * 2 + (depth_ % 2 == 0 ? 1 : 0);
    for (std::uint32_t i = 0; i < last; ++i) {
      const Direction direction = i % 2 == 0 ? far : near;
      i < whole ? backward(direction) : inputs(direction);
    }
    for (std::uint32_t i = 0; i < above; ++i) {
      weights();
      inputs(near);
    }
    while (!delayed_.empty()) weights();
  }

  void add(Pass::Kind kind, Direction direction, std::uint32_t number, bool is_with_next = false) {
    const std::uint32_t chunk = (direction == far) != is_second_half_ ? 1 : 0;
    passes_.push_back({kind, chunk * half_ + number, chunk, is_with_next});
  }
  static std::size_t at(Direction direction) { return static_cast<std::size_t>(direction); }
  void forward(Direction direction, bool is_with_next = false) {
    add(Pass::Kind::forward, direction, forwards_[at(direction)]++, is_with_next);
  }
  void backward(Direction direction) { add(Pass::Kind::backward, direction, backwards_[at(direction)]++); }
  void inputs(Direction direction) {
    add(Pass::Kind::inputs, direction, backwards_[at(direction)]++);
    delayed_.push_back({Pass::Kind::weights, passes_.back().micro_batch, passes_.back().chunk});
  }
  void weights() {
    passes_.push_back(delayed_.front());
    delayed_.pop_front();
  }

  std::uint32_t half_, stages_, depth_ = 0;
  bool is_second_half_;
  std::array<std::uint32_t, 2> forwards_{}, backwards_{};  ///< passes so far, by Direction
  std::deque<Pass> delayed_;                               ///< gradients of weights that are delayed
  std::vector<Pass> passes_;
};

}  // namespace

std::vector<Pass> mirrored_passes(std::uint32_t stages, std::uint32_t micro_batches, std::uint32_t stage) {
  return MirroredPasses(stages, micro_batches, stage).make();
}

}  // namespace orrery::workload
