#include <cmath>
#include <limits>

#include "delivery.hpp"
#include "flow_control.hpp"
#include "keys.hpp"
#include "orrery/config/units.hpp"
#include "packets.hpp"

namespace orrery::config {
namespace {

using network::PacketRules;
using network::PacketWindow;

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

/// Returns the type of windows: a word, or a size.
Type<PacketWindow> window_type() {
  Type<PacketWindow> type = word(windows());
  type.info.expected += ", or a size with its unit";
  type.info.range += ", or a size";
  type.read = [](const Value& value, const std::string& key, const Reading& reading) -> PacketWindow {
    const std::string text = as_text(value, key, "a word or a size");
    if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0])) == 0) return as_word(value, key, windows());
    return {PacketWindow::Kind::fixed, byte_count<std::uint64_t>(1).read(value, key, reading)};
  };
  type.text = [](const PacketWindow& window) -> std::optional<std::string> {
    if (window.kind == PacketWindow::Kind::fixed) return fmt::format("{} B", window.bytes);
    return std::string(text_of(windows(), window));
  };
  return type;
}

Handling<Configuration> preset_handling() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading&) {
            target.execution.network.packets = as_word(value, path, registered<network::PacketPresetName>())->make();
          },
          [](const Configuration&, Writer&) {}, [](const Configuration&, const Configuration&) { return true; }};
}

/// Adds keys that have an effect in the packet network only, and are written only there.
class PacketKeys {
 public:
  template <class T, class Access>
  Key<Configuration>& add(const About& about, const Type<T>& type, Access access) {
    return restrict(keys.add(
        about, type, [access](auto& c) -> auto& { return access(c.execution.network.packets); }));
  }
  Key<Configuration>& add(const About& about, TypeInfo type, Handling<Configuration> handling) {
    return restrict(keys.add(about, std::move(type), std::move(handling)));
  }

  Keys<Configuration> keys{"system.network.packets"};

 private:
  static Key<Configuration>& restrict(Key<Configuration>& key) {
    return key.written_if([](const Configuration& c) { return c.execution.network.model->sends_packets; });
  }
};

void add_sizes(PacketKeys& keys) {
  keys.add(
      {.path = "system.network.packets.payload",
       .help = "bytes of the message in a full packet",
       .example = "4096 B",
       .otherwise = Default::built_in()},
      byte_count<std::uint32_t>(1), [](auto& rules) -> auto& { return rules.payload; });
  keys.add(
      {.path = "system.network.packets.header",
       .help = "bytes of a data packet beside its payload",
       .example = "48 B",
       .otherwise = Default::built_in()},
      byte_count<std::uint32_t>(1), [](auto& rules) -> auto& { return rules.header; });
  keys.add(
      {.path = "system.network.packets.acknowledgement",
       .help = "size of an acknowledgement, which each data packet has",
       .example = "60 B",
       .otherwise = Default::built_in()},
      byte_count<std::uint32_t>(1), [](auto& rules) -> auto& { return rules.acknowledgement; });
  keys.add(
      {.path = "system.network.packets.pause-frame",
       .help = "size of a frame that pauses a port or lets it go on",
       .example = "43 B",
       .otherwise = Default::built_in()},
      byte_count<std::uint32_t>(1), [](auto& rules) -> auto& { return rules.pause_frame; });
  keys.add(
      {.path = "system.network.packets.time-unit",
       .help = "unit to which transmission times are rounded",
       .example = "ns",
       .otherwise = Default::built_in()},
      word(ticks()), [](auto& rules) -> auto& { return rules.tick; });
}

