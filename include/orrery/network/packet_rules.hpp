#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "orrery/base/quantity.hpp"
#include "orrery/base/registry.hpp"
#include "orrery/base/time.hpp"
#include "orrery/network/delivery_rules.hpp"

namespace orrery::network {

class Control;
struct ControlParameters;

/// How hosts send the packets of a message, and again those that were lost.
enum class PacketTransport : std::uint8_t {
  roce,  ///< as RDMA over Ethernet does it, by DeliveryRules
  uec,   ///< as Ultra Ethernet does it: packets take many paths in any order, and only lost ones are sent again
};

/// A congestion control of the registry.
struct ControlType {
  std::string_view name;  ///< as configurations spell it
  std::string_view help;  ///< one line
  /// Makes the control of one flow. Null for flows that a window alone holds back.
  std::unique_ptr<Control> (*make)(const ControlParameters& parameters) = nullptr;
  bool needs_marks = false;     ///< rates change by marks only
  bool uses_telemetry = false;  ///< switches append to each packet what its port does
  bool sets_window = false;     ///< it sets the windows of its flows, and uses the number of links on their paths
  PacketTransport transport = PacketTransport::roce;  ///< whose flows it controls

  /// Returns all controls: the table of src/network/packet/control_registry.cpp.
  static std::span<const ControlType* const> registry();
};

using ControlName = Registered<ControlType>;

/// Returns the name of a control as configurations spell it.
inline std::string_view name(ControlName control) { return control.name(); }

/// The parameters of congestion controls. Each control uses those that its source (src/network/packet/controls) names.
/// Rates are bits per second.
struct ControlParameters {
  std::uint64_t least_rate = 100'000'000;
  std::uint64_t additive_increase = 50'000'000;
  std::uint64_t fast_increase = 100'000'000;
  double gain = 1.0 / 256;
  Time alpha_interval = Time::from_ns(1000);        ///< DCQCN
  Time decrease_interval = Time::from_ns(4000);     ///< DCQCN
  Time increase_interval = Time::from_ns(900'000);  ///< DCQCN
  std::uint32_t fast_recovery_steps = 1;            ///< DCQCN
  bool clamps_target = false;                       ///< DCQCN
  double target_utilisation = 0.95;                 ///< HPCC
  std::uint32_t increase_stages = 0;                ///< HPCC: additive steps between multiplicative ones
  std::uint32_t telemetry_unit = 1;                 ///< HPCC: multiplies the units of bytes and queues in packets

  friend bool operator==(const ControlParameters&, const ControlParameters&) = default;
};

/// When a switch marks packets, by the bytes that wait for the port as a packet leaves it: never up to `least`, always
/// above `most`, between them with a probability that rises to `probability`.
struct MarkThresholds {
  std::uint64_t least = 0, most = 0;
  double probability = 0;

  friend bool operator==(const MarkThresholds&, const MarkThresholds&) = default;
};

/// When a message counts as there.
enum class PacketCompletion : std::uint8_t {
  last_byte,     ///< when its last byte is at the receiver
  acknowledged,  ///< when the sender has the last acknowledgement, for the receiver too
};

/// How many bytes of payload a flow may have sent that are not acknowledged.
struct PacketWindow {
  enum class Kind : std::uint8_t {
    path,     ///< as many as fill its own path there and back
    largest,  ///< as many as fill the longest path of any two hosts
    none,     ///< any number
    fixed,
  };
  Kind kind = Kind::path;
  std::uint64_t bytes = 0;  ///< if it is fixed

  friend bool operator==(const PacketWindow&, const PacketWindow&) = default;
};

/// What packets take on links, in bytes.
struct PacketSizes {
  std::uint32_t payload = 1000;  ///< of a full data packet, without its header
  std::uint32_t header = 36;     ///< of a data packet
  std::uint32_t acknowledgement = 48;
  std::uint32_t pause_frame = 31;

  /// Returns the bytes of a data packet with a whole payload.
  std::uint64_t full_packet() const { return std::uint64_t{payload} + header; }

