#include <algorithm>
#include <array>

#include "keys.hpp"
#include "references.hpp"

namespace orrery::config {
namespace {

constexpr std::array<std::string_view, 6> parts = {"basis", "reports", "deviation", "ranges", "numbers", "steps"};
constexpr const char* expected_parts = "a mapping of basis, reports, deviation, ranges, numbers and steps";

/// Returns a value in YAML's flow style.
std::string flow(const Value& value) {
  std::string text;
  constexpr std::string_view special = ",[]{}#:";  // plain text holds these outside flow style only
  if (value.kind == Value::Kind::scalar)
    return value.quoted || value.text.find_first_of(special) != std::string::npos ? in_quotes(value.text) : value.text;
  for (const Value& item : value.items) text += (text.empty() ? "" : ", ") + flow(item);
  for (const auto& entry : value.entries) text += (text.empty() ? "" : ", ") + entry.key + ": " + flow(entry.value);
  return value.kind == Value::Kind::sequence ? "[" + text + "]" : "{" + text + "}";
}

constexpr Handling<Configuration> whole_provenance() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading&) {
            if (value.kind != Value::Kind::mapping)
              throw Error(ErrorCode::bad_input, value.place(path), "found " + value.description(), expected_parts);
            for (const auto& entry : value.entries)
              if (std::ranges::find(parts, entry.key) == parts.end())
                throw Error(ErrorCode::bad_input, entry.value.place(path + "." + entry.key), "unknown key",
                            expected_parts);
            read_provenance(value);
            target.provenance = flow(value);
          },
          [](const Configuration& c, std::string_view path, Writer& writer) {
            if (c.provenance.empty()) return;
            Faults faults;
            const Value whole = parse_yaml(c.provenance, std::make_shared<const Origin>(), faults);
            for (const auto& [name, line, value] : whole.entries) {
              const std::string own = std::string(path) + "." + name;
              if (value.kind != Value::Kind::sequence) {
                writer.put(own, flow(value));
                continue;
              }
              std::vector<std::string> items;
              for (const Value& item : value.items) items.push_back(flow(item));
              writer.put_list(own, items);
            }
          },
          [](const Configuration& a, const Configuration& b) { return a.provenance == b.provenance; }};
}

constexpr Row<Configuration> provenance_rows[] = {
    {"provenance", "measured steps to which the numbers of the configuration were fitted, as stacks hold it",
     "{basis: \"6 own steps\", deviation: 0.05}", Default::none(),
     ValueInfo("mapping", expected_parts, "-", "basis, reports, deviation, ranges, numbers and steps"),
     whole_provenance(), see("calibration.md")},
};

}  // namespace

const Keys<Configuration>& provenance_keys() {
  static const Keys<Configuration> all("provenance", provenance_rows);
  return all;
}

}  // namespace orrery::config
