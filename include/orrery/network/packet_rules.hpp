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
#include "orrery/network/tcp_rules.hpp"

namespace orrery::network {

class Control;
struct ControlParameters;
class QueueDiscipline;
class TcpControl;
struct NodeServices;
struct TransportSide;

/// A queue discipline of the registry: which packets wait for the ports of switches, and which are dropped or marked.
struct DisciplineType {
  std::string_view name;  ///< spelling in configurations
  std::string_view help;  ///< one line
  /// Makes the queues of one rank. Null if the transport that has them makes them.
  std::unique_ptr<QueueDiscipline> (*make)(const NodeServices& services) = nullptr;
  bool shares_buffers = false;  ///< whether the ports of a switch share its buffer
  bool has_queues = false;      ///< whether `queue` limits the bytes that wait for each port
  bool marks = false;           ///< whether it sets ECN marks

  /// Returns all disciplines: the table of src/network/packet/ports/discipline_registry.cpp.
  static std::span<const DisciplineType* const> registry();
};

using DisciplineName = Registered<DisciplineType>;

/// A transport of the registry: how hosts send the packets of a message, and again those that were lost.
struct TransportType {
  std::string_view name;  ///< spelling in configurations
  std::string_view help;  ///< one line
  /// Makes the hosts of one rank, and the queues that go with them.
  TransportSide (*make)(const NodeServices& services);
  bool has_own_queues = false;                    ///< whether it brings its queues; otherwise `discipline` says which
  bool sprays = false;                            ///< whether its hosts send packets of a message on several paths
  bool tells_again = false;                       ///< whether it may repeat the last acknowledgement of a message
  std::string_view discipline = "shared-buffer";  ///< name of the discipline that it has by default
  bool has_connections = false;  ///< whether messages share connections, whose packets have the sizes of TcpRules

  /// Returns all transports: the table of src/network/packet/transports/transport_registry.cpp.
  static std::span<const TransportType* const> registry();
};

using TransportName = Registered<TransportType>;

/// A congestion control of the registry.
struct ControlType {
  std::string_view name;  ///< spelling in configurations
  std::string_view help;  ///< one line
  /// Makes the control of one flow. Null for flows that a window alone holds back.
  std::unique_ptr<Control> (*make)(const ControlParameters& parameters) = nullptr;
  bool needs_marks = false;     ///< whether rates change by ECN marks only
  bool uses_telemetry = false;  ///< whether switches append telemetry of their ports to each packet
  bool sets_window = false;     ///< whether it sets the windows of its flows, by the number of links on their paths
  /// Longest round trip in ns over one link, with one packet under way, that does not make it slow a flow; 0: any.
  double most_round_trip_ns = 0;
  std::string_view transport = "roce";  ///< name of the transport whose flows it controls
  /// Makes the control of one connection of TCP. Null if it controls none.
  std::unique_ptr<TcpControl> (*make_tcp)() = nullptr;

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
  std::uint32_t telemetry_unit = 1;                 ///< HPCC: factor of the units of bytes and queues in packets

  friend bool operator==(const ControlParameters&, const ControlParameters&) = default;
};

/// When a switch sets ECN marks, by the bytes that wait for the port as a packet leaves it: never up to `least`, always
/// above `most`, and between them with a probability that rises to `probability`.
struct MarkThresholds {
  std::uint64_t least = 0, most = 0;
  double probability = 0;

  friend bool operator==(const MarkThresholds&, const MarkThresholds&) = default;
};

/// When a message is complete.
enum class PacketCompletion : std::uint8_t {
  last_byte,     ///< last byte at the receiver
  acknowledged,  ///< last acknowledgement at the sender, also for the receiver
};

/// The limit of the bytes of payload that a flow may have sent without acknowledgement.
struct PacketWindow {
  enum class Kind : std::uint8_t {
    path,     ///< bytes that fill the flow's own path there and back
    largest,  ///< bytes that fill the longest path of any two hosts
    none,     ///< unlimited
    fixed,
  };
  Kind kind = Kind::path;
  std::uint64_t bytes = 0;  ///< bytes of a fixed window

  friend bool operator==(const PacketWindow&, const PacketWindow&) = default;
};

/// Sizes of packets on links, in bytes.
struct PacketSizes {
  std::uint32_t payload = 1000;  ///< payload of a full data packet
  std::uint32_t header = 36;     ///< header of a data packet
  std::uint32_t acknowledgement = 48;
  std::uint32_t pause_frame = 31;

  /// Returns the bytes of a data packet with a whole payload.
  std::uint64_t full_packet() const { return std::uint64_t{payload} + header; }

  friend bool operator==(const PacketSizes&, const PacketSizes&) = default;
};

/// The buffer of a switch, PFC pauses and ECN marks.
struct SwitchRules {
  std::uint64_t buffer = 32U << 20U;      ///< bytes of each switch, shared by its ports
  bool pauses = true;                     ///< PFC: whether switches pause the ports before them when their buffers fill
  std::uint32_t share_shift = 3;          ///< n: a port may fill 1 / 2^n of the free shared buffer
  std::uint32_t reserve = 4096;           ///< bytes of buffer that belong to each port alone
  std::uint32_t resume_offset = 3072;     ///< bytes below the threshold of a pause at which the peer resumes
  std::optional<std::uint64_t> headroom;  ///< bytes of each port for packets after a pause; none: 1.5 round trips
  /// ECN thresholds by rate in b/s. Other rates have those of `any_rate`, or no marks.
  std::map<std::uint64_t, MarkThresholds> marks;
  static constexpr std::uint64_t any_rate = 0;
  double mean_weight = 1;  ///< weight of the newest length of a queue in the mean by which `red` marks