  friend bool operator==(const PacketSizes&, const PacketSizes&) = default;
};

/// How a switch divides its buffer, pauses and marks.
struct SwitchRules {
  std::uint64_t buffer = 32U << 20U;  ///< bytes of each switch, shared by its ports
  bool pauses = true;                 ///< switches pause the ports before them when their buffers fill (PFC)
  std::uint32_t share_shift = 3;      ///< a port may fill 1 / 2^share_shift of the free shared buffer
  std::uint32_t reserve = 4096;       ///< bytes of buffer of each port of its own
  std::uint32_t resume_offset = 3072;
  std::optional<std::uint64_t> headroom;  ///< bytes of each port for what comes after a pause; none: 1.5 round trips
  std::map<std::uint64_t, MarkThresholds> marks;  ///< by rate; no marks at ports of other rates

  friend bool operator==(const SwitchRules&, const SwitchRules&) = default;
};

/// How UEC chooses the entropy of a packet, by which switches choose between equal paths.
enum class Spraying : std::uint8_t {
  none,       ///< one for the whole flow
  oblivious,  ///< all in turn
  bitmap,     ///< all in turn, but for those that marks and losses speak against
  reps,       ///< again those that came back without a mark, else at random
  mixed,      ///< again those that came back without a mark, else as bitmap
};

/// The rules of UEC, beside those that all transports have.
struct UecRules {
  PacketTransport transport = PacketTransport::roce;
  Spraying spraying = Spraying::mixed;
  bool trimming = true;                ///< switches cut what does not fit down to its header, and drop nothing else
  std::optional<std::uint64_t> queue;  ///< bytes of data that may wait for a port; none: by the round trip

  friend bool operator==(const UecRules&, const UecRules&) = default;
};

/// Credits for the bytes that a link may send. They take the place of pauses (docs/packet-network.md, Credits).
struct CreditRules {
  static constexpr std::uint32_t most_channels = 16;

  bool uses_credits = false;
  /// Bytes of each channel of a link; none: just enough for a link never to wait.
  std::optional<std::uint64_t> credits;
  std::uint32_t virtual_channels = 1;

  friend bool operator==(const CreditRules&, const CreditRules&) = default;
};

/// The rules of a packet network (docs/packet-network.md).
struct PacketRules : PacketSizes, SwitchRules, DeliveryRules, UecRules, CreditRules {
  PacketRules();  // in a source, because g++ 12 takes `marks` for uninitialised where it can see the constructor

  ControlName control;
  ControlParameters parameters;
  PacketWindow window;
  bool window_follows_rate = true;  ///< a flow's window shrinks with its rate
  PacketCompletion completion = PacketCompletion::last_byte;
  Time tick = Time::from_ps(1);  ///< transmission times are rounded to multiples of it
  std::uint32_t seed = 0;        ///< of the draws of marks, and of equal next hops
  bool fast_forward = true;      ///< periods of long transfers that repeat themselves are skipped

  /// Returns the bytes of the largest packet that needs credit.
  std::uint64_t largest_packet() const { return std::max<std::uint64_t>(full_packet(), acknowledgement); }
  /// Returns whether the last acknowledgement of a message may be repeated.
  bool tells_again() const { return transport == PacketTransport::uec || repeats(); }
  /// Returns whether the ports of a switch share its buffer; else each queue or link has bytes of its own.
  bool keeps_buffers() const { return transport == PacketTransport::roce && !uses_credits; }
  bool has_enough_credits() const { return !uses_credits || !credits || *credits >= largest_packet(); }

  friend bool operator==(const PacketRules&, const PacketRules&) = default;
};

/// Rules as other programs set them by default.
struct PacketPreset {
  std::string_view name;  ///< as configurations spell it
  std::string_view help;  ///< one line
  PacketRules (*make)();

  static std::span<const PacketPreset* const> registry();
};

using PacketPresetName = Registered<PacketPreset>;

/// Returns what a packet takes at a rate, rounded to the nearest multiple of the tick; max() if it does not fit.
Time transmission_time(std::uint64_t bytes, std::uint64_t rate, Time tick);

}  // namespace orrery::network
