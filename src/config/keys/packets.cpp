#include <cmath>
#include <limits>

#include "keys.hpp"
#include "orrery/base/quantity_text.hpp"
#include "orrery/base/text.hpp"
#include "orrery/graphfile/ns3_config.hpp"
#include "packets.hpp"

namespace orrery::config {
namespace {

using network::PacketRules;
using network::PacketWindow;

constexpr std::string_view marks_expected =
    "rows [rate, least, most, probability] such as [100 Gb/s, 400 kB, 1600 kB, 0.2]";

/// The rate of a row of marks for all ports whose rate has no row.
constexpr std::string_view any_rate = "any";

/// What keeps switches from losing packets.
enum class FlowControl : std::uint8_t { pauses, credits, none };

/// Returns the names of a registry.
template <class Name>
const Words<Name>& registered() {
  static const Words<Name> words = [] {
    Words<Name> all;
    for (const auto entry : Name::all()) all.push_back({entry.name(), entry, entry->help});
    return all;
  }();
  return words;
}

const Words<network::PacketCompletion>& completions() {
  using network::PacketCompletion;
  static const Words<PacketCompletion> words = {
      {"last-byte", PacketCompletion::last_byte, "when its last byte is at the receiver"},
      {"acknowledged", PacketCompletion::acknowledged, "when its sender has the last acknowledgement"}};
  return words;
}

const Words<Time>& ticks() {
  static const Words<Time> words = {{"ps", Time::from_ps(1), "picoseconds"}, {"ns", Time::from_ns(1), "nanoseconds"}};
  return words;
}

const Words<PacketWindow>& windows() {
  static const Words<PacketWindow> words = {
      {"path", {PacketWindow::Kind::path}, "the bytes that fill the flow's path there and back"},
      {"largest", {PacketWindow::Kind::largest}, "the bytes that fill the longest path of the network"},
      {"none", {PacketWindow::Kind::none}, "no limit"}};
  return words;
}

/// Windows are words or sizes.
constinit const ValueKind<PacketWindow> window_kind = kind_of<PacketWindow>(
    [](const Limits&) {
      TypeInfo info = word<windows>().info();
      info.expected += ", or a size with its unit";
      info.range += ", or a size";
      return info;
    },
    [](const Limits&, const Value& value, const std::string& key, const Reading& reading) -> PacketWindow {
      const std::string text = as_text(value, key, "a word or a size");
      if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0])) == 0) return as_word(value, key, windows());
      return {PacketWindow::Kind::fixed, byte_count<std::uint64_t>(1).read(value, key, reading)};
    },
    [](const Limits&, const PacketWindow& window) {
      return window.kind == PacketWindow::Kind::fixed ? fmt::format("{} B", window.bytes)
                                                      : std::string(text_of(windows(), window));
    });

constexpr Handling<Configuration> preset_handling() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading&) {
    target.execution.network.packets = as_word(value, path, registered<network::PacketPresetName>())->make();
  }};
}

FlowControl flow_control_of(const PacketRules& rules) {
  if (rules.uses_credits) return FlowControl::credits;
  return rules.pauses ? FlowControl::pauses : FlowControl::none;
}

const Words<FlowControl>& flow_controls() {
  static const Words<FlowControl> words = {
      {"pauses", FlowControl::pauses, "switches pause the upstream ports when their buffers fill (PFC)"},
      {"credits", FlowControl::credits, "a packet is sent only if the end of its link has room for it"},
      {"none", FlowControl::none, "switches drop packets when their buffers are full"}};
  return words;
}

constexpr Handling<Configuration> flow_control_handling() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading&) {
            const FlowControl control = as_word(value, path, flow_controls());
            PacketRules& rules = target.execution.network.packets;
            rules.pauses = control == FlowControl::pauses;
            rules.uses_credits = control == FlowControl::credits;
          },
          [](const Configuration& target, std::string_view path, Writer& writer) {
            writer.put(path, std::string(text_of(flow_controls(), flow_control_of(target.execution.network.packets))));
          },
          [](const Configuration& a, const Configuration& b) {
            return flow_control_of(a.execution.network.packets) == flow_control_of(b.execution.network.packets);
          }};
}

