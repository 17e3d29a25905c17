#include <algorithm>

#include "packet/control.hpp"

namespace orrery::network {
namespace {

/// Mittal et al., "TIMELY: RTT-based congestion control for the datacenter", SIGCOMM 2015, with the constants of the
/// RoCE modules of ns-3. Uses the rates.
class Timely final : public Control {
 public:
  explicit Timely(const ControlParameters& parameters) : parameters_(parameters) {}

  void acknowledge(FlowRate& flow, const Acknowledgement& acknowledgement, FlowTimers& timers) override {
    if (acknowledgement.sequence <= round_end_) return;
    const std::int64_t round_trip = (timers.now() - acknowledgement.stamp).ps() / 1000;
    if (round_end_ == 0)
      current_ = flow.rate;
    else
      adapt(flow, round_trip);
    if (flow.sent <= round_end_) return;
    round_end_ = flow.sent;
    last_round_trip_ = round_trip;
  }

  void serialize(Archive& archive) override {
    archive(difference_, round_end_, current_, last_round_trip_, num_increases_);
  }

 private:
  // In ns.
  static constexpr std::int64_t low = 50'000, high = 500'000;
  static constexpr double least_round_trip = 20'000;
  static constexpr double weight = 0.875, beta = 0.8;
  static constexpr std::uint32_t steps_to_fast_increase = 5;

  void adapt(FlowRate& flow, std::int64_t round_trip) {
    const auto difference = static_cast<double>(round_trip - last_round_trip_);
    const double smoothed = (1 - weight) * difference_ + weight * difference;
    const double gradient = smoothed / least_round_trip;
    const bool increases = round_trip < low || (round_trip <= high && gradient <= 0);
    if (increases) {
      const std::uint64_t step =
          num_increases_ < steps_to_fast_increase ? parameters_.additive_increase : parameters_.fast_increase;
      flow.rate = std::min(current_ + step, flow.line_rate);
      ++num_increases_;
    } else {
      const double factor = round_trip > high
                                ? 1 - beta * (1 - static_cast<double>(high) / static_cast<double>(round_trip))
                                : std::max(0.0, 1 - beta * gradient);
      flow.rate = std::max(parameters_.least_rate, whole_rate(static_cast<double>(current_) * factor));
      num_increases_ = 0;
    }
    current_ = flow.rate;
    difference_ = smoothed;
  }

  const ControlParameters& parameters_;
  double difference_ = 0;
  std::uint64_t round_end_ = 0, current_ = 0;
  std::int64_t last_round_trip_ = 0;
  std::uint32_t num_increases_ = 0;
};

}  // namespace

extern const ControlType timely_control;
constinit const ControlType timely_control{
    .name = "timely",
    .help = "rates follow the round-trip time and its gradient",
    .make = [](const ControlParameters& parameters) -> std::unique_ptr<Control> {
      return std::make_unique<Timely>(parameters);
    },
    .most_round_trip_ns = 500'000,  // Timely::high
};

}  // namespace orrery::network