void add_switches(PacketKeys& keys) {
  keys.add(
      {.path = "system.network.packets.buffer",
       .help = "buffer of a switch, which its ports share",
       .example = "16 MiB",
       .otherwise = Default::built_in()},
      byte_count<std::uint64_t>(1), [](auto& rules) -> auto& { return rules.buffer; });
  keys.add(
      {.path = "system.network.packets.share-shift",
       .help = "n: a port may fill 1 / 2^n of the free buffer, one less for each doubling of its rate above that "
               "of hosts",
       .example = "4",
       .otherwise = Default::built_in()},
      count(0, 30), [](auto& rules) -> auto& { return rules.share_shift; });
  keys.add(
      {.path = "system.network.packets.reserve",
       .help = "buffer of each port of its own",
       .example = "8 KiB",
       .otherwise = Default::built_in()},
      byte_count<std::uint32_t>(0), [](auto& rules) -> auto& { return rules.reserve; });
  keys.add(
      {.path = "system.network.packets.resume-offset",
       .help = "bytes below the threshold of pauses at which a port may go on",
       .example = "8 KiB",
       .otherwise = Default::built_in()},
      byte_count<std::uint32_t>(0), [](auto& rules) -> auto& { return rules.resume_offset; });
  keys.add({.path = "system.network.packets.headroom",
            .help = "buffer of each port for what comes after a pause",
            .example = "100 kB",
            .otherwise = Default::described("1.5 round trips of the link")},
           byte_count<std::uint64_t>(0).info,
           optional_bytes("system.network.packets.headroom", 0, &PacketRules::headroom));
  keys.add({.path = "system.network.packets.marks",
            .help = "rows [rate, least, most, probability]: ports of this rate mark packets that leave more bytes "
                    "behind than `least`, with a probability that rises up to `most`; above it always",
            .example = "[[100 Gb/s, 400 kB, 1600 kB, 0.2]]",
            .otherwise = Default::described("none")},
           {"list", std::string(marks_expected), "-", "rates that differ"}, marks_handling());
  keys.add(
      {.path = "system.network.packets.seed",
       .help = "seed of all draws: marks, equal next hops, detours, and what UEC trims",
       .example = "7",
       .otherwise = Default::built_in()},
      count(0), [](auto& rules) -> auto& { return rules.seed; });
}

void add_flow_control(PacketKeys& keys) {
  keys.add({.path = "system.network.packets.flow-control",
            .help = "what keeps switches from losing packets",
            .example = "credits",
            .otherwise = Default::described("pauses"),
            .see = "packet-network.md, *Credits*"},
           word(flow_controls()).info, flow_control_handling());
  keys.add({.path = "system.network.packets.pauses",
            .help = "an older name: true is `flow-control: pauses`, false is `flow-control: none`",
            .example = "false",
            .otherwise = Default::described("what `flow-control` says")},
           boolean().info, pauses_handling())
      .excludes("system.network.packets.flow-control");
  keys.add(
      {.path = "system.network.packets.credits",
       .help = "with `flow-control: credits`: bytes that each channel of a link may send before some are passed on",
       .example = "64 KiB",
       .otherwise = Default::described("a round trip of the link and two packets, so that a free link never waits")},
      byte_count<std::uint64_t>(1).info, optional_bytes("system.network.packets.credits", 1, &PacketRules::credits));
  keys.add(
      {.path = "system.network.packets.virtual-channels",
       .help = "with `flow-control: credits`: channels of each link, which have credits of their own",
       .example = "2",
       .otherwise = Default::built_in()},
      count(1, network::CreditRules::most_channels), [](auto& rules) -> auto& { return rules.virtual_channels; });
}

void add_flows(PacketKeys& keys) {
  keys.add(
      {.path = "system.network.packets.window",
       .help = "bytes of a message that may be under way",
       .example = "64 KiB",
       .otherwise = Default::built_in()},
      window_type(), [](auto& rules) -> auto& { return rules.window; });
  keys.add(
      {.path = "system.network.packets.window-follows-rate",
       .help = "the window shrinks as the rate does",
       .example = "false",
       .otherwise = Default::built_in()},
      boolean(), [](auto& rules) -> auto& { return rules.window_follows_rate; });
  keys.add(
      {.path = "system.network.packets.completion",
       .help = "when a message is there",
       .example = "acknowledged",
       .otherwise = Default::built_in()},
      word(completions()), [](auto& rules) -> auto& { return rules.completion; });
  keys.add(
      {.path = "system.network.packets.control",
       .help = "congestion control",
       .example = "dcqcn",
       .otherwise = Default::built_in(),
       .see = "packet-network.md, *Congestion control*"},
      word(registered<network::ControlName>()), [](auto& rules) -> auto& { return rules.control; });
}

