#include <algorithm>

#include "packet/transports/tcp_control.hpp"

namespace orrery::network {
namespace {

/// RFC 8257: the share of marked segments of a window says by how much the next reduction shrinks it.
class TcpDctcp final : public TcpControl {
 public:
  bool uses_marks() const override { return true; }

  void increase(TcpWindow& window, std::uint64_t segments, Time) override {
    if (window.cwnd < window.ssthresh) {
      if (segments >= 1) window.cwnd = std::min(window.cwnd + segments * window.mss, window.ssthresh);
      return;
    }
    const std::uint64_t whole = std::max<std::uint64_t>(1, window.segments());
    if (count_ >= whole) {
      count_ = 0;
      window.cwnd += window.mss;
    }
    count_ += segments;
    if (count_ < whole) return;
    const std::uint64_t windows = count_ / whole;
    count_ -= windows * whole;
    window.cwnd += windows * window.mss;
  }

  std::uint64_t reduced(const TcpWindow& window, std::uint64_t) override {
    return static_cast<std::uint64_t>((1 - alpha_ / 2) * static_cast<double>(window.cwnd));
  }

  void acknowledge(TcpWindow& window, const TcpFeedback& feedback) override {
    total_ += feedback.segments;
    if (feedback.has_echo) marked_ += feedback.segments;
    if (round_end_ == 0) round_end_ = window.next;
    if (window.acknowledged < round_end_) return;
    const double share = total_ > 0 ? static_cast<double>(marked_) / static_cast<double>(total_) : 0;
    alpha_ = (1 - gain) * alpha_ + gain * share;
    round_end_ = window.next;
    marked_ = total_ = 0;
  }

  void serialize(Archive& archive) override { archive(alpha_, marked_, total_, round_end_, count_); }

 private:
  static constexpr double gain = 0.0625;

  double alpha_ = 1;
  std::uint64_t marked_ = 0, total_ = 0;  // segments of this window
  std::uint64_t round_end_ = 0;           // 0: not known yet
  std::uint64_t count_ = 0;
};

}  // namespace

std::unique_ptr<TcpControl> make_tcp_dctcp() { return std::make_unique<TcpDctcp>(); }

}  // namespace orrery::network
