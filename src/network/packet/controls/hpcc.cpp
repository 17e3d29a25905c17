#include <algorithm>
#include <ranges>

#include "packet/control.hpp"
#include "packet/telemetry.hpp"

namespace orrery::network {
namespace {

/// Li et al., "HPCC: high precision congestion control", SIGCOMM 2019, with one rate for all hops. Uses the least rate,
/// the additive increase and the parameters that ControlParameters marks with HPCC. The flow needs a window.
class Hpcc final : public Control {
 public:
  explicit Hpcc(const ControlParameters& parameters) : parameters_(parameters) {}

  void acknowledge(FlowRate& flow, const Acknowledgement& acknowledgement, FlowTimers&) override {
    const Telemetry& now = *acknowledgement.telemetry;
    const bool is_new_round = acknowledgement.sequence > round_end_;
    if (round_end_ == 0) {
      round_end_ = flow.sent;
      current_ = flow.rate;
      last_ = now;
      return;
    }
    if (!has_news(now)) return;
    estimate_utilisation(flow, now);
    last_ = now;
    const double excess = utilisation_ / parameters_.target_utilisation;
    const bool is_multiplicative = excess >= 1 || stage_ >= parameters_.increase_stages;
    const std::uint64_t base = is_multiplicative ? whole_rate(static_cast<double>(current_) / excess) : current_;
    flow.rate = std::max(parameters_.least_rate, std::min(base + parameters_.additive_increase, flow.line_rate));
    flow.is_effective_at_once = true;
    if (!is_new_round) return;
    current_ = flow.rate;
    stage_ = is_multiplicative ? 0 : stage_ + 1;
    round_end_ = std::max(round_end_, flow.sent);
  }

  void serialize(Archive& archive) override { archive(last_, utilisation_, round_end_, current_, stage_); }

 private:
  /// Returns whether a packet tells what its hops have done since the last one. It does not if it has passed no switch,
  /// or if it has passed one in the same nanosecond as the last one.
  bool has_news(const Telemetry& now) const {
    const std::uint32_t num_hops = std::min(now.num_hops, last_.num_hops);
    const auto waits = [&](std::uint32_t i) {
      return telemetry_time_difference(now.hops[i].time_ns, last_.hops[i].time_ns) == 0;
    };
    return num_hops > 0 && std::ranges::none_of(std::views::iota(0U, num_hops), waits);
  }

  /// Moves the utilisation towards that of the busiest hop.
  void estimate_utilisation(const FlowRate& flow, const Telemetry& now) {
    const auto unit = static_cast<double>(parameters_.telemetry_unit);
    const std::uint64_t window = std::max<std::uint64_t>(flow.window, 1);
    double most = 0;
    std::uint64_t span = 0;  // in ns, of the busiest hop
    for (std::uint32_t i = 0; i < std::min(now.num_hops, last_.num_hops); ++i) {
      const Telemetry::Hop &hop = now.hops[i], &before = last_.hops[i];
      const std::uint64_t elapsed = telemetry_time_difference(hop.time_ns, before.time_ns);
      const auto bytes = static_cast<double>(telemetry_bytes_difference(hop.bytes, before.bytes)) * 128 * unit;
      const double sent = bytes * 8 / (static_cast<double>(elapsed) * 1e-9);
      const auto rate = static_cast<double>(hop.rate);
      const double queue = static_cast<double>(std::min(hop.queue, before.queue)) * 80 * unit;
      const double used =
          sent / rate + queue * static_cast<double>(flow.line_rate) / rate / static_cast<double>(window);
      if (used <= most) continue;
      most = used;
      span = elapsed;
    }
    const auto round_trip = static_cast<double>(std::max<std::int64_t>(flow.round_trip.ps() / 1000, 1));
    const double weight = std::min(static_cast<double>(span), round_trip);
    utilisation_ = (utilisation_ * (round_trip - weight) + most * weight) / round_trip;
  }

  const ControlParameters& parameters_;
  Telemetry last_;
  double utilisation_ = 1;
  std::uint64_t round_end_ = 0, current_ = 0;
  std::uint32_t stage_ = 0;
};

}  // namespace

extern const ControlType hpcc_control;
constinit const ControlType hpcc_control{
    .name = "hpcc",
    .help = "rates follow what switches say of their ports in every packet",
    .make = [](const ControlParameters& parameters) -> std::unique_ptr<Control> {
      return std::make_unique<Hpcc>(parameters);
    },
    .uses_telemetry = true,
};

}  // namespace orrery::network
