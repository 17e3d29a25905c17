#include "tcp_sender.hpp"

#include <algorithm>
#include <utility>

namespace orrery::network {
namespace {

constexpr Time longest_timeout = Time::from_ns(60'000'000'000);
/// Time-outs without news after which a sender gives up, as in Linux: tcp_retries2, and tcp_syn_retries.
constexpr std::uint32_t most_backoffs = 15, most_syn_backoffs = 6;

}  // namespace

TcpSender::TcpSender(const TcpRules& rules, std::unique_ptr<TcpControl> control, TcpOutput& output)
    : rules_(rules), control_(std::move(control)), output_(output), segments_(rules.mss) {
  window_.mss = rules.mss;
  window_.cwnd = std::uint64_t{rules.initial_window} * rules.mss;
  handshake_.timeout = rules.syn_timeout;
  counts_.greatest_window = window_.cwnd;
}

// ---- The handshake ----

void TcpSender::offer(std::uint64_t bytes) {
  tail_ += bytes;
  if (!handshake_.is_begun) {
    handshake_.is_begun = true;
    send_syn();
  } else if (handshake_.is_connected && room() > 0 && !handshake_.wakes) {
    handshake_.wakes = true;
    output_.wake_soon();
  }
}

void TcpSender::wake() {
  handshake_.wakes = false;
  send_pending();
}

void TcpSender::send_syn() {
  handshake_.sent = output_.now();
  output_.send_syn();
  output_.set_timer(handshake_.sent + handshake_.timeout);
}

void TcpSender::establish(std::uint64_t window) {
  if (handshake_.is_connected) return;
  handshake_.is_connected = true;
  offered_ = window;
  output_.set_timer(Time::max());
  trip_.num_backoffs = 0;
  if (!handshake_.is_repeated) take_sample(output_.now() - handshake_.sent);
  output_.send_handshake();
  trip_.timeout = computed_timeout();
  send_pending();
}

// ---- Segments ----

/// Returns how many bytes the window lets the sender send.
std::uint64_t TcpSender::room() const {
  const std::uint64_t window = std::min(window_.cwnd, offered_), flight = segments_.flight();
  return window > flight ? window - flight : 0;
}

/// RFC 6675: what is lost goes first, then new bytes, and then what may be lost.
TcpSender::Next TcpSender::next_segment(bool with_unknown) {
  if (const auto lost = segments_.first_lost()) return {.kind = Next::Kind::repeat, .number = *lost};
  if (has_unsent()) {
    const std::uint64_t sent = segments_.sent_end() - segments_.unacknowledged();
    if (sent > offered_) return {};
    return {.kind = Next::Kind::fresh, .most = std::min<std::uint64_t>(rules_.mss, offered_ - sent)};
  }
  if (!with_unknown) return {};
  if (const auto unknown = segments_.first_unknown()) return {.kind = Next::Kind::repeat, .number = *unknown};
  return {};
}

void TcpSender::send_pending() {
  if (!handshake_.is_connected || segments_.unacknowledged() >= tail_) return;
  if (rules_.slow_start_after_idle) slow_down_after_idle();
  while (true) {
    const std::uint64_t room = this->room();
    if (room == 0) return;
    const Next next = next_segment(mode_.state == State::recovery);
    if (next.kind == Next::Kind::none) return;
    const bool is_fresh = next.kind == Next::Kind::fresh;
    const std::uint64_t first = is_fresh ? segments_.sent_end() : segments_.first_byte(next.number);
    if (room < rules_.mss && tail_ - first > room) return;
    if (!is_fresh) {
      send_again(next.number);
      continue;
    }
    if (next.most == 0) return;
    send_fresh(std::min(room, next.most));
  }
}

void TcpSender::send_fresh(std::uint64_t most) {
  const std::uint64_t first = segments_.sent_end();
  const std::uint64_t length = std::min(most, tail_ - first);
  segments_.append(static_cast<std::uint32_t>(length), output_.now());
  const bool tells = marks_.state == Echo::marked && marks_.echoed > marks_.told;
  if (tells) {
    marks_.state = Echo::told;
    marks_.told = first;
  }
  if (!trip_.is_running) restart();
  output_.send_segment(first, static_cast<std::uint32_t>(length), tells);
  count_sent(first + length, length);
}

void TcpSender::send_again(std::uint64_t number) {
  segments_.repeat(number);
  const std::uint64_t first = segments_.first_byte(number);
  const std::uint32_t length = segments_[number].length;
  if (!trip_.is_running) restart();
  output_.send_segment(first, length, false);
  ++counts_.repeated;
  count_sent(first + length, length);
}

void TcpSender::count_sent(std::uint64_t end, std::uint64_t length) {
  if (mode_.state == State::recovery || mode_.state == State::cwr) prr_.out += length;
  ++counts_.segments;
  window_.next = end;
  window_.high = std::max(window_.high, end);
  trip_.last_sent = output_.now();
}

/// RFC 5681, section 4.1.
void TcpSender::slow_down_after_idle() {
  if (!segments_.empty() || output_.now() - trip_.last_sent <= trip_.timeout) return;
  window_.cwnd = std::min(window_.cwnd, std::uint64_t{rules_.initial_window} * rules_.mss);
}

// ---- Time-outs ----

void TcpSender::take_sample(Time round_trip) {
  if (round_trip <= Time::zero()) return;
  if (trip_.smoothed == Time::zero()) {
    trip_.smoothed = round_trip;
    trip_.variation = Time::from_ps(round_trip.ps() / 2);
  } else {
    const std::int64_t smoothed = trip_.smoothed.ps(), variation = trip_.variation.ps();
    const std::int64_t difference = round_trip.ps() - smoothed;
    trip_.smoothed = Time::from_ps((smoothed * 8 + difference) >> 3);
    trip_.variation = Time::from_ps((variation * 4 + std::abs(difference) - variation) >> 2);
  }
  trip_.timeout = computed_timeout();
}

Time TcpSender::computed_timeout() const {
  if (trip_.smoothed == Time::zero()) return std::max(RoundTrip{}.timeout, rules_.min_rto);
  return std::max(trip_.smoothed + std::max(rules_.granularity, trip_.variation * 4), rules_.min_rto);
}

void TcpSender::restart() {
  trip_.is_running = true;
  output_.set_timer(output_.now() + trip_.timeout);
}

/// Restarts the timer after new bytes were acknowledged, and ends it if nothing is left.
void TcpSender::take_news(bool restarts) {
  const bool is_over = segments_.unacknowledged() >= tail_;
  if (restarts) {
    trip_.timeout = computed_timeout();
    if (!is_over) restart();
  }
  window_.next = std::max(window_.next, segments_.unacknowledged());
  if (!is_over) return;
  trip_.is_running = false;
  output_.set_timer(Time::max());
  segments_.shrink();
}

void TcpSender::expire() {
  ++trip_.num_backoffs;
  if (handshake_.is_connected) {
    trip_.is_running = false;
    if (segments_.unacknowledged() < tail_ && trip_.num_backoffs <= most_backoffs) expire_data();
    return;
  }
  if (trip_.num_backoffs > most_syn_backoffs) return;
  ++counts_.timeouts;
  handshake_.is_repeated = true;
  handshake_.timeout = std::max(handshake_.timeout, std::min(handshake_.timeout * 2, longest_timeout));
  send_syn();
}

void TcpSender::expire_data() {
  const std::uint64_t flight = segments_.flight();
  mode_.num_duplicates = 0;
  ++counts_.timeouts;
  segments_.lose_all();
  mode_.recovery_point = window_.high;
  mode_.is_recovering = true;
  trip_.timeout = std::max(trip_.timeout, std::min(trip_.timeout * 2, longest_timeout));
  window_.ssthresh = control_->reduced(window_, flight);
  control_->lose(window_, output_.now());
  mode_.state = State::loss;
  window_.cwnd = rules_.mss;
  send_pending();
}

void TcpSender::serialize(Archive& archive) {
  archive(window_, segments_, tail_, offered_, highest_, rest_, trip_, prr_, mode_, marks_, handshake_, counts_);
  control_->serialize(archive);
}

}  // namespace orrery::network
