#pragma once

#include <cstdint>

#include "orrery/base/archive.hpp"
#include "orrery/base/time.hpp"
#include "orrery/network/packet_rules.hpp"

namespace orrery::network {

/// The constants of NSCC, scaled from the specification's to the round trip and the rate of a network.
struct NsccParameters {
  NsccParameters(Time round_trip_of_network, std::uint64_t rate, std::uint32_t mtu, std::uint32_t payload,
                 bool trimming);
  /// Returns the bytes that a round trip takes at the line rate.
  std::int64_t product(Time round_trip) const;

  Time round_trip;  ///< round trip of the longest path
  Time target;      ///< delay beyond a round trip that flows aim at
  std::uint64_t line_rate;
  std::int64_t mtu;
  double proportional_gain = 0;  ///< bytes^2 of increase per byte and ps below the target
  double fair_gain = 0;          ///< bytes^2 of increase per byte
  double step = 0;               ///< bytes per round trip
  double fast_gain = 0;          ///< bytes per byte
};

/// The window of one sender: network-signalled congestion control of Ultra Ethernet, as in uet-htsim. Sizes are bytes
/// on the wire.
class Nscc {
 public:
  Nscc(const NsccParameters& parameters, Time now);

  std::int64_t window() const { return state_.window; }
  std::int64_t most() const { return state_.most; }
  Time base() const { return state_.base; }  ///< least round trip
  Time mean_delay() const { return state_.mean_delay; }
  const NsccParameters& parameters() const { return *parameters_; }

  /// Counts bytes that have come to the receiver.
  void count(std::int64_t bytes);
  void see_round_trip(Time sample);
  /// Takes a delay beyond the least round trip into the mean.
  void see_delay(Time delay, bool is_marked);
  void acknowledge(Time now, bool is_marked, Time delay, std::int64_t bytes, std::int64_t in_flight);
  /// Notes that a packet was trimmed.
  void reject(Time now, std::int64_t bytes, std::int64_t in_flight);
  void time_out(std::int64_t bytes);
  void serialize(Archive& archive) { archive(state_, growth_, adaptation_); }

 private:
  struct State {
    std::int64_t window = 0, most = 0;
    Time base, mean_delay, last_adjustment, last_cut;
  };
  struct Growth {
    std::int64_t increase = 0;            ///< bytes times the window
    std::int64_t received = 0;            ///< bytes since the last adjustment
    std::int64_t bytes_of_low_delay = 0;  ///< bytes in a row whose delay was low
    std::int64_t is_fast = 0;
  };
  struct Adaptation {
    std::int64_t achieved = 0;  ///< bytes that came since the last one
    std::int64_t to_ignore = 0, ignored = 0;
    Time end = Time::from_ps(-1);
    std::int64_t is_due = 0;
  };

  std::int64_t most_of(Time round_trip) const;
  bool adapt(Time now, bool is_loss, bool is_marked, Time delay, std::int64_t in_flight);
  void grow(Time delay, std::int64_t bytes);
  void cut(Time now);
  void bound();

  const NsccParameters* parameters_;
  State state_;
  Growth growth_;
  Adaptation adaptation_;
};

}  // namespace orrery::network