constexpr Handling<Configuration> pauses_handling() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading& reading) {
    target.execution.network.packets.pauses = boolean().read(value, path, reading);
  }};
}

constexpr Handling<Configuration> marks_handling() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading& reading) {
            auto& marks = target.execution.network.packets.marks;
            marks.clear();
            if (value.kind == Value::Kind::sequence && value.items.empty()) return;
            for (const Value& row : as_list(value, path, marks_expected)) {
              if (row.kind != Value::Kind::sequence || row.items.size() != 4)
                throw Error(ErrorCode::bad_input, row.place(path), fmt::format("found {}", row.description()),
                            marks_expected);
              const auto bytes = byte_count<std::uint64_t>(0);
              network::MarkThresholds thresholds{bytes.read(row.items[1], path, reading),
                                                 bytes.read(row.items[2], path, reading),
                                                 as_number(row.items[3], path, "0 to 1")};
              if (thresholds.least > thresholds.most || thresholds.probability > 1)
                throw Error(ErrorCode::bad_input, row.place(path),
                            "found a least threshold above the most, or a probability above 1", marks_expected);
              const bool is_any = row.items[0].kind == Value::Kind::scalar && row.items[0].text == any_rate;
              marks[is_any ? PacketRules::any_rate : as_bit_rate(row.items[0], path)] = thresholds;
            }
          },
          [](const Configuration& target, std::string_view path, Writer& writer) {
            std::vector<std::string> rows;
            for (const auto& [rate, marks] : target.execution.network.packets.marks)
              rows.push_back(
                  fmt::format("[{}, {} B, {} B, {}]",
                              rate == PacketRules::any_rate ? std::string(any_rate) : fmt::format("{} b/s", rate),
                              marks.least, marks.most, marks.probability));
            writer.put_list(path, rows);
          },
          [](const Configuration& a, const Configuration& b) {
            return a.execution.network.packets.marks == b.execution.network.packets.marks;
          }};
}

using Timeout = network::RetransmissionTimeout;

const Words<Timeout>& timeouts() {
  static const Words<Timeout> words = {
      {"none", {Timeout::Kind::none}, "it waits for ever: a message whose last packets are lost never ends"},
      {"path", {Timeout::Kind::path}, "16 round trips of a packet that is alone on the flow's path"}};
  return words;
}

const Words<network::Spraying>& sprayings() {
  using network::Spraying;
  static const Words<Spraying> words = {
      {"none", Spraying::none, "one path for each flow"},
      {"oblivious", Spraying::oblivious, "all of 64 values in turn"},
      {"bitmap", Spraying::bitmap, "all in turn, except those with ECN marks and losses"},
      {"reps", Spraying::reps, "those that came back without an ECN mark, otherwise at random"},
      {"mixed", Spraying::mixed, "those that came back without an ECN mark, otherwise as bitmap"}};
  return words;
}

const Words<network::PacketLoss>& losses() {
  using network::PacketLoss;
  static const Words<PacketLoss> words = {
      {"go-back-n", PacketLoss::go_back_n, "the receiver drops packets after a gap, and the sender goes back to it"},
      {"selective", PacketLoss::selective, "the receiver keeps them, and the sender retransmits missing packets only"}};
  return words;
}

/// Returns how a time-out is read: a word, or a time.
constexpr Handling<Configuration> timeout_handling() {
  const auto read = [](const Value& value, const std::string& path, Configuration& target, Reading& reading) {
    auto& timeout = target.execution.network.packets.timeout;
    const std::string text = as_text(value, path, "a word or a time");
    if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0])) == 0)
      timeout = as_word(value, path, timeouts());
    else
      timeout = {Timeout::Kind::fixed, duration().read(value, path, reading)};
  };
  const auto write = [](const Configuration& target, std::string_view path, Writer& writer) {
    const auto& timeout = target.execution.network.packets.timeout;
    if (!timeout) return;
    writer.put(path, timeout->kind == Timeout::Kind::fixed ? fmt::format("{} ps", timeout->time.ps())
                                                           : std::string(text_of(timeouts(), *timeout)));
  };
  return {read, write, [](const Configuration& a, const Configuration& b) {
            return a.execution.network.packets.timeout == b.execution.network.packets.timeout;
          }};
}