void add_speed(PacketKeys& keys) {
  keys.add(
      {.path = "system.network.packets.fast-forward",
       .help = "periods of long transfers that repeat themselves are skipped; results are the same",
       .example = "false",
       .otherwise = Default::built_in(),
       .see = "packet-network.md, *Long transfers*"},
      boolean(), [](auto& rules) -> auto& { return rules.fast_forward; });
}

void add_uec(PacketKeys& keys) {
  keys.add(
      {.path = "system.network.packets.transport",
       .help = "how hosts send packets, and again those that were lost",
       .example = "uec",
       .otherwise = Default::built_in(),
       .see = "packet-network.md, *UEC*"},
      word(transports()), [](auto& rules) -> auto& { return rules.transport; });
  keys.add(
      {.path = "system.network.packets.spraying",
       .help = "how a flow's packets are spread over equal paths (transport uec)",
       .example = "oblivious",
       .otherwise = Default::built_in()},
      word(sprayings()), [](auto& rules) -> auto& { return rules.spraying; });
  keys.add(
      {.path = "system.network.packets.trimming",
       .help = "switches cut packets that do not fit down to their headers; without it they drop them (transport uec)",
       .example = "false",
       .otherwise = Default::built_in()},
      boolean(), [](auto& rules) -> auto& { return rules.trimming; });
  keys.add({.path = "system.network.packets.queue",
            .help = "bytes of data that may wait for a port of a switch (transport uec)",
            .example = "200 kB",
            .otherwise = Default::described("those of the longest round trip; five times as many without trimming")},
           byte_count<std::uint64_t>(1).info, optional_bytes("system.network.packets.queue", 1, &PacketRules::queue));
}

void add_delivery(PacketKeys& keys) {
  keys.add(
      {.path = "system.network.packets.routing",
       .help = "which of the next hops that are equally near a switch takes for a data packet",
       .example = "adaptive",
       .otherwise = Default::built_in(),
       .see = "packet-network.md, *Rules*"},
      word(routings()), [](auto& rules) -> auto& { return rules.routing; });
  keys.add(
      {.path = "system.network.packets.loss",
       .help = "what becomes of packets that come after one that is lost",
       .example = "selective",
       .otherwise = Default::built_in()},
      word(losses()), [](auto& rules) -> auto& { return rules.loss; });
  keys.add({.path = "system.network.packets.retransmission-timeout",
            .help = "for how long a sender waits for news of a message before it sends again what is not acknowledged",
            .example = "100 us",
            .otherwise = Default::described("path with `loss: selective`, else none")},
           timeout_info(), timeout_handling());
}

void add_rates(PacketKeys& keys) {
  keys.add(
      {.path = "system.network.packets.least-rate",
       .help = "rate below which no control goes",
       .example = "1 Gb/s",
       .otherwise = Default::built_in()},
      bit_rate(), [](auto& rules) -> auto& { return rules.parameters.least_rate; });
  keys.add(
      {.path = "system.network.packets.additive-increase",
       .help = "step by which rates rise",
       .example = "40 Mb/s",
       .otherwise = Default::built_in()},
      bit_rate(), [](auto& rules) -> auto& { return rules.parameters.additive_increase; });
  keys.add(
      {.path = "system.network.packets.fast-increase",
       .help = "step by which rates rise after several steps (DCQCN, TIMELY)",
       .example = "200 Mb/s",
       .otherwise = Default::built_in()},
      bit_rate(), [](auto& rules) -> auto& { return rules.parameters.fast_increase; });
  keys.add(
      {.path = "system.network.packets.gain",
       .help = "weight of the newest share of marks (DCQCN, DCTCP)",
       .example = "0.0625",
       .otherwise = Default::built_in()},
      share(), [](auto& rules) -> auto& { return rules.parameters.gain; });
}

