#include "delivery.hpp"

#include <fmt/format.h>

#include <cctype>
#include <string>
#include <string_view>

#include "ns3_config.hpp"
#include "orrery/base/text.hpp"
#include "packets.hpp"

namespace orrery::config {
namespace {

using Timeout = network::RetransmissionTimeout;

const Words<Timeout>& timeouts() {
  static const Words<Timeout> words = {
      {"none", {Timeout::Kind::none}, "it waits for ever: a message whose last packets are lost never ends"},
      {"path", {Timeout::Kind::path}, "16 round trips of a packet that is alone on the flow's path"}};
  return words;
}

}  // namespace

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

const Words<network::PacketTransport>& transports() {
  using network::PacketTransport;
  static const Words<PacketTransport> words = {
      {"roce", PacketTransport::roce, "that of RDMA over Ethernet: `routing` and `loss` say how packets get there"},
      {"uec", PacketTransport::uec, "Ultra Ethernet: packets on many paths in any order; only lost ones again"}};
  return words;
}

const Words<network::Spraying>& sprayings() {
  using network::Spraying;
  static const Words<Spraying> words = {
      {"none", Spraying::none, "one path for each flow"},
      {"oblivious", Spraying::oblivious, "all of 64 values in turn"},
      {"bitmap", Spraying::bitmap, "all in turn, but for those with marks and losses"},
      {"reps", Spraying::reps, "again those that came back without a mark, else at random"},
      {"mixed", Spraying::mixed, "again those that came back without a mark, else as bitmap"}};
  return words;
}

const Words<network::PacketLoss>& losses() {
  using network::PacketLoss;
  static const Words<PacketLoss> words = {
      {"go-back-n", PacketLoss::go_back_n, "the receiver drops what comes after a gap, and the sender goes back to it"},
      {"selective", PacketLoss::selective, "the receiver keeps it, and the sender sends again what is missing"}};
  return words;
}

/// Returns how a time-out is read: a word, or a time.
Handling<Configuration> timeout_handling() {
  const auto read = [](const Value& value, const std::string& path, Configuration& target, Reading& reading) {
    auto& timeout = target.execution.network.packets.timeout;
    const std::string text = as_text(value, path, "a word or a time");
    if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0])) == 0)
      timeout = as_word(value, path, timeouts());
    else
      timeout = {Timeout::Kind::fixed, duration().read(value, path, reading)};
  };
  const auto write = [](const Configuration& target, Writer& writer) {
    const auto& timeout = target.execution.network.packets.timeout;
    if (!timeout) return;
    writer.put("system.network.packets.retransmission-timeout", timeout->kind == Timeout::Kind::fixed
                                                                    ? fmt::format("{} ps", timeout->time.ps())
                                                                    : std::string(text_of(timeouts(), *timeout)));
  };
  return {read, write, [](const Configuration& a, const Configuration& b) {
            return a.execution.network.packets.timeout == b.execution.network.packets.timeout;
          }};
}

/// Returns what the documents say of a time-out.
TypeInfo timeout_info() {
  TypeInfo info = word(timeouts()).info;
  info.expected += ", or a time with its unit";
  info.range += ", or a time";
  return info;
}

/// Reads a configuration of ns-3. What it lacks is as the preset has it.
Handling<Configuration> file_handling() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading&) {
            const auto file = as_path(value, path);
            const std::string text = read_text(file, value.place(path));
            if (!is_ns3_config(text))
              throw Error(ErrorCode::bad_input, value.place(path),
                          fmt::format("found {}, which is no configuration of ns-3", file.string()),
                          "lines such as CC_MODE 1 and PACKET_PAYLOAD_SIZE 1000");
            const auto read = read_ns3_config(text, file, target.execution.network.packets);
            if (std::string notice = read.notice(file); !notice.empty()) target.warnings.push_back(std::move(notice));
          },
          [](const Configuration&, Writer&) {}, [](const Configuration&, const Configuration&) { return true; }};
}

}  // namespace orrery::config
