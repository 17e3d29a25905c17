#include <algorithm>

#include "orrery/network/packet_rules.hpp"
#include "packet/transports/tcp_control.hpp"

namespace orrery::network {
namespace {

/// RFC 5681 and 6582: one segment for each acknowledgement in slow start, and one for each window after it.
class NewReno final : public TcpControl {
 public:
  void increase(TcpWindow& window, std::uint64_t segments, Time) override {
    if (segments == 0) return;
    if (window.cwnd < window.ssthresh) {
      window.cwnd += window.mss;
      --segments;
    }
    if (window.cwnd >= window.ssthresh && segments > 0)
      window.cwnd += std::max<std::uint64_t>(1, std::uint64_t{window.mss} * window.mss / window.cwnd);
  }
  std::uint64_t reduced(const TcpWindow& window, std::uint64_t flight) override {
    return std::max<std::uint64_t>(2 * std::uint64_t{window.mss}, flight / 2);
  }
};

}  // namespace

extern const ControlType newreno_control;
constinit const ControlType newreno_control{
    .name = "newreno",
    .help = "a window that grows by a segment each round trip, and halves at a loss",
    .transport = "tcp",
    .make_tcp = []() -> std::unique_ptr<TcpControl> { return std::make_unique<NewReno>(); },
};

}  // namespace orrery::network