void add_parameters_of_controls(PacketKeys& keys) {
  keys.add(
      {.path = "system.network.packets.alpha-interval",
       .help = "time between updates of the share of marks (DCQCN)",
       .example = "50 us",
       .otherwise = Default::built_in()},
      duration(), [](auto& rules) -> auto& { return rules.parameters.alpha_interval; });
  keys.add(
      {.path = "system.network.packets.decrease-interval",
       .help = "time between decreases of the rate (DCQCN)",
       .example = "50 us",
       .otherwise = Default::built_in()},
      duration(), [](auto& rules) -> auto& { return rules.parameters.decrease_interval; });
  keys.add(
      {.path = "system.network.packets.increase-interval",
       .help = "time between increases of the rate (DCQCN)",
       .example = "55 us",
       .otherwise = Default::built_in()},
      duration(), [](auto& rules) -> auto& { return rules.parameters.increase_interval; });
  keys.add(
      {.path = "system.network.packets.fast-recovery-steps",
       .help = "increases towards the old rate before it is raised (DCQCN)",
       .example = "5",
       .otherwise = Default::built_in()},
      count(0), [](auto& rules) -> auto& { return rules.parameters.fast_recovery_steps; });
  keys.add(
      {.path = "system.network.packets.clamps-target",
       .help = "each decrease sets the rate to which a flow recovers (DCQCN)",
       .example = "true",
       .otherwise = Default::built_in()},
      boolean(), [](auto& rules) -> auto& { return rules.parameters.clamps_target; });
  keys.add(
      {.path = "system.network.packets.target-utilisation",
       .help = "share of a link that flows aim at (HPCC)",
       .example = "0.9",
       .otherwise = Default::built_in()},
      efficiency(), [](auto& rules) -> auto& { return rules.parameters.target_utilisation; });
  keys.add(
      {.path = "system.network.packets.increase-stages",
       .help = "additive steps before a multiplicative one (HPCC)",
       .example = "5",
       .otherwise = Default::built_in()},
      count(0), [](auto& rules) -> auto& { return rules.parameters.increase_stages; });
  keys.add(
      {.path = "system.network.packets.telemetry-unit",
       .help = "factor of the units of bytes and queues that packets tell (HPCC)",
       .example = "4",
       .otherwise = Default::built_in()},
      count(1, 1024), [](auto& rules) -> auto& { return rules.parameters.telemetry_unit; });
}

}  // namespace

std::uint64_t as_bit_rate(const Value& value, const std::string& key) {
  const double bits = as_bandwidth(value, key).bytes_per_ns() * 8e9;
  if (bits > 1e18)
    throw Error(ErrorCode::bad_input, value.place(key), fmt::format("found {}", value.description()),
                "at most 10^18 bits per second");
  return static_cast<std::uint64_t>(std::llround(bits));
}

Type<std::uint64_t> bit_rate() {
  return {bandwidth().info,
          [](const Value& value, const std::string& key, const Reading&) { return as_bit_rate(value, key); },
          [](const std::uint64_t& rate) -> std::optional<std::string> { return fmt::format("{} b/s", rate); }};
}

Handling<Configuration> optional_bytes(std::string key, std::uint64_t minimum,
                                       std::optional<std::uint64_t> PacketRules::*member) {
  const auto of = [member](auto& configuration) -> auto& { return configuration.execution.network.packets.*member; };
  return {[=](const Value& value, const std::string& path, Configuration& target, Reading& reading) {
            of(target) = byte_count<std::uint64_t>(minimum).read(value, path, reading);
          },
          [=](const Configuration& target, Writer& writer) {
            if (const auto& bytes = of(target)) writer.put(key, fmt::format("{} B", *bytes));
          },
          [=](const Configuration& a, const Configuration& b) { return of(a) == of(b); }};
}

const Keys<Configuration>& packet_keys() {
  static const Keys<Configuration> all = [] {
    PacketKeys keys;
    keys.add({.path = "system.network.packets.preset",
              .help = "what the other keys of packets are where they are not given",
              .example = "simai-ns3",
              .otherwise = Default::described("astra-sim-ns3, without marks")},
             word(registered<network::PacketPresetName>()).info, preset_handling());
    keys.add(
        {.path = "system.network.packets.file",
         .help = "configuration of ns-3 (config.txt of HPCC, ASTRA-sim or SimAI) whose values replace those of the "
                 "preset",
         .example = "config.txt",
         .otherwise = Default::none(),
         .see = "packet-network.md, *Configurations of ns-3*"},
        file().info, file_handling());
    add_sizes(keys);
    add_switches(keys);
    add_flow_control(keys);
    add_flows(keys);
    add_speed(keys);
    add_uec(keys);
    add_delivery(keys);
    add_rates(keys);
    add_parameters_of_controls(keys);
    return std::move(keys.keys);
  }();
  return all;
}

}  // namespace orrery::config
