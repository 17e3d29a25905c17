#pragma once

#include <cstdint>
#include <memory>

#include "orrery/base/archive.hpp"
#include "orrery/base/time.hpp"
#include "orrery/network/packet_rules.hpp"
#include "packet.hpp"

namespace orrery::network {

/// The part of a flow that its congestion control sees and changes.
struct FlowRate {
  std::uint64_t rate = 0;  ///< bits per second, whole
  std::uint64_t line_rate = 0;
  std::uint64_t sent = 0;          ///< bytes of payload
  std::uint64_t acknowledged = 0;  ///< bytes of payload
  std::uint64_t window = 0;        ///< bytes; 0: none
  Time round_trip;                 ///< round trip of a packet that is alone
  std::uint32_t hops = 0;          ///< links of the path; 0 unless the control sets the window
  std::uint32_t payload = 0;       ///< bytes of payload of a full packet
  /// The last packet's transmission time at the new rate counts at once for when the next one may leave.
  bool is_effective_at_once = false;
};

/// An acknowledgement, as the sender gets it.
struct Acknowledgement {
  std::uint64_t sequence = 0;  ///< first byte that has not come
  bool is_marked = false;
  Time stamp;                            ///< time at which the data left
  const Telemetry* telemetry = nullptr;  ///< null unless the control uses it
  std::uint64_t bytes = 0;               ///< bytes of payload that no earlier acknowledgement had
};

/// The clock and the timers of one flow.
class FlowTimers {
 public:
  virtual Time now() const = 0;
  /// Starts a timer. A running timer with this number is replaced.
  virtual void start(std::uint32_t timer, Time delay) = 0;

 protected:
  ~FlowTimers() = default;
};

/// The congestion control of one flow.
class Control {
 public:
  static constexpr std::uint32_t most_timers = 3;

  virtual ~Control() = default;
  virtual void acknowledge(FlowRate& flow, const Acknowledgement& acknowledgement, FlowTimers& timers) = 0;
  virtual void expire(FlowRate&, std::uint32_t, FlowTimers&) {}
  /// Nothing has come back for so long that the flow sends again what is not acknowledged.
  virtual void lose(FlowRate&, FlowTimers&) {}
  /// Returns whether acknowledgements without marks leave it and its flow as they are, and no timer of it is running.
  virtual bool is_steady() const { return false; }
  /// Writes what it has kept, or reads it.
  virtual void serialize(Archive& archive) = 0;
};

/// Returns a rate as whole bits per second, the fraction dropped.
inline std::uint64_t whole_rate(double rate) { return static_cast<std::uint64_t>(rate); }

}  // namespace orrery::network
