#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "columns.hpp"
#include "orrery/base/error.hpp"
#include "orrery/network/flow_records.hpp"
#include "orrery/results/read.hpp"
#include "source.hpp"
#include "tables.hpp"

namespace orrery::results {
namespace {

using network::FlowClass;
using network::FlowLinkRecord;
using network::FlowRecord;
using network::Spread;

constexpr const char* flows_group = "/network/flows";
constexpr const char* flow_links_group = "/network/flow_links";

const std::array<Column<FlowRecord>, 8> flow_columns{{
    {"source", {"1", "source", "NPU that sends"}, [](const FlowRecord& f) { return f.source; }},
    {"destination", {"1", "destination", "NPU that receives"}, [](const FlowRecord& f) { return f.destination; }},
    {"number",
     {"1", "number", "number among the messages of its source"},
     [](const FlowRecord& f) { return f.number; }},
    {"group", {"1", "group", "index into /groups; -1: of no collective"}, [](const FlowRecord& f) { return f.label; }},
    {"bytes", {"byte", "bytes", "size of the message"}, [](const FlowRecord& f) { return f.bytes; }},
    {"start", {"ps", "start", "time at which the message was sent"}, [](const FlowRecord& f) { return f.start.ps(); }},
    {"received",
     {"ps", "received", "time at which its last byte was at the destination; -1: never"},
     [](const FlowRecord& f) { return f.received.ps(); }},
    {"alone",
     {"ps", "time alone", "what it takes from start to received in an empty network"},
     [](const FlowRecord& f) { return f.alone.ps(); }},
}};

std::vector<std::string> class_kinds() { return {"all", "size", "group"}; }

template <Spread FlowClass::*spread, double Spread::*value>
double spread_value(const FlowClass& of) {
  return of.*spread.*value;
}

const std::array<Column<FlowClass>, 19> class_columns{{
    {"kind",
     {"1", "kind", "index into the attribute values: what the messages have in common"},
     [](const FlowClass& c) { return static_cast<std::int8_t>(c.kind); },
     class_kinds},
    {"group", {"1", "group", "index into /groups; -1: none"}, [](const FlowClass& c) { return c.label; }},
    {"least_bytes",
     {"byte", "least bytes", "size of the smallest message"},
     [](const FlowClass& c) { return c.least_bytes; }},
    {"most_bytes",
     {"byte", "most bytes", "size of the largest message"},
     [](const FlowClass& c) { return c.most_bytes; }},
    {"flows", {"1", "messages", "number of messages that have come"}, [](const FlowClass& c) { return c.flows; }},
    {"time_mean", {"ps", "mean time", "from start to the last byte"}, spread_value<&FlowClass::time, &Spread::mean>},
    {"time_p50", {"ps", "median time", ""}, spread_value<&FlowClass::time, &Spread::p50>},
    {"time_p90", {"ps", "time, 90 %", ""}, spread_value<&FlowClass::time, &Spread::p90>},
    {"time_p95", {"ps", "time, 95 %", ""}, spread_value<&FlowClass::time, &Spread::p95>},
    {"time_p99", {"ps", "time, 99 %", ""}, spread_value<&FlowClass::time, &Spread::p99>},
    {"time_p99_9", {"ps", "time, 99.9 %", ""}, spread_value<&FlowClass::time, &Spread::p99_9>},
    {"time_max", {"ps", "longest time", ""}, spread_value<&FlowClass::time, &Spread::most>},
    {"slowdown_mean",
     {"1", "mean slowdown", "time over the time in an empty network"},
     spread_value<&FlowClass::slowdown, &Spread::mean>},
    {"slowdown_p50", {"1", "median slowdown", ""}, spread_value<&FlowClass::slowdown, &Spread::p50>},
    {"slowdown_p90", {"1", "slowdown, 90 %", ""}, spread_value<&FlowClass::slowdown, &Spread::p90>},
    {"slowdown_p95", {"1", "slowdown, 95 %", ""}, spread_value<&FlowClass::slowdown, &Spread::p95>},
    {"slowdown_p99", {"1", "slowdown, 99 %", ""}, spread_value<&FlowClass::slowdown, &Spread::p99>},
    {"slowdown_p99_9", {"1", "slowdown, 99.9 %", ""}, spread_value<&FlowClass::slowdown, &Spread::p99_9>},
    {"slowdown_max", {"1", "largest slowdown", ""}, spread_value<&FlowClass::slowdown, &Spread::most>},
}};

const std::array<Column<FlowLinkRecord>, 6> flow_link_columns{{
    {"flow", {"1", "flow", "row of /network/flows"}, [](const FlowLinkRecord& u) { return u.number; }},
    {"link", {"1", "link", "number of the link"}, [](const FlowLinkRecord& u) { return u.link; }},
    {"packets", {"1", "packets", "packets with data that passed"}, [](const FlowLinkRecord& u) { return u.packets; }},
    {"first",
     {"ps", "first", "when the first packet came to the link, or began to leave its NPU"},
     [](const FlowLinkRecord& u) { return u.first.ps(); }},
    {"last", {"ps", "last", "when the last packet had left"}, [](const FlowLinkRecord& u) { return u.last.ps(); }},
    {"waited",
     {"ps", "waited", "time in the queue of the link, summed over packets"},
     [](const FlowLinkRecord& u) { return u.waited.ps(); }},
}};

/// Replaces the names of messages, which are source and number, by their rows. Orders by message, then by time.
void number_rows(std::vector<FlowLinkRecord>& links, const std::vector<FlowRecord>& flows) {
  const auto name_of = [](const auto& of) { return std::pair(of.source, of.number); };
  for (FlowLinkRecord& link : links)
    link.number =
        static_cast<std::uint32_t>(std::ranges::lower_bound(flows, name_of(link), {}, name_of) - flows.begin());
  std::ranges::sort(links, {},
                    [](const FlowLinkRecord& link) { return std::tuple(link.number, link.first, link.link); });
}

}  // namespace

void write_flows(Output& output, const NetworkDescription& network, const network::PacketRecords& mine,
                 std::span<const std::uint32_t> group_position) {
  if (!network.recording.flows) return;
  network::FlowRecords all{
      output.world().gather(std::span<const FlowRecord>(mine.flows.begun), Rank(0)),
      output.world().gather(std::span<const network::FlowRecords::Arrival>(mine.flows.arrivals), Rank(0))};
  auto links = output.world().gather(std::span<const FlowLinkRecord>(mine.links), Rank(0));
  output.on_root([&](File& file) {
    auto flows = network::join_arrivals(std::move(all));
    for (FlowRecord& flow : flows)
      if (flow.label != FlowRecord::no_label)
        flow.label = static_cast<std::int32_t>(group_position[static_cast<std::size_t>(flow.label)]);
    file.group(flows_group, "one row per message, in the order of sources and of their messages");
    file.scale(fmt::format("{}/flow", flows_group), flows.size(), {"1", "flow", "row of the columns"});
    create_columns(file, flows_group, flow_columns, flows.size(), "flow", File::Layout::compressed);
    write_columns(file, flows_group, flow_columns, 0, std::span<const FlowRecord>(flows));
    number_rows(links, flows);
    file.group(flow_links_group, "one row per message and link that it passed, in the order of messages and of time");
    file.scale(fmt::format("{}/row", flow_links_group), links.size(), {"1", "row", "row of the columns"});
    create_columns(file, flow_links_group, flow_link_columns, links.size(), "row", File::Layout::compressed);
    write_columns(file, flow_links_group, flow_link_columns, 0, std::span<const FlowLinkRecord>(links));
    const auto classes = network::classify(flows);
    file.group("/network/flow_classes", "how long messages took: all of them, by size, and by group");
    write_table(file, "/network/flow_classes", class_columns, "row", {"1", "row", "row of the columns"},
                std::span<const FlowClass>(classes));
  });
}

}  // namespace orrery::results
