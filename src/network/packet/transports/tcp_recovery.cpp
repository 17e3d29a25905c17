// The sender of TCP takes acknowledgements, and recovers from losses (docs/tcp.md, Senders).
#include <algorithm>

#include "tcp_sender.hpp"

namespace orrery::network {

void TcpSender::receive(const TcpAcknowledgement& acknowledgement) {
  const std::uint64_t byte = acknowledgement.byte, before = segments_.unacknowledged();
  if (byte > highest_) {
    highest_ = byte;
    offered_ = acknowledgement.window;
  } else if (byte == highest_) {
    offered_ = std::max(offered_, acknowledgement.window);
  }
  if (byte < before) return;
  std::uint64_t delivered = 0;
  for (std::size_t i = 0; i + 1 < acknowledgement.blocks.size(); i += 2)
    delivered += segments_.take_block(acknowledgement.blocks[i], acknowledgement.blocks[i + 1]);
  const bool is_duplicate = delivered > 0;
  if (is_duplicate) segments_.find_lost();
  if (byte > before) {
    const TcpSegments::Covered covered = segments_.acknowledge(byte);
    delivered += covered.delivered;
    mode_.repeated_came = covered.has_repeated && mode_.state == State::recovery && byte < mode_.recovery_point;
    if (covered.is_sent_once) take_sample(output_.now() - covered.sent);
    trip_.num_backoffs = 0;
  }
  if (mode_.state == State::cwr && byte > mode_.recovery_point) {
    mode_.state = State::open;
    window_.cwnd = window_.ssthresh;
  }
  if (control_->uses_marks()) take_echo(acknowledgement, before, delivered);
  window_.acknowledged = byte;
  process(before, is_duplicate, delivered);
  mode_.repeated_came = false;
  counts_.greatest_window = std::max(counts_.greatest_window, window_.cwnd);
  send_pending();
}

/// Takes the report of an ECN mark, or that there is none.
void TcpSender::take_echo(const TcpAcknowledgement& acknowledgement, std::uint64_t before, std::uint64_t delivered) {
  const bool is_new = acknowledgement.byte > before && acknowledgement.has_echo;
  if (!is_new) {
    if (marks_.state == Echo::marked && !acknowledgement.has_echo) marks_.state = Echo::idle;
    return;
  }
  if (marks_.echoed >= acknowledgement.byte) return;
  marks_.echoed = acknowledgement.byte;
  marks_.state = Echo::marked;
  if (mode_.state != State::cwr) enter_reduction(delivered);
}

void TcpSender::inform(std::uint64_t segments) {
  control_->acknowledge(window_, {.now = output_.now(),
                                  .segments = segments,
                                  .has_echo = marks_.state == Echo::marked,
                                  .round_trip = trip_.smoothed});
}

void TcpSender::process(std::uint64_t before, bool is_duplicate, std::uint64_t delivered) {
  const std::uint32_t num_before = mode_.num_duplicates;
  if (is_duplicate) take_duplicate(delivered);
  const std::uint64_t byte = window_.acknowledged;
  if (byte == before) {
    if (byte != window_.high) inform(1);
    return;
  }
  const std::uint64_t num_new = byte - before;
  std::uint64_t segments = num_new / rules_.mss;
  rest_ += num_new % rules_.mss;
  if (rest_ >= rules_.mss) {
    ++segments;
    rest_ -= rules_.mss;
  }
  if (!is_duplicate) mode_.num_duplicates = 0;
  const bool is_partial = byte < mode_.recovery_point;
  if (is_partial && mode_.state == State::recovery) {
    take_partial(segments, delivered);
  } else if (is_partial && mode_.state == State::loss) {
    inform(segments);
    control_->increase(window_, segments, output_.now());
    take_news(true);
  } else if (mode_.state == State::cwr) {
    inform(segments);
    if (segments >= 1) reduce(delivered);
    take_news(true);
  } else {
    take_whole(num_new, segments, is_duplicate, num_before);
  }
}

/// Takes an acknowledgement in recovery of less than was sent when recovery began.
void TcpSender::take_partial(std::uint64_t segments, std::uint64_t delivered) {
  if (segments >= 1) reduce(delivered);
  if (!segments_.has_repeated_end(window_.acknowledged + rules_.mss)) send_one();
  inform(1);
  take_news(mode_.is_first_partial);
  mode_.is_first_partial = false;
}

/// Takes an acknowledgement of all that was sent when recovery began, or one outside of recovery.
void TcpSender::take_whole(std::uint64_t num_new, std::uint64_t segments, bool is_duplicate, std::uint32_t num_before) {
  const std::uint64_t byte = window_.acknowledged;
  bool has_recovered = false;
  switch (mode_.state) {
    case State::disorder:
      if (segments >= num_before) inform(segments - num_before);
      if (!is_duplicate) mode_.state = State::open;
      break;
    case State::recovery:
      mode_.is_first_partial = true;
      segments = num_new / rules_.mss;
      inform(segments);
      mode_.state = State::open;
      mode_.num_duplicates = 0;
      has_recovered = true;
      break;
    case State::loss:
      mode_.is_first_partial = true;
      segments = (byte - mode_.recovery_point) / rules_.mss;
      inform(segments);
      mode_.state = State::open;
      break;
    default:
      inform(segments);
  }
  if (byte >= mode_.recovery_point) mode_.is_recovering = false;
  if (has_recovered) {
    take_news(true);
    window_.cwnd = window_.ssthresh;
  }
  if (mode_.state != State::open) return;
  control_->increase(window_, segments, output_.now());
  take_news(true);
}

void TcpSender::take_duplicate(std::uint64_t delivered) {
  if (mode_.state == State::loss) return;
  if (mode_.state == State::recovery) return reduce(delivered);
  ++mode_.num_duplicates;
  if (mode_.state == State::open) mode_.state = State::disorder;
  if (mode_.state != State::disorder) return;
  const bool is_third = mode_.num_duplicates == 3 && (highest_ >= mode_.recovery_point || !mode_.is_recovering);
  if (is_third || segments_.is_lost_from(highest_ + rules_.mss)) enter_recovery(delivered);
}

void TcpSender::enter_recovery(std::uint64_t delivered) {
  segments_.lose_head();
  mode_.recovery_point = window_.high;
  mode_.is_recovering = true;
  mode_.state = State::recovery;
  window_.ssthresh = control_->reduced(window_, segments_.flight());
  prr_ = {.flight = window_.high - segments_.unacknowledged()};
  reduce(delivered);
  send_one();
}

/// Begins to shrink the window after an ECN mark.
void TcpSender::enter_reduction(std::uint64_t delivered) {
  window_.ssthresh = control_->reduced(window_, segments_.flight());
  mode_.state = State::cwr;
  mode_.recovery_point = window_.high;
  prr_ = {.flight = window_.high - segments_.unacknowledged()};
  reduce(delivered);
}

/// RFC 6937: lets out in proportion to what was delivered until the window is as small as the threshold.
void TcpSender::reduce(std::uint64_t delivered) {
  prr_.delivered += delivered;
  const std::uint64_t flight = segments_.flight(), mss = rules_.mss;
  const std::uint64_t least = prr_.out > 0 ? 0 : mss;
  std::uint64_t bytes = 0;
  if (flight > window_.ssthresh) {
    using Wide = unsigned __int128;
    const std::uint64_t divisor = std::max<std::uint64_t>(prr_.flight, 1);
    const auto share =
        static_cast<std::uint64_t>((static_cast<Wide>(prr_.delivered) * window_.ssthresh + divisor - 1) / divisor);
    bytes = share - std::min(share, prr_.out);
  } else {
    std::uint64_t limit = delivered;
    if (mode_.repeated_came) limit = std::max(prr_.delivered - std::min(prr_.delivered, prr_.out), delivered) + mss;
    bytes = std::min(limit, window_.ssthresh - flight);
  }
  window_.cwnd = flight + std::max(bytes, least);
}

/// Sends one segment whatever the window is.
void TcpSender::send_one() {
  const Next next = next_segment(false);
  switch (next.kind) {
    case Next::Kind::none:
      return send_again(segments_.head());
    case Next::Kind::repeat:
      return send_again(next.number);
    case Next::Kind::fresh:
      if (next.most > 0) send_fresh(next.most);
  }
}

}  // namespace orrery::network
