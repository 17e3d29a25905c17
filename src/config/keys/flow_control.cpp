#include "flow_control.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "packets.hpp"

namespace orrery::config {
namespace {

using network::PacketRules;

FlowControl flow_control_of(const PacketRules& rules) {
  if (rules.uses_credits) return FlowControl::credits;
  return rules.pauses ? FlowControl::pauses : FlowControl::none;
}

}  // namespace

const Words<FlowControl>& flow_controls() {
  static const Words<FlowControl> words = {
      {"pauses", FlowControl::pauses, "switches pause the ports before them when their buffers fill (PFC)"},
      {"credits", FlowControl::credits, "a packet is sent only if the end of its link has room for it"},
      {"none", FlowControl::none, "switches drop packets when their buffers are full"}};
  return words;
}

Handling<Configuration> flow_control_handling() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading&) {
            const FlowControl control = as_word(value, path, flow_controls());
            PacketRules& rules = target.execution.network.packets;
            rules.pauses = control == FlowControl::pauses;
            rules.uses_credits = control == FlowControl::credits;
          },
          [](const Configuration& target, Writer& writer) {
            writer.put("system.network.packets.flow-control",
                       std::string(text_of(flow_controls(), flow_control_of(target.execution.network.packets))));
          },
          [](const Configuration& a, const Configuration& b) {
            return flow_control_of(a.execution.network.packets) == flow_control_of(b.execution.network.packets);
          }};
}

Handling<Configuration> pauses_handling() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading& reading) {
            target.execution.network.packets.pauses = boolean().read(value, path, reading);
          },
          [](const Configuration&, Writer&) {}, [](const Configuration&, const Configuration&) { return true; }};
}

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
              rows.push_back(fmt::format("[{} b/s, {} B, {} B, {}]", rate, marks.least, marks.most, marks.probability));
            writer.put_list("system.network.packets.marks", rows);
          },
          [](const Configuration& a, const Configuration& b) {
            return a.execution.network.packets.marks == b.execution.network.packets.marks;
          }};
}

}  // namespace orrery::config
