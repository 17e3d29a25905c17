#include <algorithm>

#include "packet/control.hpp"

namespace orrery::network {
namespace {

/// Zhu et al., "Congestion control for large-scale RDMA deployments", SIGCOMM 2015, with the timers of the RoCE modules
/// of ns-3. Uses all parameters that ControlParameters marks with DCQCN, the rates and the gain.
class Dcqcn final : public Control {
 public:
  explicit Dcqcn(const ControlParameters& parameters) : parameters_(parameters) {}

  void acknowledge(FlowRate& flow, const Acknowledgement& acknowledgement, FlowTimers& timers) override {
    silence_ = Time::zero();
    if (!acknowledgement.is_marked) return;
    alpha_is_due_ = decrease_is_due_ = true;
    if (has_started_) return;
    has_started_ = true;
    alpha_is_due_ = false;
    target_ = flow.rate;
    timers.start(alpha_timer, parameters_.alpha_interval);
    timers.start(decrease_timer, parameters_.decrease_interval + Time::from_ns(1));
  }

  void expire(FlowRate& flow, std::uint32_t timer, FlowTimers& timers) override {
    if (!has_started_) return;
    if (timer == alpha_timer) return update_alpha(timers);
    if (timer == decrease_timer) return decrease(flow, timers);
    increase(flow, timers);
  }

  bool is_steady() const override { return !has_started_; }
  void serialize(Archive& archive) override {
    archive(alpha_, target_, stage_, has_started_, alpha_is_due_, decrease_is_due_, silence_);
  }

 private:
  enum Timer : std::uint32_t { alpha_timer, decrease_timer, increase_timer };

  /// Time without an acknowledgement after which the timers stop. A flow whose packets are lost, or wait in a circle of
  /// pauses, would otherwise keep the simulation going for ever, and nobody would learn that it is stuck.
  static constexpr Time patience = Time::from_ns(1'000'000'000);

  void update_alpha(FlowTimers& timers) {
    const double gain = parameters_.gain;
    alpha_ = (1 - gain) * alpha_ + (alpha_is_due_ ? gain : 0);
    alpha_is_due_ = false;
    silence_ += parameters_.alpha_interval;
    has_started_ = silence_ < patience;
    if (has_started_) timers.start(alpha_timer, parameters_.alpha_interval);
  }
  void decrease(FlowRate& flow, FlowTimers& timers) {
    timers.start(decrease_timer, parameters_.decrease_interval);
    if (!decrease_is_due_) return;
    if (parameters_.clamps_target || stage_ > 0) target_ = flow.rate;
    flow.rate = std::max(parameters_.least_rate, whole_rate(static_cast<double>(flow.rate) * (1 - alpha_ / 2)));
    stage_ = 0;
    decrease_is_due_ = false;
    timers.start(increase_timer, parameters_.increase_interval);
  }
  void increase(FlowRate& flow, FlowTimers& timers) {
    timers.start(increase_timer, parameters_.increase_interval);
    const std::uint32_t steps = parameters_.fast_recovery_steps;
    if (stage_ >= steps)
      target_ = std::min(target_ + (stage_ == steps ? parameters_.additive_increase : parameters_.fast_increase),
                         flow.line_rate);
    flow.rate = flow.rate / 2 + target_ / 2;
    ++stage_;
  }

  const ControlParameters& parameters_;
  double alpha_ = 1;
  std::uint64_t target_ = 0;
  std::uint32_t stage_ = 0;
  Time silence_;  ///< time since the last acknowledgement, in whole intervals of alpha
  bool has_started_ = false, alpha_is_due_ = false, decrease_is_due_ = false;
};

}  // namespace

extern const ControlType dcqcn_control;
constinit const ControlType dcqcn_control{
    .name = "dcqcn",
    .help = "rates fall with marks and recover with time",
    .make = [](const ControlParameters& parameters) -> std::unique_ptr<Control> {
      return std::make_unique<Dcqcn>(parameters);
    },
    .needs_marks = true,
};

}  // namespace orrery::network
