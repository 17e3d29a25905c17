#include <string_view>

#include "keys.hpp"
#include "packets.hpp"

namespace orrery::config {
namespace {

constexpr std::string_view per_message = "per-message";

/// Numbers of connections are counts, or the word for one for each message.
constinit const ValueKind<std::uint32_t> connections_kind = kind_of<std::uint32_t>(
    [](const Limits&) {
      TypeInfo info = count(1, network::TcpRules::most_connections).info();
      info.expected += ", or per-message";
      info.range += ", or per-message";
      return info;
    },
    [](const Limits&, const Value& value, const std::string& key, const Reading& reading) -> std::uint32_t {
      if (value.kind == Value::Kind::scalar && value.text == per_message) return 0;
      return count(1, network::TcpRules::most_connections).read(value, key, reading);
    },
    [](const Limits&, std::uint32_t connections) {
      return connections == 0 ? std::string(per_message) : fmt::format("{}", connections);
    });

/// Reads a buffer of receivers: a size, or {least, most}.
constexpr Handling<Configuration> receive_buffer_handling() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading& reading) {
            network::TcpRules& tcp = target.execution.network.packets.tcp;
            const auto bytes = byte_count<std::uint64_t>(1);
            if (value.kind != Value::Kind::mapping) {
              tcp.least_buffer = tcp.most_buffer = bytes.read(value, path, reading);
              return;
            }
            for (const auto& entry : value.entries) {
              const std::string key = path + "." + entry.key;
              if (entry.key != "least" && entry.key != "most")
                throw Error(ErrorCode::bad_input, entry.value.place(key), "found this key", "least and most");
              (entry.key == "least" ? tcp.least_buffer : tcp.most_buffer) = bytes.read(entry.value, key, reading);
            }
            if (value.find("least") == nullptr || value.find("most") == nullptr)
              throw Error(ErrorCode::bad_input, value.place(path), "found one of least and most", "both of them");
          },
          [](const Configuration& target, std::string_view path, Writer& writer) {
            const network::TcpRules& tcp = target.execution.network.packets.tcp;
            writer.put(path, tcp.least_buffer == tcp.most_buffer
                                 ? fmt::format("{} B", tcp.most_buffer)
                                 : fmt::format("{{least: {} B, most: {} B}}", tcp.least_buffer, tcp.most_buffer));
          },
          [](const Configuration& a, const Configuration& b) {
            const network::TcpRules &first = a.execution.network.packets.tcp, &second = b.execution.network.packets.tcp;
            return first.least_buffer == second.least_buffer && first.most_buffer == second.most_buffer;
          }};
}

bool has_connections(const Configuration& c) {
  return c.execution.network.model->sends_packets && c.execution.network.packets.transport->has_connections;
}

/// Returns the row of a key that has an effect with TCP only, and is written only there.
template <class T, std::invocable<network::TcpRules&> Access, class... Facts>
consteval Row<Configuration> tcp_rule(Text path, Text help, Text example, const Type<T>& type, Access, Facts... facts) {
  return {path,
          help,
          example,
          Default::built_in(),
          type,
          [](auto& c) { return Access{}(c.execution.network.packets.tcp); },
          written_if(has_connections),
          see("tcp.md"),
          facts...};
}

constexpr Row<Configuration> tcp_rows[] = {
    tcp_rule("system.network.packets.tcp.mss", "bytes of the message in a full segment", "8960 B",
             Type<std::uint32_t>(byte_count_kind<std::uint32_t>, {.minimum = 1}), [](auto& tcp) { return &tcp.mss; }),
    tcp_rule("system.network.packets.tcp.header", "bytes of each packet besides the message", "66 B",
             byte_count<std::uint32_t>(2), [](auto& tcp) { return &tcp.header; }),
    tcp_rule("system.network.packets.tcp.initial-window", "first window of a sender, in segments", "4",
             count(1, 65'535), [](auto& tcp) { return &tcp.initial_window; }),
    tcp_rule("system.network.packets.tcp.delayed-ack.segments", "segments for which a receiver owes an acknowledgement",
             "1", count(1), [](auto& tcp) { return &tcp.ack_segments; }),
    tcp_rule("system.network.packets.tcp.delayed-ack.timeout", "time after which it acknowledges fewer", "40 ms",
             duration(), [](auto& tcp) { return &tcp.ack_timeout; }),
    tcp_rule("system.network.packets.tcp.min-rto", "least time-out after which a sender sends again", "5 ms",
             duration(), [](auto& tcp) { return &tcp.min_rto; }),
    tcp_rule("system.network.packets.tcp.granularity", "least share of the variation of round trips in a time-out",
             "1 ms", duration(), [](auto& tcp) { return &tcp.granularity; }),
    tcp_rule("system.network.packets.tcp.syn-timeout", "time after which a SYN is sent again, which doubles", "3 s",
             duration(), [](auto& tcp) { return &tcp.syn_timeout; }),
    Row<Configuration>("system.network.packets.tcp.receive-buffer",
                       "bytes that a receiver offers: a size, or {least, most} if it raises them as they are used",
                       "64 KiB", Default::described("6 MiB"),
                       ValueInfo("size or mapping", "a size, or {least: 64 KiB, most: 6 MiB}", "-", "2 `mss` or more"),
                       receive_buffer_handling(), written_if(has_connections), see("tcp.md")),
    tcp_rule("system.network.packets.tcp.connections",
             "connections from each host to each other one, which its messages take in turn", "per-message",
             Type(connections_kind), [](auto& tcp) { return &tcp.connections; }),
    tcp_rule("system.network.packets.tcp.slow-start-after-idle",
             "a sender that was idle for a time-out begins with its first window again", "true", boolean(),
             [](auto& tcp) { return &tcp.slow_start_after_idle; }),
};

}  // namespace

const Keys<Configuration>& tcp_keys() {
  static const Keys<Configuration> all("system.network.packets.tcp", tcp_rows);
  return all;
}

}  // namespace orrery::config
