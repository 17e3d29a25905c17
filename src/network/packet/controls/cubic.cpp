#include <algorithm>
#include <cmath>

#include "orrery/network/packet_rules.hpp"
#include "packet/transports/tcp_control.hpp"

namespace orrery::network {
namespace {

/// RFC 8312 without its region for fairness to other TCP, and HyStart (Ha and Rhee, Computer Networks 55(9), 2011).
/// Windows are whole segments here.
class Cubic final : public TcpControl {
 public:
  void increase(TcpWindow& window, std::uint64_t segments, Time now) override {
    if (window.cwnd < window.ssthresh) {
      if (window.acknowledged > round_end_) begin_round(window, now);
      window.cwnd += segments * window.mss;
      return;
    }
    if (segments == 0) return;
    count_ += segments;
    const std::uint64_t needed = segments_for_one(window.segments(), now);
    if (count_ < needed) return;
    window.cwnd += window.mss;
    count_ -= needed;
  }

  std::uint64_t reduced(const TcpWindow& window, std::uint64_t) override {
    const std::uint64_t now = window.segments();
    const auto segments = static_cast<double>(now);
    most_ = now < most_ ? static_cast<std::uint64_t>(segments * (1 + beta) / 2) : now;
    epoch_ = none;
    return std::max<std::uint64_t>(static_cast<std::uint64_t>(segments * beta), 2) * window.mss;
  }

  void acknowledge(TcpWindow& window, const TcpFeedback& feedback) override {
    const Time now = feedback.now;
    if (feedback.round_trip == Time::zero()) return;
    if (epoch_ != none && now - epoch_ < settling) return;
    if (least_trip_ == none || least_trip_ > feedback.round_trip) least_trip_ = feedback.round_trip;
    if (has_left_slow_start_ || window.cwnd > window.ssthresh || window.cwnd < least_segments * window.mss) return;
    watch_round(feedback.round_trip, now);
    if (has_left_slow_start_) window.ssthresh = window.cwnd;
  }

  void lose(const TcpWindow& window, Time now) override {
    most_ = origin_ = 0;
    time_to_origin_ = 0;
    least_trip_ = none;
    has_left_slow_start_ = false;
    begin_round(window, now);
  }

  void serialize(Archive& archive) override {
    archive(count_, most_, origin_, time_to_origin_, epoch_, least_trip_, has_left_slow_start_, round_, round_end_,
            last_, least_in_round_, samples_);
  }

 private:
  static constexpr double beta = 0.7, growth = 0.4;
  static constexpr Time none = Time::from_ps(-1);
  static constexpr Time settling = Time::from_ns(10'000'000), spacing = Time::from_ns(2'000'000);
  static constexpr std::uint64_t least_segments = 16;
  static constexpr std::uint32_t most_samples = 8;

  void begin_round(const TcpWindow& window, Time now) {
    round_ = last_ = now;
    round_end_ = window.high;
    least_in_round_ = none;
    samples_ = 0;
  }

  /// HyStart: a long train of acknowledgements, or a round trip that has grown, ends slow start.
  void watch_round(Time round_trip, Time now) {
    if (last_ != none && now - last_ <= spacing) {
      last_ = now;
      if (now - round_ > least_trip_) has_left_slow_start_ = true;
    }
    if (samples_ < most_samples) {
      if (least_in_round_ == none || least_in_round_ > round_trip) least_in_round_ = round_trip;
      ++samples_;
      return;
    }
    const Time threshold = std::min(std::max(least_trip_, Time::from_ns(4'000'000)), Time::from_ns(1'000'000'000));
    if (least_in_round_ > least_trip_ + threshold) has_left_slow_start_ = true;
  }

  /// Returns how many acknowledged segments raise the window by one.
  std::uint64_t segments_for_one(std::uint64_t segments, Time now) {
    if (epoch_ == none) {
      epoch_ = now;
      time_to_origin_ = most_ <= segments ? 0 : std::pow(static_cast<double>(most_ - segments) / growth, 1.0 / 3);
      origin_ = std::max(most_, segments);
    }
    const Time later = now + std::max(least_trip_, Time::zero()) - epoch_;
    const double time = static_cast<double>(later.ps()) / 1e12;
    const auto distance = static_cast<std::uint64_t>(growth * std::pow(std::abs(time - time_to_origin_), 3));
    const bool is_before = time < time_to_origin_;
    const std::uint64_t below = origin_ - std::min(distance, origin_);
    const std::uint64_t target = is_before ? below : origin_ + distance;
    std::uint64_t needed = target > segments ? segments / (target - segments) : 100 * segments;
    if (most_ == 0) needed = std::min<std::uint64_t>(needed, 20);
    return std::max<std::uint64_t>(needed, 2);
  }

  std::uint64_t count_ = 0, most_ = 0, origin_ = 0;
  double time_to_origin_ = 0;  // s
  Time epoch_ = none, least_trip_ = none;
  bool has_left_slow_start_ = false;
  Time round_;
  std::uint64_t round_end_ = 0;
  Time last_ = none, least_in_round_ = none;
  std::uint32_t samples_ = 0;
};

}  // namespace

extern const ControlType cubic_control;
constinit const ControlType cubic_control{
    .name = "cubic",
    .help = "a window that grows by a cubic function of the time since its last loss, as in Linux",
    .transport = "tcp",
    .make_tcp = []() -> std::unique_ptr<TcpControl> { return std::make_unique<Cubic>(); },
};

}  // namespace orrery::network
