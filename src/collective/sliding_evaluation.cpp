// Evaluates direct with sliding windows (orrery/collective/sliding_window.hpp). What a position does depends on the
// order in which messages reach it, so they are simulated one by one. A shift of all starts shifts all finishes. The
// k-th message that a position sends leaves with the k-th credit that comes back, and the k-th message to come decides
// when that is. So a later start makes no finish earlier, but for the second half of an all-reduce: there a credit that
// comes back before all of the first half have come waits for the next one, and one that comes later does not.
#include "sliding_evaluation.hpp"

#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>

namespace orrery::collective {
namespace {

/// Positions of one group, or one position that stands for all of them because all do the same at the same time.
class SlidingSimulation {
 public:
  /// `is_eager`: a credit waits for no other one, so that no position sends later than it can.
  SlidingSimulation(const SlidingWindow& window, Bytes bytes, const GroupContext& context, bool all_alike,
                    bool is_eager = false)
      : window_(window),
        context_(context),
        bytes_(bytes),
        all_alike_(all_alike),
        is_eager_(is_eager),
        positions_(all_alike ? 1 : context.axis.size),
        sent_at_(positions_.size() * window.num_messages, not_sent) {}

  /// Replaces the starts of the positions by their finishes.
  void run(std::span<Ps> times) {
    const Ps endpoint = context_.endpoint_delay, reduction = context_.reduction(bytes_);
    for (std::uint32_t i = 0; i < positions_.size(); ++i)
      for (std::uint32_t k = 0; k < window_.window; ++k) events_.push({plus(times[i], endpoint), Kind::credit, i});
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      SlidingPosition& position = positions_[event.position];
      const std::uint32_t first = position.sent();
      if (event.kind != Kind::credit) {
        const Ps reduces = window_.reduces_message(position.receive()) ? reduction : 0;
        events_.push({plus(plus(event.time, endpoint), reduces), Kind::credit, event.position});
        if (is_eager_) position.send_second_half(window_);
      } else {
        position.take_credit(window_);
      }
      for (std::uint32_t k = first; k < position.sent(); ++k) send(event.position, k, event.time);
      if (position.is_over(window_)) times[event.position] = event.time;
    }
  }

 private:
  static constexpr Ps not_sent = std::numeric_limits<Ps>::min();

  /// What happens at one time, in this order: a message comes, a credit comes back, a position that has just sent takes
  /// a message that was there before.
  enum class Kind : std::uint8_t { arrival, credit, taking };
  struct Event {
    Ps time = 0;
    Kind kind = Kind::arrival;
    std::uint32_t position = 0;

    bool operator>(const Event& other) const { return std::tie(time, kind) > std::tie(other.time, other.kind); }
  };

  Ps& sent_at(std::uint32_t position, std::uint32_t k) {
    return sent_at_[std::size_t{position} * window_.num_messages + k];
  }

  void send(std::uint32_t position, std::uint32_t k, Ps now) {
    sent_at(position, k) = now;
    const std::uint32_t n = context_.axis.size, distance = k % (n - 1) + 1;
    if (all_alike_) return deliver(0, 0, k);
    deliver(position, (position + distance) % n, k);
    deliver((position + n - distance) % n, position, k);
  }

  /// Delivers the k-th message of a position once its receiver has sent a k-th message too: until then it is not taken.
  void deliver(std::uint32_t from, std::uint32_t to, std::uint32_t k) {
    const Ps sent = sent_at(from, k), posted = sent_at(to, k);
    if (sent == not_sent || posted == not_sent) return;
    const std::uint32_t receiver = all_alike_ ? k % (context_.axis.size - 1) + 1 : to;
    const Ps clear = context_.rendezvous ? plus(posted, context_.clear_to_send(from, receiver)) : sent;
    const Ps there = plus(std::max(sent, clear), context_.link(from, receiver, bytes_));
    events_.push({std::max(posted, there), there > posted ? Kind::arrival : Kind::taking, to});
  }

  const SlidingWindow& window_;
  const GroupContext& context_;
  Bytes bytes_;
  bool all_alike_, is_eager_;
  std::vector<SlidingPosition> positions_;
  std::vector<Ps> sent_at_;  ///< [positions][messages]
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
};

class SlidingEvaluator final : public GroupEvaluator {
 public:
  SlidingEvaluator(const SlidingWindow& window, Bytes bytes, const GroupContext& context)
      : window_(window), bytes_(bytes), context_(context) {
    if (window_.first_half > 0) {
      std::vector<Ps> times(context_.is_circulant() ? 1 : context_.axis.size);
      SlidingSimulation(window_, bytes_, context_, context_.is_circulant(), true).run(times);
      shortest_ = std::ranges::min(times);
    }
    if (context_.is_circulant()) {
      SlidingSimulation(window_, bytes_, context_, true).run({&duration_, 1});
      return;
    }
    const std::vector<Ps> finishes = finishes_from_zero(*this, context_.axis.size);
    duration_ = std::ranges::max(finishes);
    finishes_together_ = std::ranges::min(finishes) == duration_;
  }

  bool finishes_together() const override { return finishes_together_; }
  Ps duration() const override { return duration_; }
  std::optional<Ps> shortest() const override { return shortest_; }
  std::size_t memory() const override { return sizeof(*this); }

  void run(std::span<Ps> times, Scratch&) const override {
    for (std::size_t at = 0; at < times.size(); at += context_.axis.size) {
      const std::span<Ps> group = times.subspan(at, context_.axis.size);
      if (context_.is_circulant() && std::ranges::min(group) == std::ranges::max(group))
        std::ranges::fill(group, plus(group[0], duration_));
      else
        SlidingSimulation(window_, bytes_, context_, false).run(group);
    }
  }

 private:
  SlidingWindow window_;
  Bytes bytes_;
  GroupContext context_;
  bool finishes_together_ = true;
  Ps duration_ = 0;
  std::optional<Ps> shortest_;
};

}  // namespace

std::unique_ptr<GroupEvaluator> evaluate_sliding(const SlidingWindow& window, Bytes bytes,
                                                 const GroupContext& context) {
  return std::make_unique<SlidingEvaluator>(window, bytes, context);
}

}  // namespace orrery::collective
