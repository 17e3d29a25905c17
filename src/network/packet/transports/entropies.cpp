#include "entropies.hpp"

#include <algorithm>
#include <vector>

#include "orrery/base/mix.hpp"

namespace orrery::network {
namespace {

constexpr std::uint8_t most_penalty = 15;
constexpr std::uint8_t penalty_of[] = {0, 1, 4, most_penalty};  // [Feedback]

}  // namespace

Entropies::Entropies(Spraying spraying, std::uint64_t key) : spraying_(spraying), key_(key) { turn_.order = draw(); }

std::uint32_t Entropies::draw() { return static_cast<std::uint32_t>(mix(key_, turn_.num_draws++) >> 32U) % count; }

void Entropies::step() {
  if (++turn_.index < count) return;
  turn_.index = 0;
  turn_.order = draw();
}

std::uint16_t Entropies::next_in_turn() {
  const auto value = static_cast<std::uint16_t>(turn_.index ^ turn_.order);
  step();
  return value;
}

/// Passes over values with a penalty. The first one that it passes over loses one of its penalty.
std::uint16_t Entropies::next_without_penalty() {
  if (std::uint8_t& first = penalties_[turn_.index ^ turn_.order]; first > 0) {
    --first;
    step();
    for (std::uint32_t i = 1; i <= count && penalties_[turn_.index ^ turn_.order] > 0; ++i) step();
  }
  return next_in_turn();
}

std::uint16_t Entropies::next(std::uint64_t sent, std::uint64_t window) {
  switch (spraying_) {
    case Spraying::none:
      return static_cast<std::uint16_t>(turn_.order);
    case Spraying::oblivious:
      return next_in_turn();
    case Spraying::bitmap:
      return next_without_penalty();
    case Spraying::reps:
      if (sent < std::min<std::uint64_t>(window, count)) return static_cast<std::uint16_t>(++turn_.last % count);
      if (clean_.empty()) return static_cast<std::uint16_t>(draw());
      break;
    case Spraying::mixed:
      if (clean_.empty()) return next_without_penalty();
  }
  const std::uint16_t value = clean_.front();
  clean_.pop_front();
  return value;
}

void Entropies::feed_back(std::uint16_t entropy, Feedback feedback) {
  std::uint8_t& penalty = penalties_[entropy % count];
  penalty = static_cast<std::uint8_t>(std::min<int>(penalty + penalty_of[static_cast<int>(feedback)], most_penalty));
  const bool uses_clean = spraying_ == Spraying::reps || spraying_ == Spraying::mixed;
  if (uses_clean && feedback == Feedback::good) clean_.push_back(entropy);
}

void Entropies::serialize(Archive& archive) {
  std::vector<std::uint16_t> clean(clean_.begin(), clean_.end());
  archive(key_, turn_, penalties_, clean);
  clean_.assign(clean.begin(), clean.end());
}

}  // namespace orrery::network
