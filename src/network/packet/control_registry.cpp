#include "orrery/network/packet_rules.hpp"

namespace orrery::network {

// Each is in a file of its own in src/network/packet/controls.
extern const ControlType no_control, dcqcn_control, dctcp_control, hpcc_control, timely_control, swift_control,
    nscc_control, rccc_control, newreno_control, cubic_control;

std::span<const ControlType* const> ControlType::registry() {
  static constexpr const ControlType* controls[] = {&no_control,      &dcqcn_control, &dctcp_control, &hpcc_control,
                                                    &timely_control,  &swift_control, &nscc_control,  &rccc_control,
                                                    &newreno_control, &cubic_control};
  return controls;
}

Time transmission_time(std::uint64_t bytes, std::uint64_t rate, Time tick) {
  const auto unit = static_cast<std::uint64_t>(1'000'000'000'000 / tick.ps());  // ticks per second
  const auto doubled = static_cast<unsigned __int128>(bytes) * 16 * unit + rate;
  const unsigned __int128 ticks = doubled / (2 * static_cast<unsigned __int128>(rate));
  const auto most = static_cast<unsigned __int128>(Time::max().ps());
  return ticks >= most ? Time::max() : tick * static_cast<std::int64_t>(ticks);
}

Time transmission_time(std::uint64_t bytes, std::uint64_t rate, const PacketRules& rules) {
  if (!rules.transport->has_connections) return transmission_time(bytes, rate, rules.tick);
  const unsigned __int128 ps = static_cast<unsigned __int128>(bytes) * 8'000'000'000'000U / rate;
  const auto most = static_cast<unsigned __int128>(Time::max().ps());
  return ps >= most ? Time::max() : Time::from_ps(static_cast<std::int64_t>(ps));
}

}  // namespace orrery::network
