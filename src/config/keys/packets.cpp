#include <cmath>
#include <limits>

#include "delivery.hpp"
#include "keys.hpp"
#include "orrery/config/units.hpp"
#include "packets.hpp"

namespace orrery::config {
namespace {

using network::PacketRules;
using network::PacketWindow;

std::string text_of_rate(std::uint64_t rate) { return fmt::format("{} b/s", rate); }

/// Returns the type of rates that are kept in whole bits per second.
Type<std::uint64_t> bit_rate() {
  return {bandwidth().info,
          [](const Value& value, const std::string& key, const Reading&) { return as_bit_rate(value, key); },
          [](const std::uint64_t& rate) -> std::optional<std::string> { return text_of_rate(rate); }};
}

/// Returns the type of sizes that are kept as a number of bytes.
template <class Count>
Type<Count> byte_count(std::uint64_t minimum) {
  const Type<Bytes> bytes = size(minimum, "1000 B");
  return {bytes.info,
          [bytes](const Value& value, const std::string& key, const Reading& reading) {
            const std::uint64_t count = bytes.read(value, key, reading).count();
            if (count <= std::numeric_limits<Count>::max()) return static_cast<Count>(count);
            throw Error(ErrorCode::bad_input, value.place(key), fmt::format("found {}", value.description()),
                        fmt::format("at most {} B", std::numeric_limits<Count>::max()));
          },
          [](const Count& count) -> std::optional<std::string> { return fmt::format("{} B", count); }};
}

const Words<network::ControlName>& controls() {
  static const Words<network::ControlName> words = [] {
    Words<network::ControlName> all;
    for (const auto entry : network::ControlName::all()) all.push_back({entry.name(), entry, entry->help});
    return all;
  }();
  return words;
}

const Words<network::PacketPresetName>& presets() {
  static const Words<network::PacketPresetName> words = [] {
    Words<network::PacketPresetName> all;
    for (const auto entry : network::PacketPresetName::all()) all.push_back({entry.name(), entry, entry->help});
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

constexpr std::string_view marks_expected =
    "rows [rate, least, most, probability] such as [100 Gb/s, 400 kB, 1600 kB, 0.2]";

/// Returns how the thresholds of marks are read: a list of rows.
Handling<Configuration> marks_handling() {
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
              marks[as_bit_rate(row.items[0], path)] = thresholds;
            }
          },
          [](const Configuration& target, Writer& writer) {
            std::vector<std::string> rows;
            for (const auto& [rate, marks] : target.execution.network.packets.marks)
              rows.push_back(
                  fmt::format("[{}, {} B, {} B, {}]", text_of_rate(rate), marks.least, marks.most, marks.probability));
            writer.put_list("system.network.packets.marks", rows);
          },
          [](const Configuration& a, const Configuration& b) {
            return a.execution.network.packets.marks == b.execution.network.packets.marks;
          }};
}

/// Returns how the headroom is read, which follows from the link if it is not given.
Handling<Configuration> headroom_handling() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading& reading) {
            target.execution.network.packets.headroom = byte_count<std::uint64_t>(0).read(value, path, reading);
          },
          [](const Configuration& target, Writer& writer) {
            if (const auto& headroom = target.execution.network.packets.headroom)
              writer.put("system.network.packets.headroom", fmt::format("{} B", *headroom));
          },
          [](const Configuration& a, const Configuration& b) {
            return a.execution.network.packets.headroom == b.execution.network.packets.headroom;
          }};
}

Handling<Configuration> preset_handling() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading&) {
            target.execution.network.packets = as_word(value, path, presets())->make();
          },
          [](const Configuration&, Writer&) {}, [](const Configuration&, const Configuration&) { return true; }};
}

/// Adds keys that have an effect in the packet network only, and are written only there.
class PacketKeys {
 public:
  template <class T, class Access>
  void add(const About& about, const Type<T>& type, Access access) {
    restrict(keys.add(
        about, type, [access](auto& c) -> auto& { return access(c.execution.network.packets); }));
  }
  void add(const About& about, TypeInfo type, Handling<Configuration> handling) {
    restrict(keys.add(about, std::move(type), std::move(handling)));
  }

  Keys<Configuration> keys{"system.network.packets"};

 private:
  static void restrict(Key<Configuration>& key) {
    key.written_if([](const Configuration& c) { return c.execution.network.model->sends_packets; });
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
      {.path = "system.network.packets.pauses",
       .help = "switches pause the ports before them when buffers fill (PFC); without it they drop packets",
       .example = "false",
       .otherwise = Default::built_in()},
      boolean(), [](auto& rules) -> auto& { return rules.pauses; });
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
           byte_count<std::uint64_t>(0).info, headroom_handling());
  keys.add({.path = "system.network.packets.marks",
            .help = "rows [rate, least, most, probability]: ports of this rate mark packets that leave more bytes "
                    "behind than `least`, with a probability that rises up to `most`; above it always",
            .example = "[[100 Gb/s, 400 kB, 1600 kB, 0.2]]",
            .otherwise = Default::described("none")},
           {"list", std::string(marks_expected), "-", "rates that differ"}, marks_handling());
  keys.add(
      {.path = "system.network.packets.seed",
       .help = "seed of the draws of marks",
       .example = "7",
       .otherwise = Default::built_in()},
      count(0), [](auto& rules) -> auto& { return rules.seed; });
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
      word(controls()), [](auto& rules) -> auto& { return rules.control; });
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

const Keys<Configuration>& packet_keys() {
  static const Keys<Configuration> all = [] {
    PacketKeys keys;
    keys.add({.path = "system.network.packets.preset",
              .help = "what the other keys of packets are where they are not given",
              .example = "simai-ns3",
              .otherwise = Default::described("astra-sim-ns3, without marks")},
             word(presets()).info, preset_handling());
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
    add_flows(keys);
    add_delivery(keys);
    add_rates(keys);
    add_parameters_of_controls(keys);
    return std::move(keys.keys);
  }();
  return all;
}

}  // namespace orrery::config
