#include <algorithm>

#include "packet/control.hpp"
#include "packet/transports/tcp_control.hpp"

namespace orrery::network {
namespace {

/// Alizadeh et al., "Data center TCP", SIGCOMM 2010, on rates as in the RoCE modules of ns-3. Uses the least rate, the
/// additive increase and the gain.
class Dctcp final : public Control {
 public:
  explicit Dctcp(const ControlParameters& parameters) : parameters_(parameters) {}

  void acknowledge(FlowRate& flow, const Acknowledgement& acknowledgement, FlowTimers&) override {
    num_marked_ += acknowledgement.is_marked ? 1 : 0;
    const bool is_new_round = acknowledgement.sequence > round_end_;
    if (is_new_round) begin_round(flow, acknowledgement.sequence);
    if (has_reduced_ && acknowledgement.sequence > reduction_end_) has_reduced_ = false;
    if (acknowledgement.is_marked && !has_reduced_) {
      flow.rate = std::max(parameters_.least_rate, whole_rate(static_cast<double>(flow.rate) * (1 - alpha_ / 2)));
      has_reduced_ = true;
      reduction_end_ = flow.sent;
    }
    if (!has_reduced_ && is_new_round) flow.rate = std::min(flow.line_rate, flow.rate + parameters_.additive_increase);
  }

  void serialize(Archive& archive) override {
    archive(alpha_, num_marked_, batch_, round_end_, reduction_end_, has_reduced_);
  }

 private:
  void begin_round(const FlowRate& flow, std::uint64_t sequence) {
    const bool is_first = round_end_ == 0;
    round_end_ = flow.sent;
    if (is_first) {
      batch_ = flow.sent / flow.payload + 1;
      return;
    }
    const double share = std::min(1.0, static_cast<double>(num_marked_) / static_cast<double>(batch_));
    alpha_ = (1 - parameters_.gain) * alpha_ + parameters_.gain * share;
    num_marked_ = 0;
    batch_ = (flow.sent - std::min(flow.sent, sequence)) / flow.payload + 1;
  }

  const ControlParameters& parameters_;
  double alpha_ = 1;
  std::uint64_t num_marked_ = 0, batch_ = 1, round_end_ = 0, reduction_end_ = 0;
  bool has_reduced_ = false;
};

}  // namespace

extern const ControlType dctcp_control;
constinit const ControlType dctcp_control{
    .name = "dctcp",
    .help = "rates fall once a round with the share of marked packets, and rise by a step in rounds without marks",
    .make = [](const ControlParameters& parameters) -> std::unique_ptr<Control> {
      return std::make_unique<Dctcp>(parameters);
    },
    .needs_marks = true,
    .make_tcp = make_tcp_dctcp,
};

}  // namespace orrery::network