/// Returns what the documents say of a time-out.
TypeInfo timeout_info() {
  TypeInfo info = word<timeouts>().info();
  info.expected += ", or a time with its unit";
  info.range += ", or a time";
  return info;
}

/// Reads a configuration of ns-3. What it lacks is as the preset has it.
constexpr Handling<Configuration> file_handling() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading&) {
    const auto file = as_path(value, path);
    const std::string text = read_text(file, value.place(path));
    if (!graphfile::is_ns3_config(text))
      throw Error(ErrorCode::bad_input, value.place(path),
                  fmt::format("found {}, which is no configuration of ns-3", file.string()),
                  "lines such as CC_MODE 1 and PACKET_PAYLOAD_SIZE 1000");
    const auto read = graphfile::read_ns3_config(text, file, target.execution.network.packets);
    if (std::string notice = read.notice(file); !notice.empty()) target.warnings.push_back(std::move(notice));
  }};
}

constexpr Handling<Configuration> discipline_handling() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading&) {
            target.execution.network.packets.discipline = as_word(value, path, registered<network::DisciplineName>());
          },
          [](const Configuration& target, std::string_view path, Writer& writer) {
            if (const auto& discipline = target.execution.network.packets.discipline)
              writer.put(path, std::string(discipline->name()));
          },
          [](const Configuration& a, const Configuration& b) {
            return a.execution.network.packets.discipline == b.execution.network.packets.discipline;
          }};
}

constinit const ValueKind<std::uint64_t> bit_rate = kind_of<std::uint64_t>(
    [](const Limits&) { return bandwidth().info(); },
    [](const Limits&, const Value& value, const std::string& key, const Reading&) { return as_bit_rate(value, key); },
    [](const Limits&, std::uint64_t rate) { return fmt::format("{} b/s", rate); });

/// Returns how a number of bytes is read that follows from the network if it is not given.
template <auto member, std::uint64_t minimum>
constexpr Handling<Configuration> optional_bytes() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading& reading) {
            target.execution.network.packets.*member = byte_count<std::uint64_t>(minimum).read(value, path, reading);
          },
          [](const Configuration& target, std::string_view path, Writer& writer) {
            if (const auto& bytes = target.execution.network.packets.*member)
              writer.put(path, fmt::format("{} B", *bytes));
          },
          [](const Configuration& a, const Configuration& b) {
            return a.execution.network.packets.*member == b.execution.network.packets.*member;
          }};
}

bool sends_packets(const Configuration& c) { return c.execution.network.model->sends_packets; }

/// Returns the row of a key that has an effect in the packet network only, and is written only there.
template <class T, std::invocable<PacketRules&> Access, class... Facts>
consteval Row<Configuration> rule(Text path, Text help, Text example, Default otherwise, const Type<T>& type, Access,
                                  Facts... facts) {
  return {path,
          help,
          example,
          otherwise,
          type,
          [](auto& c) { return Access{}(c.execution.network.packets); },
          written_if(sends_packets),
          facts...};
}
template <class... Facts>
consteval Row<Configuration> rule(Text path, Text help, Text example, Default otherwise, ValueInfo values,
                                  Handling<Configuration> handling, Facts... facts) {
  return {path, help, example, otherwise, values, handling, written_if(sends_packets), facts...};
}

