#include "links_table.hpp"

#include <string>
#include <vector>
#include "orrery/network/record.hpp"
#include "orrery/topology/fabric.hpp"

namespace orrery::results {
namespace {

using network::LinkRecord;

template <class T, class Value>
void write_column(File& file, const char* name, std::span<const LinkRecord> links, const Label& label, Value value) {
  const std::string path = std::string("/network/links/") + name;
  std::vector<T> column;
  column.reserve(links.size());
  for (const LinkRecord& link : links) column.push_back(static_cast<T>(value(link)));
  file.column<T>(path, column, label);
  file.attach(path, "/network/links/row");
}

}  // namespace

void write_links(File& file, std::span<const LinkRecord> links, std::span<const topology::Fabric::Switch> switches) {
  file.group("/network/links", "one row per directed link that carried anything, in the order of link");
  file.scale("/network/links/row", links.size(), {"1", "row", "row of the columns"});
  write_column<std::uint32_t>(file, "link", links, {"1", "link", "number of the link, by dimension, then NPU"},
                              [](const LinkRecord& l) { return l.link; });
  write_column<std::uint32_t>(file, "dimension", links, {"1", "dimension", "dimension of the topology"},
                              [](const LinkRecord& l) { return l.dimension; });
  write_column<std::int64_t>(file, "from", links, {"1", "from", "NPU that it leads from; below 0: switch -1 - from"},
                             [](const LinkRecord& l) { return l.from; });
  write_column<std::int64_t>(file, "to", links, {"1", "to", "NPU that it leads to; below 0: switch -1 - to"},
                             [](const LinkRecord& l) { return l.to; });
  write_column<std::uint64_t>(file, "messages", links, {"1", "messages", "messages that it served"},
                              [](const LinkRecord& l) { return l.statistics.messages; });
  write_column<std::uint64_t>(file, "bytes", links, {"byte", "bytes", "bytes of these messages"},
                              [](const LinkRecord& l) { return l.statistics.bytes.count(); });
  write_column<std::int64_t>(file, "busy_time", links, {"ps", "busy time", "time in which it served messages"},
                             [](const LinkRecord& l) { return l.statistics.busy.ps(); });
  write_column<std::int64_t>(file, "queueing_time", links,
                             {"ps", "queueing time", "time that messages waited for it, summed over messages"},
                             [](const LinkRecord& l) { return l.statistics.queueing.ps(); });
  write_column<std::uint32_t>(
      file, "peak_queue", links,
      {"1", "peak queue", "most messages that waited for it at a time, the one in service not counted"},
      [](const LinkRecord& l) { return l.statistics.peak_queue; });
  file.group("/network/switches", "one row per switch");
  file.scale("/network/switches/switch", switches.size(), {"1", "switch", "number of the switch, by dimension"});
  std::vector<std::uint32_t> dimensions;
  std::vector<std::string> names;
  for (const topology::Fabric::Switch& a_switch : switches) {
    dimensions.push_back(a_switch.dimension);
    names.push_back(a_switch.name);
  }
  file.column<std::uint32_t>("/network/switches/dimension", dimensions,
                             {"1", "dimension", "dimension of the topology"});
  file.strings("/network/switches/name", names, {"1", "name", "its kind, and which of its kind in the dimension"});
  for (const char* name : {"dimension", "name"})
    file.attach(std::string("/network/switches/") + name, "/network/switches/switch");
}

}  // namespace orrery::results