  /// Returns the thresholds of ports of a rate; null if they mark nothing.
  const MarkThresholds* marks_at(std::uint64_t rate) const {
    auto found = marks.find(rate);
    if (found == marks.end()) found = marks.find(any_rate);
    return found == marks.end() ? nullptr : &found->second;
  }

  friend bool operator==(const SwitchRules&, const SwitchRules&) = default;
};

/// How UEC chooses the entropy of a packet, by which switches choose between equal paths.
enum class Spraying : std::uint8_t {
  none,       ///< one value for the whole flow
  oblivious,  ///< values in turn
  bitmap,     ///< values in turn, except values with recent marks and losses
  reps,       ///< values that came back without a mark, otherwise random values
  mixed,      ///< values that came back without a mark, otherwise values as with bitmap
};

/// The rules of UEC, in addition to the rules of all transports.
struct UecRules {
  Spraying spraying = Spraying::mixed;
  bool trimming = true;  ///< whether switches cut packets that do not fit to headers; else they drop them
  /// Bytes that may wait for a port; none: with UEC by the round trip, otherwise `usual_queue`.
  std::optional<std::uint64_t> queue;
  static constexpr std::uint64_t usual_queue = 150'000;

  friend bool operator==(const UecRules&, const UecRules&) = default;
};

/// Credits for the bytes that a link may send. They replace pauses (docs/packet-network.md, Credits).
struct CreditRules {
  static constexpr std::uint32_t most_channels = 16;

  bool uses_credits = false;
  /// Bytes of each channel of a link; none: just enough for a link never to wait.
  std::optional<std::uint64_t> credits;
  std::uint32_t virtual_channels = 1;

  friend bool operator==(const CreditRules&, const CreditRules&) = default;
};

/// How switches reduce (docs/reduction.md).
struct ReductionRules {
  std::uint32_t trees = 1;          ///< trees of a communicator, which its operations take in turn
  std::uint32_t most_trees = 1;     ///< trees that a switch takes part in at the most
  std::uint32_t operations = 1;     ///< operations that a switch carries out at a time
  std::uint32_t slots = 256;        ///< packets of an operation that a host may have sent and not got back
  Time delay = Time::from_ns(100);  ///< time from the last contribution to a packet to the begin of its way on

  friend bool operator==(const ReductionRules&, const ReductionRules&) = default;
};

/// The rules of a packet network (docs/packet-network.md).
struct PacketRules : PacketSizes, SwitchRules, DeliveryRules, UecRules, CreditRules {
  PacketRules();  // in a source, because g++ 12 takes `marks` for uninitialised where it can see the constructor

  TransportName transport;
  std::optional<DisciplineName> discipline;  ///< none: that of the transport
  TcpRules tcp;
  ControlName control;
  ControlParameters parameters;
  PacketWindow window;
  bool window_follows_rate = true;  ///< whether a flow's window shrinks with its rate
  PacketCompletion completion = PacketCompletion::last_byte;
  Time tick = Time::from_ps(1);  ///< unit to which transmission times are rounded
  std::uint32_t seed = 0;        ///< seed of the draws of marks, and of equal next hops
  bool fast_forward = true;      ///< whether repeated periods of long transfers are skipped
  ReductionRules reduction;

  /// Returns whether switches lose no packet for lack of room, and can therefore reduce.
  bool can_reduce() const { return keeps_buffers() && pauses; }
  /// Returns the bytes of the largest packet that needs credit.
  std::uint64_t largest_packet() const { return std::max<std::uint64_t>(full_packet(), acknowledgement); }
  /// Returns whether the last acknowledgement of a message may be repeated.
  bool tells_again() const { return transport->tells_again || repeats(); }
  /// Returns whether the ports of a switch share its buffer. Otherwise each queue or link has bytes of its own.
  bool keeps_buffers() const { return queues()->shares_buffers && !uses_credits; }
  DisciplineName queues() const { return discipline.value_or(DisciplineName(transport->discipline)); }
  /// Returns the bytes that may wait for a port, with a discipline that limits them.
  std::uint64_t queue_limit() const { return queue.value_or(usual_queue); }
  /// Returns the rules with the sizes of packets that the transport has.
  PacketRules with_sizes() const;
  bool has_enough_credits() const { return !uses_credits || !credits || *credits >= largest_packet(); }

  friend bool operator==(const PacketRules&, const PacketRules&) = default;
};

/// Rules as other programs set them by default.
struct PacketPreset {
  std::string_view name;  ///< spelling in configurations
  std::string_view help;  ///< one line
  PacketRules (*make)();

  static std::span<const PacketPreset* const> registry();
};

using PacketPresetName = Registered<PacketPreset>;

/// Returns the time of a packet at a rate in b/s, rounded to the nearest multiple of the tick; max() if it is longer.
Time transmission_time(std::uint64_t bytes, std::uint64_t rate, Time tick);
/// Returns the time of a packet as the rules say. Packets of connections take whole picoseconds, rounded down.
Time transmission_time(std::uint64_t bytes, std::uint64_t rate, const PacketRules& rules);

}  // namespace orrery::network