constexpr Row<Configuration> packet_rows[] = {
    rule("system.network.packets.preset", "defaults of the other keys of packets", "simai-ns3",
         Default::described("astra-sim-ns3, without marks"), word<registered<network::PacketPresetName>>(),
         preset_handling()),
    rule("system.network.packets.file",
         "configuration of ns-3 (config.txt of HPCC, ASTRA-sim or SimAI) whose values replace those of the "
         "preset",
         "config.txt", Default::none(), file(), file_handling(), see("packet-network.md, *Configurations of ns-3*")),
    rule("system.network.packets.payload", "bytes of the message in a full packet", "4096 B", Default::built_in(),
         byte_count<std::uint32_t>(1), [](auto& rules) { return &rules.payload; }),
    rule("system.network.packets.header", "bytes of a data packet besides its payload", "48 B", Default::built_in(),
         byte_count<std::uint32_t>(1), [](auto& rules) { return &rules.header; }),
    rule("system.network.packets.acknowledgement", "size of an acknowledgement, which each data packet has", "60 B",
         Default::built_in(), byte_count<std::uint32_t>(1), [](auto& rules) { return &rules.acknowledgement; }),
    rule("system.network.packets.pause-frame", "size of a PFC frame, which pauses or resumes a port", "43 B",
         Default::built_in(), byte_count<std::uint32_t>(1), [](auto& rules) { return &rules.pause_frame; }),
    rule("system.network.packets.time-unit", "unit to which transmission times are rounded", "ns", Default::built_in(),
         word<ticks>(), [](auto& rules) { return &rules.tick; }),
    rule("system.network.packets.buffer", "buffer of a switch, which its ports share", "16 MiB", Default::built_in(),
         byte_count<std::uint64_t>(1), [](auto& rules) { return &rules.buffer; }),
    rule("system.network.packets.share-shift",
         "n: a port may fill 1 / 2^n of the free buffer, one less for each doubling of its rate above that "
         "of hosts",
         "4", Default::built_in(), count(0, 30), [](auto& rules) { return &rules.share_shift; }),
    rule("system.network.packets.reserve", "buffer that belongs to each port", "8 KiB", Default::built_in(),
         byte_count<std::uint32_t>(0), [](auto& rules) { return &rules.reserve; }),
    rule("system.network.packets.resume-offset", "bytes below the threshold of PFC at which a port is resumed", "8 KiB",
         Default::built_in(), byte_count<std::uint32_t>(0), [](auto& rules) { return &rules.resume_offset; }),
    rule("system.network.packets.headroom", "buffer of each port for packets that arrive after a PFC pause", "100 kB",
         Default::described("1.5 round trips of the link"), byte_count<std::uint64_t>(0),
         optional_bytes<&PacketRules::headroom, 0>()),
    rule("system.network.packets.marks",
         "rows [rate, least, most, probability]: ports of this rate set the ECN mark of packets that leave more bytes "
         "behind than `least`, with a probability that rises up to `most`; above it always",
         "[[100 Gb/s, 400 kB, 1600 kB, 0.2]]", Default::described("none"),
         ValueInfo("list", marks_expected, "-", "rates that differ"), marks_handling()),
    rule("system.network.packets.seed",
         "seed of all draws: ECN marks, equal next hops, detours, packets that UEC trims", "7", Default::built_in(),
         count(0), [](auto& rules) { return &rules.seed; }),
    rule("system.network.packets.flow-control", "mechanism that keeps switches from losing packets", "credits",
         Default::described("pauses"), word<flow_controls>(), flow_control_handling(),
         see("packet-network.md, *Credits*")),
    rule("system.network.packets.pauses",
         "an older name: true is `flow-control: pauses`, false is `flow-control: none`", "false",
         Default::described("what `flow-control` says"), boolean(), pauses_handling(),
         excludes("system.network.packets.flow-control")),
    rule("system.network.packets.credits",
         "with `flow-control: credits`: bytes that each channel of a link may send before some are passed on", "64 KiB",
         Default::described("a round trip of the link and two packets, so that a free link never waits"),
         byte_count<std::uint64_t>(1), optional_bytes<&PacketRules::credits, 1>()),
    rule("system.network.packets.virtual-channels",
         "with `flow-control: credits`: channels of each link, which have credits of their own", "2",
         Default::built_in(), count(1, network::CreditRules::most_channels),
         [](auto& rules) { return &rules.virtual_channels; }),
    rule("system.network.packets.window", "bytes of a message that may be in flight", "64 KiB", Default::built_in(),
         Type(window_kind), [](auto& rules) { return &rules.window; }),
    rule("system.network.packets.window-follows-rate", "the window shrinks as the rate does", "false",
         Default::built_in(), boolean(), [](auto& rules) { return &rules.window_follows_rate; }),
    rule("system.network.packets.completion", "when a message is there", "acknowledged", Default::built_in(),
         word<completions>(), [](auto& rules) { return &rules.completion; }),
    rule(
        "system.network.packets.control", "congestion control", "dcqcn", Default::built_in(),
        word<registered<network::ControlName>>(), [](auto& rules) { return &rules.control; },
        see("packet-network.md, *Congestion control*")),
    rule(
        "system.network.packets.fast-forward", "skip periods of long transfers that repeat, with identical results",
        "false", Default::built_in(), boolean(), [](auto& rules) { return &rules.fast_forward; },
        see("packet-network.md, *Long transfers*")),
    rule(
        "system.network.packets.transport", "how hosts send packets, and again those that were lost", "uec",
        Default::built_in(), word<registered<network::TransportName>>(), [](auto& rules) { return &rules.transport; },
        see("packet-network.md, *UEC*")),
    rule("system.network.packets.spraying", "how a flow's packets are spread over equal paths (transport uec)",
         "oblivious", Default::built_in(), word<sprayings>(), [](auto& rules) { return &rules.spraying; }),
    rule("system.network.packets.trimming",
         "switches cut packets that do not fit down to their headers; without it they drop them (transport uec)",
         "false", Default::built_in(), boolean(), [](auto& rules) { return &rules.trimming; }),
    rule("system.network.packets.discipline",
         "which packets wait for ports of switches, and which are dropped, marked or trimmed", "red",
         Default::described("drop-tail with tcp, trimming with uec, otherwise shared-buffer"),
         word<registered<network::DisciplineName>>(), discipline_handling(), see("tcp.md, *Queues*")),
    rule(
        "system.network.packets.queue",
        "bytes of data that may wait for a port of a switch (discipline drop-tail, red or trimming)", "200 kB",
        Default::described("150 kB; with uec the bytes of the longest round trip, five times as many without trimming"),
        byte_count<std::uint64_t>(1), optional_bytes<&PacketRules::queue, 1>()),
    rule("system.network.packets.ewma",
         "weight of the newest length of a queue in the mean by which packets are marked (discipline red)", "0.002",
         Default::built_in(), efficiency(), [](auto& rules) { return &rules.mean_weight; }),
    rule(
        "system.network.packets.routing",
        "which of the next hops that are equally near a switch takes for a data packet", "adaptive",
        Default::built_in(), word<routings>(), [](auto& rules) { return &rules.routing; },
        see("packet-network.md, *Rules*")),
    rule("system.network.packets.loss", "fate of packets after a lost one", "selective", Default::built_in(),
         word<losses>(), [](auto& rules) { return &rules.loss; }),
    rule(
        "system.network.packets.reduction.trees",
        "trees of a communicator whose switches reduce (inSwitch); its chunks take them in turn", "2",
        Default::built_in(), count(1), [](auto& rules) { return &rules.reduction.trees; }, see("reduction.md")),
    rule("system.network.packets.reduction.most-trees", "trees that a switch takes part in at the most", "8",
         Default::built_in(), count(1), [](auto& rules) { return &rules.reduction.most_trees; }),
    rule("system.network.packets.reduction.operations",
         "operations that a switch carries out at a time; others wait in the order of their collectives", "4",
         Default::built_in(), count(1), [](auto& rules) { return &rules.reduction.operations; }),
    rule("system.network.packets.reduction.slots",
         "packets of an operation that a host may have sent and not got back, for each of which a switch has a slot",
         "64", Default::built_in(), count(1), [](auto& rules) { return &rules.reduction.slots; }),
    rule("system.network.packets.reduction.delay",
         "time from the last contribution to a packet until it begins to leave the switch", "250 ns",
         Default::built_in(), duration(), [](auto& rules) { return &rules.reduction.delay; }),
    rule("system.network.packets.retransmission-timeout",
         "time that a sender waits for news of a message before it retransmits unacknowledged packets", "100 us",
         Default::described("path with `loss: selective`, otherwise none"), timeout_info, timeout_handling()),
    rule("system.network.packets.least-rate", "rate below which no control goes", "1 Gb/s", Default::built_in(),
         Type(bit_rate), [](auto& rules) { return &rules.parameters.least_rate; }),
    rule("system.network.packets.additive-increase", "step by which rates rise", "40 Mb/s", Default::built_in(),
         Type(bit_rate), [](auto& rules) { return &rules.parameters.additive_increase; }),
    rule("system.network.packets.fast-increase", "step by which rates rise after several steps (DCQCN, TIMELY)",
         "200 Mb/s", Default::built_in(), Type(bit_rate), [](auto& rules) { return &rules.parameters.fast_increase; }),
    rule("system.network.packets.gain", "weight of the newest share of ECN marks (DCQCN, DCTCP)", "0.0625",
         Default::built_in(), share(), [](auto& rules) { return &rules.parameters.gain; }),
    rule("system.network.packets.alpha-interval", "time between updates of the share of ECN marks (DCQCN)", "50 us",
         Default::built_in(), duration(), [](auto& rules) { return &rules.parameters.alpha_interval; }),
    rule("system.network.packets.decrease-interval", "time between decreases of the rate (DCQCN)", "50 us",
         Default::built_in(), duration(), [](auto& rules) { return &rules.parameters.decrease_interval; }),
    rule("system.network.packets.increase-interval", "time between increases of the rate (DCQCN)", "55 us",
         Default::built_in(), duration(), [](auto& rules) { return &rules.parameters.increase_interval; }),
    rule("system.network.packets.fast-recovery-steps", "increases towards the old rate before it is raised (DCQCN)",
         "5", Default::built_in(), count(0), [](auto& rules) { return &rules.parameters.fast_recovery_steps; }),
    rule("system.network.packets.clamps-target", "each decrease sets the rate to which a flow recovers (DCQCN)", "true",
         Default::built_in(), boolean(), [](auto& rules) { return &rules.parameters.clamps_target; }),
    rule("system.network.packets.target-utilisation", "share of a link that flows aim at (HPCC)", "0.9",
         Default::built_in(), efficiency(), [](auto& rules) { return &rules.parameters.target_utilisation; }),
    rule("system.network.packets.increase-stages", "additive steps before a multiplicative one (HPCC)", "5",
         Default::built_in(), count(0), [](auto& rules) { return &rules.parameters.increase_stages; }),
    rule("system.network.packets.telemetry-unit", "factor of the units of bytes and queues that packets tell (HPCC)",
         "4", Default::built_in(), count(1, 1024), [](auto& rules) { return &rules.parameters.telemetry_unit; }),
};

}  // namespace

std::uint64_t as_bit_rate(const Value& value, const std::string& key) {
  const double bits = as_bandwidth(value, key).bytes_per_ns() * 8e9;
  if (bits > 1e18)
    throw Error(ErrorCode::bad_input, value.place(key), fmt::format("found {}", value.description()),
                "at most 10^18 bits per second");
  return static_cast<std::uint64_t>(std::llround(bits));
}

const Words<network::PacketRouting>& routings() {
  using network::PacketRouting;
  static const Words<PacketRouting> words = {
      {"flow-hash", PacketRouting::flow_hash, "that of the flow's hash: a flow takes one path (ECMP)"},
      {"packet-hash", PacketRouting::packet_hash, "that of a hash of the flow and the packet: spraying"},
      {"round-robin", PacketRouting::round_robin, "each in turn at each switch"},
      {"adaptive", PacketRouting::adaptive, "the one with the fewest bytes that wait; among equal ones a draw decides"},
      {"valiant", PacketRouting::valiant,
       "that of the flow's hash on the way to a switch that is drawn for the flow, and from there to the destination"}};
  return words;
}

const Keys<Configuration>& packet_keys() {
  static const Keys<Configuration> all("system.network.packets", packet_rows);
  return all;
}

}  // namespace orrery::config
