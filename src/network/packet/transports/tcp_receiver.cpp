#include "tcp_receiver.hpp"

#include <algorithm>

namespace orrery::network {
namespace {

constexpr std::uint64_t most_unscaled = 65'535;
constexpr std::uint32_t most_shift = 14;
/// Segments that autotuning adds to twice what a round trip brought.
constexpr std::uint64_t spare_segments = 16;

}  // namespace

TcpReceiver::TcpReceiver(const TcpRules& rules, bool uses_marks) : rules_(rules), uses_marks_(uses_marks) {
  tuning_.buffer = rules.least_buffer;
  while (rules.most_buffer >> tuning_.shift > most_unscaled && tuning_.shift < most_shift) ++tuning_.shift;
}

std::uint64_t TcpReceiver::first_window() const { return std::min(tuning_.buffer, most_unscaled); }

void TcpReceiver::receive(const TcpArrival& arrival, TcpReplies& replies) {
  if (!is_open_) num_waiting_ = rules_.ack_segments;  // the first segment is acknowledged at once
  is_open_ = true;
  if (uses_marks_) mirror(arrival, replies);
  if (arrival.length > 0) take(arrival, replies);
}

/// Notes the mark of a packet. What waits for a delayed acknowledgement is acknowledged first if it had another mark.
void TcpReceiver::mirror(const TcpArrival& arrival, TcpReplies& replies) {
  const bool counts = arrival.is_marked && marks_.furthest < arrival.first;
  if (counts) {
    marks_.furthest = arrival.first;
    marks_.echo = Echo::marked;
  }
  if (counts != marks_.last_was_marked && marks_.is_delayed && marks_.has_prior)
    answer(replies, marks_.prior, marks_.last_was_marked);
  marks_.prior = expected_;
  marks_.has_prior = true;
  marks_.last_was_marked = counts;
  if (!counts) marks_.echo = Echo::idle;
}

void TcpReceiver::take(const TcpArrival& arrival, TcpReplies& replies) {
  const std::uint64_t before = expected_, end = arrival.first + arrival.length;
  const std::uint64_t begin = std::max(arrival.first, before);
  if (begin >= end || ahead_.contains(begin, end)) return answer(replies);
  if (begin > before) {
    ahead_.add(begin, end);
    report({begin, end});
    marks_.is_delayed = false;
    return answer(replies);
  }
  expected_ = end;
  if (!ahead_.empty()) {
    ahead_.add(begin, end);
    expected_ = ahead_.take_from(begin);
    const auto last = std::remove_if(recent_.begin(), recent_.begin() + num_recent_,
                                     [&](const Block& block) { return block.first <= expected_; });
    num_recent_ = static_cast<std::uint32_t>(last - recent_.begin());
  }
  if (rules_.most_buffer > rules_.least_buffer) tune();
  replies.deliver();
  const bool fills_gap = expected_ > before + arrival.length;
  marks_.is_delayed = ahead_.empty() && !fills_gap && ++num_waiting_ < rules_.ack_segments;
  if (!marks_.is_delayed || rules_.ack_timeout == Time::zero()) return answer(replies);
  if (has_timer_) return;
  has_timer_ = true;
  replies.set_timer(replies.now() + rules_.ack_timeout);
}

/// The block that grew goes first, joined with those of the list that it touches. A fifth block is forgotten.
void TcpReceiver::report(Block block) {
  for (std::uint32_t i = 0; i < num_recent_;) {
    const Block other = recent_[i];
    if (other.second != block.first && other.first != block.second) {
      ++i;
      continue;
    }
    block = {std::min(block.first, other.first), std::max(block.second, other.second)};
    std::copy(recent_.begin() + i + 1, recent_.begin() + num_recent_, recent_.begin() + i);
    --num_recent_;
    i = 0;
  }
  num_recent_ = std::min<std::uint32_t>(num_recent_ + 1, most_blocks);
  std::copy_backward(recent_.begin(), recent_.begin() + num_recent_ - 1, recent_.begin() + num_recent_);
  recent_[0] = block;
}

void TcpReceiver::answer(TcpReplies& replies) {
  const bool has_echo = marks_.echo != Echo::idle;
  if (has_echo) marks_.echo = Echo::sending;
  answer(replies, expected_, has_echo);
}

void TcpReceiver::answer(TcpReplies& replies, std::uint64_t byte, bool has_echo) {
  if (has_timer_) replies.set_timer(Time::max());
  has_timer_ = false;
  num_waiting_ = 0;
  std::array<std::uint64_t, 2 * most_blocks> words;
  for (std::uint32_t i = 0; i < num_recent_; ++i) {
    words[2 * i] = recent_[i].first;
    words[2 * i + 1] = recent_[i].second;
  }
  const std::uint64_t window = std::min(tuning_.buffer >> tuning_.shift, most_unscaled) << tuning_.shift;
  replies.acknowledge(byte, window, has_echo, {words.data(), 2 * std::size_t{num_recent_}});
}

/// Raises the buffer after each window of bytes, which takes a round trip, to twice of what came, and some segments.
void TcpReceiver::tune() {
  const std::uint64_t came = expected_ - tuning_.round_begin;
  if (came < tuning_.buffer) return;
  tuning_.round_begin = expected_;
  tuning_.buffer = std::max(tuning_.buffer, std::min(rules_.most_buffer, 2 * came + spare_segments * rules_.mss));
}

void TcpReceiver::serialize(Archive& archive) {
  archive(is_open_, has_timer_, num_waiting_, expected_, ahead_, recent_, num_recent_, marks_, tuning_);
}

}  // namespace orrery::network
