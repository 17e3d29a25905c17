#include "packet/transports/nscc.hpp"

#include <algorithm>

namespace orrery::network {
namespace {

constexpr double weight_of_sample = 0.0125, least_cut = 0.5, cut_gain = 0.8;
constexpr Time low_delay = Time::from_ns(1000);
// The rate and the round trip that the constants of the specification are for.
constexpr double reference_rate = 100e9, reference_round_trip_ps = 12e6;

Time whole_ps(double ps) { return Time::from_ps(static_cast<std::int64_t>(ps)); }

}  // namespace

NsccParameters::NsccParameters(Time round_trip_of_network, std::uint64_t rate, std::uint32_t packet,
                               std::uint32_t payload, bool trimming)
    : round_trip(round_trip_of_network),
      target(trimming ? whole_ps(static_cast<double>(round_trip.ps()) * 0.75) : round_trip),
      line_rate(rate),
      mtu(packet) {
  const double scale =
      static_cast<double>(product(round_trip)) / (reference_rate / 8 * reference_round_trip_ps * 1e-12);
  const double target_share = static_cast<double>(target.ps()) / reference_round_trip_ps;
  proportional_gain = 4.0 * payload * scale * target_share / static_cast<double>(target.ps());
  fair_gain = 5.0 * payload * scale;
  step = 0.15 * payload * scale;
  fast_gain = 0.25 * scale;
}

std::int64_t NsccParameters::product(Time time) const {
  return static_cast<std::int64_t>(static_cast<unsigned __int128>(time.ps()) * line_rate / 8'000'000'000'000U);
}

Nscc::Nscc(const NsccParameters& parameters, Time now) : parameters_(&parameters) {
  state_.base = parameters.round_trip;
  state_.most = most_of(state_.base);
  state_.window = state_.most;
  state_.last_adjustment = now;
  state_.last_cut = Time::from_ps(now.ps() - parameters.round_trip.ps() - 1);
}

/// Returns the largest window for a round trip. It holds a packet, however short the round trip is.
std::int64_t Nscc::most_of(Time round_trip) const {
  return std::max(parameters_->product(round_trip) * 3 / 2, parameters_->mtu);
}

void Nscc::count(std::int64_t bytes) {
  adaptation_.achieved += bytes;
  adaptation_.ignored += bytes;
  growth_.received += bytes;
}

void Nscc::see_round_trip(Time sample) {
  if (sample >= state_.base) return;
  state_.base = sample;
  state_.most = most_of(sample);
}

void Nscc::see_delay(Time delay, bool is_marked) {
  const double seen = !is_marked && delay > parameters_->target ? static_cast<double>(state_.base.ps()) * 0.25
                                                                : static_cast<double>(delay.ps());
  state_.mean_delay =
      whole_ps(weight_of_sample * seen + (1 - weight_of_sample) * static_cast<double>(state_.mean_delay.ps()));
}

/// Sets the window to the bytes that came within a delay of the target, if these are few and much was lost or late.
/// Returns whether the acknowledgement has no other effect.
bool Nscc::adapt(Time now, bool is_loss, bool is_marked, Time delay, std::int64_t in_flight) {
  bool is_done = false;
  if (adaptation_.ignored < adaptation_.to_ignore && is_marked) {
    is_done = true;
  } else if (now > adaptation_.end) {
    const bool is_late = adaptation_.is_due || is_loss || delay > parameters_->target * 4;
    if (adaptation_.end >= Time::zero() && is_late && adaptation_.achieved < state_.most / 8) {
      state_.window = std::max<std::int64_t>(adaptation_.achieved, parameters_->mtu);
      adaptation_.to_ignore = in_flight;
      adaptation_.ignored = 0;
      adaptation_.is_due = false;
      is_done = true;
    }
    adaptation_.achieved = 0;
    adaptation_.end = now + state_.base + parameters_->target;
  }
  if (is_done) growth_.increase = growth_.received = 0;
  return is_done;
}

void Nscc::acknowledge(Time now, bool is_marked, Time delay, std::int64_t bytes, std::int64_t in_flight) {
  if (adapt(now, false, is_marked, delay, in_flight)) return;
  if (!is_marked && delay >= parameters_->target)
    growth_.increase += static_cast<std::int64_t>(parameters_->fair_gain * static_cast<double>(bytes));
  else if (!is_marked)
    grow(delay, bytes);
  else if (delay >= parameters_->target)
    cut(now);
  bound();
  if (growth_.received > 8 * parameters_->mtu || now - state_.last_adjustment > parameters_->round_trip) {
    state_.window += growth_.increase / state_.window;
    if (now - state_.last_adjustment >= parameters_->round_trip) {
      state_.window += static_cast<std::int64_t>(parameters_->step);
      state_.last_adjustment = now;
    }
    growth_.increase = growth_.received = 0;
  }
  bound();
}

/// Lets the window grow with what the delay leaves of the target, and fast after a window of hardly any delay.
void Nscc::grow(Time delay, std::int64_t bytes) {
  growth_.bytes_of_low_delay = delay < low_delay ? growth_.bytes_of_low_delay + bytes : 0;
  growth_.is_fast = delay < low_delay && (growth_.is_fast || growth_.bytes_of_low_delay > state_.window);
  if (growth_.is_fast) {
    state_.window += static_cast<std::int64_t>(parameters_->fast_gain * static_cast<double>(bytes));
    return;
  }
  const auto left = static_cast<double>((parameters_->target - delay).ps());
  growth_.increase += static_cast<std::int64_t>(parameters_->proportional_gain * static_cast<double>(bytes) * left);
}

/// Cuts the window, once per round trip, by how far the mean delay is beyond the target.
void Nscc::cut(Time now) {
  growth_.is_fast = false;
  growth_.bytes_of_low_delay = 0;
  if (state_.mean_delay <= parameters_->target || now - state_.last_cut <= state_.base) return;
  const auto beyond = static_cast<double>((state_.mean_delay - parameters_->target).ps());
  const double left = std::max(1 - cut_gain * beyond / static_cast<double>(state_.mean_delay.ps()), least_cut);
  state_.window = static_cast<std::int64_t>(static_cast<double>(state_.window) * left);
  state_.last_cut = now;
}

void Nscc::reject(Time now, std::int64_t bytes, std::int64_t in_flight) {
  adaptation_.ignored += bytes;
  see_delay(parameters_->round_trip, true);
  adaptation_.is_due = true;
  if (adapt(now, true, true, Time::zero(), in_flight)) return;
  state_.window -= bytes;
  bound();
}

void Nscc::time_out(std::int64_t bytes) {
  state_.window = std::max<std::int64_t>(state_.window - bytes, parameters_->mtu);
}

void Nscc::bound() {
  state_.window = std::max<std::int64_t>(state_.window, parameters_->mtu);
  state_.window = std::min(state_.window, state_.most);
}

extern const ControlType nscc_control;
constinit const ControlType nscc_control{
    .name = "nscc",
    .help = "windows of the sender by delays, marks and losses (transport uec)",
    .transport = "uec",
};

extern const ControlType rccc_control;
constinit const ControlType rccc_control{
    .name = "rccc",
    .help = "credit of the receiver (transport uec)",
    .transport = "uec",
};

}  // namespace orrery::network
