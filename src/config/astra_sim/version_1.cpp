#include <algorithm>
#include <array>

#include "astra_sim.hpp"

namespace orrery::config {
namespace {

struct Renamed {
  std::string_view before;  ///< key in the files of ASTRA-sim 1.0
  std::string_view now;
};
constexpr std::array renamed = {Renamed{"topologies-per-dim", "topology"}, Renamed{"units-count", "npus_count"},
                                Renamed{"link-bandwidth", "bandwidth"}, Renamed{"link-latency", "latency"}};

/// Turns "ring_direct" into the list ["ring", "direct"].
Value list_of_algorithms(const Value& text) {
  Value list = text;
  list.kind = Value::Kind::sequence;
  list.text.clear();
  for (std::size_t at = 0; at <= text.text.size();) {
    const std::size_t end = std::min(text.text.find('_', at), text.text.size());
    Value item = text;
    item.text = text.text.substr(at, end - at);
    list.items.push_back(std::move(item));
    at = end + 1;
  }
  return list;
}

Value scalar(std::string_view text, std::uint64_t line, const std::shared_ptr<const Origin>& origin) {
  Value value;
  value.kind = Value::Kind::scalar;
  value.text = text;
  value.line = line;
  value.origin = origin;
  return value;
}

/// Parses the lines `key: value` of a system file of ASTRA-sim 1.0.
Value parse_lines(std::string_view text, const std::shared_ptr<const Origin>& origin, Faults& faults) {
  constexpr std::string_view blanks = " \t\r";
  Value root = scalar({}, 1, origin);
  root.kind = Value::Kind::mapping;
  for (std::uint64_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end), blanks);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) {
      faults.add(Error(ErrorCode::bad_input, root.place({}), "a line without ':'",
                       "JSON, or the lines `key: value` of a system file of ASTRA-sim 1.0"));
      faults.raise();
    }
    const std::string key(trimmed(line.substr(0, colon), blanks));
    Value value = scalar(trimmed(line.substr(colon + 1), blanks), number, origin);
    if (key.ends_with("-implementation")) value = list_of_algorithms(value);
    if (root.find(key) != nullptr)
      faults.add(
          Error(ErrorCode::bad_input, value.place(key), "the key stands here for the second time", "one of them"));
    else
      root.entries.push_back({key, number, std::move(value)});
  }
  return root;
}

}  // namespace

Value parse_astra_sim_network(std::string_view text, const std::shared_ptr<const Origin>& origin, Faults& faults) {
  Value root = parse_yaml(text, origin, faults);
  if (root.find("topologies-per-dim") == nullptr) return root;
  for (auto& entry : root.entries)
    for (const auto& [before, now] : renamed)
      if (entry.key == before) entry.key = now;
  return root;
}

Value parse_astra_sim_system(std::string_view text, const std::shared_ptr<const Origin>& origin, Faults& faults) {
  const std::string_view beginning = trimmed(text, " \t\r\n");
  const bool is_json = beginning.empty() || beginning.find_first_not_of("abcdefghijklmnopqrstuvwxyzLogG-") == 0;
  return is_json ? parse_json(text, origin, faults) : parse_lines(text, origin, faults);
}

}  // namespace orrery::config
