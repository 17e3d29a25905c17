#include <algorithm>
#include <cmath>

#include "packet/control.hpp"

namespace orrery::network {
namespace {

/// Kumar et al., "Swift: delay is simple and effective for congestion control in the datacenter", SIGCOMM 2020, with
/// the constants of htsim and one delay, the round trip of a packet. It sets the window; below one packet it paces.
/// Uses no parameters.
class Swift final : public Control {
 public:
  void acknowledge(FlowRate& flow, const Acknowledgement& acknowledgement, FlowTimers& timers) override {
    const auto packet = static_cast<double>(flow.payload);
    if (window_ == 0) window_ = flow.window == 0 ? most_packets * packet : static_cast<double>(flow.window);
    num_timeouts_ = 0;
    const auto delay = static_cast<double>((timers.now() - acknowledgement.stamp).ps());
    const bool may_decrease = static_cast<double>((timers.now() - last_decrease_).ps()) >= round_trip_;
    round_trip_ = round_trip_ == 0 ? delay : round_trip_ * (1 - weight) + delay * weight;
    const double target = target_of(flow, window_ / packet);
    const auto bytes = static_cast<double>(acknowledgement.bytes);
    const double before = window_;
    if (delay < target)
      window_ += window_ >= packet ? packet * bytes / window_ : bytes;
    else if (may_decrease)
      window_ *= std::max(1 - beta * (delay - target) / delay, least_factor);
    apply(flow, before, timers);
  }

  void lose(FlowRate& flow, FlowTimers& timers) override {
    if (window_ == 0) window_ = flow.window == 0 ? static_cast<double>(flow.payload) : static_cast<double>(flow.window);
    const double before = window_;
    window_ = ++num_timeouts_ >= timeouts_to_least ? least_bytes : window_ * least_factor;
    apply(flow, before, timers);
  }

  void serialize(Archive& archive) override { archive(window_, round_trip_, last_decrease_, num_timeouts_); }

 private:
  // Times in ps.
  static constexpr double base_target = 20e6, hop_target = base_target / 6.55;
  static constexpr double most_for_window = 100e6, least_scaled = 0.1, most_scaled = 100;  // the latter in packets
  static constexpr double beta = 0.8, least_factor = 0.5, weight = 0.125;
  static constexpr double least_bytes = 10, most_packets = 1000;
  static constexpr std::uint32_t timeouts_to_least = 5;

  /// Returns the delay at which a window of so many packets neither grows nor shrinks. Small windows have more of it,
  /// so that many flows find a fair share.
  static double target_of(const FlowRate& flow, double packets) {
    static const double scale = most_for_window / (1 / std::sqrt(least_scaled) - 1 / std::sqrt(most_scaled));
    static const double offset = -scale / std::sqrt(most_scaled);
    const double for_window = std::clamp(scale / std::sqrt(packets) + offset, 0.0, most_for_window);
    return base_target + flow.hops * hop_target + for_window;
  }

  /// Gives the flow the window. A flow of less than one packet sends one at a time, at the pace that the window allows.
  void apply(FlowRate& flow, double before, FlowTimers& timers) {
    const auto packet = static_cast<double>(flow.payload);
    window_ = std::clamp(window_, least_bytes, most_packets * packet);
    if (window_ < before) last_decrease_ = timers.now();
    const auto whole = static_cast<std::uint64_t>(window_);
    flow.window = whole > flow.payload ? whole - flow.payload + 1 : 1;  // so that no packet goes beyond it
    flow.rate = flow.line_rate;
    if (window_ < packet && round_trip_ > 0)
      flow.rate = std::clamp<std::uint64_t>(whole_rate(window_ * 8e12 / round_trip_), 1, flow.line_rate);
  }

  double window_ = 0;  // bytes; 0: no acknowledgement has come yet
  double round_trip_ = 0;
  Time last_decrease_;
  std::uint32_t num_timeouts_ = 0;
};

}  // namespace

extern const ControlType swift_control;
constinit const ControlType swift_control{
    .name = "swift",
    .help = "windows grow while round trips are below a target, which rises with hops and for small windows",
    .make = [](const ControlParameters&) -> std::unique_ptr<Control> { return std::make_unique<Swift>(); },
    .sets_window = true,
    .most_round_trip_ns = 123'053,  // base_target, hop_target and most_for_window
};

}  // namespace orrery::network
