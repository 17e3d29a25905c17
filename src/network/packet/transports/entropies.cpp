#include "entropies.hpp"

#include <algorithm>
#include <vector>

#include "orrery/base/mix.hpp"

namespace orrery::network {
namespace {

constexpr std::uint8_t most_penalty = 15;
// REPS: for how long values are frozen, and how many are drawn afterwards.
constexpr Time frozen_for = Time::from_ns(10'000'000);
constexpr std::uint32_t num_explored = 16;
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

std::uint16_t Entropies::next_of_ring() {
  if (ring_.to_explore > 0) {
    --ring_.to_explore;
    return static_cast<std::uint16_t>(draw());
  }
  if (ring_.is_frozen && ring_.num_known > 0) {
    const std::uint16_t value = ring_.values[ring_.next_frozen];
    ring_.next_frozen = (ring_.next_frozen + 1) % ring_.num_known;
    return value;
  }
  if (ring_.is_frozen || ring_.num_unused == 0) return static_cast<std::uint16_t>(draw());
  return ring_.values[(ring_.head + Ring::size - ring_.num_unused--) % Ring::size];
}

void Entropies::feed_back_to_ring(std::uint16_t entropy, Feedback feedback, Time now) {
  if (feedback == Feedback::time_out && !ring_.is_frozen && ring_.to_explore == 0) {
    ring_.is_frozen = true;
    ring_.frozen_until = now + frozen_for;
  }
  if (ring_.is_frozen && now > ring_.frozen_until) {
    ring_ = {};
    ring_.to_explore = num_explored;
  }
  if (feedback != Feedback::good) return;
  ring_.values[ring_.head] = entropy;
  ring_.head = (ring_.head + 1) % Ring::size;
  ring_.num_unused = std::min(ring_.num_unused + 1, Ring::size);
  ring_.num_known = std::min(ring_.num_known + 1, Ring::size);
}

std::uint16_t Entropies::next() {
  switch (spraying_) {
    case Spraying::none:
      return static_cast<std::uint16_t>(turn_.order);
    case Spraying::oblivious:
      return next_in_turn();
    case Spraying::bitmap:
      return next_without_penalty();
    case Spraying::reps:
      return next_of_ring();
    case Spraying::mixed:
      if (clean_.empty()) return next_without_penalty();
  }
  const std::uint16_t value = clean_.front();
  clean_.pop_front();
  return value;
}

void Entropies::feed_back(std::uint16_t entropy, Feedback feedback, Time now) {
  if (spraying_ == Spraying::reps) return feed_back_to_ring(entropy, feedback, now);
  std::uint8_t& penalty = penalties_[entropy % count];
  penalty = static_cast<std::uint8_t>(std::min<int>(penalty + penalty_of[static_cast<int>(feedback)], most_penalty));
  if (spraying_ == Spraying::mixed && feedback == Feedback::good) clean_.push_back(entropy);
}

void Entropies::serialize(Archive& archive) {
  std::vector<std::uint16_t> clean(clean_.begin(), clean_.end());
  archive(key_, turn_, penalties_, clean, ring_);
  clean_.assign(clean.begin(), clean.end());
}

}  // namespace orrery::network
