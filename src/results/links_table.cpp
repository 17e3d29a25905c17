#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "columns.hpp"
#include "orrery/network/record.hpp"
#include "orrery/topology/fabric.hpp"
#include "tables.hpp"

namespace orrery::results {
namespace {

using network::LinkRecord;

const std::array<Column<LinkRecord>, 9> link_columns{{
    {"link", {"1", "link", "number of the link, by dimension, then NPU"}, [](const LinkRecord& l) { return l.link; }},
    {"dimension", {"1", "dimension", "dimension of the topology"}, [](const LinkRecord& l) { return l.dimension; }},
    {"from",
     {"1", "from", "NPU that the link starts at; below 0: switch -1 - from"},
     [](const LinkRecord& l) { return l.from; }},
    {"to",
     {"1", "to", "NPU that the link leads to; below 0: switch -1 - to"},
     [](const LinkRecord& l) { return l.to; }},
    {"messages",
     {"1", "messages", "number of messages that the link served"},
     [](const LinkRecord& l) { return l.statistics.messages; }},
    {"bytes",
     {"byte", "bytes", "bytes of these messages"},
     [](const LinkRecord& l) { return static_cast<std::uint64_t>(l.statistics.bytes.count()); }},
    {"busy_time",
     {"ps", "busy time", "time in which the link served messages"},
     [](const LinkRecord& l) { return l.statistics.busy.ps(); }},
    {"queueing_time",
     {"ps", "queueing time", "time for which messages waited for the link, summed over messages"},
     [](const LinkRecord& l) { return l.statistics.queueing.ps(); }},
    {"peak_queue",
     {"1", "peak queue", "largest number of messages that waited for the link, without the one in service"},
     [](const LinkRecord& l) { return l.statistics.peak_queue; }},
}};

const std::array<Column<LinkRecord>, 7> packet_columns{{
    {"link", {"1", "link", "number of the link, by dimension, then NPU"}, [](const LinkRecord& l) { return l.link; }},
    {"marks",
     {"1", "marks", "packets that a switch marked as they left by the link"},
     [](const LinkRecord& l) { return l.packets.marks; }},
    {"drops",
     {"1", "drops",
      "packets dropped that came by the other direction of the link, or with drop-tail and red were to leave by it"},
     [](const LinkRecord& l) { return l.packets.drops; }},
    {"pauses",
     {"1", "pauses", "pause frames that stopped the link"},
     [](const LinkRecord& l) { return l.packets.pauses; }},
    {"deepest_queue",
     {"byte", "deepest queue", "most bytes that waited for the link"},
     [](const LinkRecord& l) { return l.packets.deepest_queue; }},
    {"trims",
     {"1", "trims", "packets for the link of which a switch sent only the header"},
     [](const LinkRecord& l) { return l.packets.trims; }},
    {"credit_wait",
     {"ps", "credit wait", "time in which the link was free and lacked credit for packets that waited"},
     [](const LinkRecord& l) { return l.packets.credit_wait.ps(); }},
}};

void write_switches(File& file, std::span<const topology::Fabric::Switch> switches) {
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
  file.strings("/network/switches/name", names,
               {"1", "name", "kind of the switch, and its number among those of its kind in the dimension"});
  for (const char* name : {"dimension", "name"})
    file.attach(std::string("/network/switches/") + name, "/network/switches/switch");
}

}  // namespace

std::vector<LinkRecord> write_links(Output& output, const NetworkDescription& network,
                                    std::span<const LinkRecord> mine) {
  if (!network.has_links) return {};
  auto links = output.world().gather(mine, Rank(0));
  output.on_root([&](File& file) {
    std::ranges::sort(links, {}, &LinkRecord::link);
    file.group("/network/links", "one row per directed link that carried data, in ascending link order");
    write_table(file, "/network/links", link_columns, "row", {"1", "row", "row of the columns"},
                std::span<const LinkRecord>(links));
    write_switches(file, network.switches);
    if (!network.has_packets) return;
    file.group("/network/packets", "what packets met at each link that carried data, in ascending link order");
    write_table(file, "/network/packets", packet_columns, "row", {"1", "row", "row of the columns"},
                std::span<const LinkRecord>(links));
  });
  return links;
}

}  // namespace orrery::results
