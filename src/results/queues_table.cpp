#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "columns.hpp"
#include "orrery/network/flow_records.hpp"
#include "tables.hpp"

namespace orrery::results {
namespace {

using network::PauseRecord;
using network::QueueRecord;
using network::ReductionRecord;

const std::array<Column<QueueRecord>, 6> queue_columns{{
    {"link", {"1", "link", "number of the link"}, [](const QueueRecord& q) { return q.link; }},
    {"start",
     {"ps", "start", "when the interval begins"},
     [](const QueueRecord& q) { return static_cast<std::int64_t>(q.bin) << q.shift; }},
    {"mean_queue",
     {"byte", "mean queue", "bytes that waited for the link, the mean over the interval"},
     [](const QueueRecord& q) { return q.mean(); }},
    {"deepest_queue",
     {"byte", "deepest queue", "most bytes that waited in the interval"},
     [](const QueueRecord& q) { return q.deepest; }},
    {"marks", {"1", "marks", "packets that were marked as they left"}, [](const QueueRecord& q) { return q.marks; }},
    {"stopped",
     {"ps", "time stopped", "by pause frames, in the interval"},
     [](const QueueRecord& q) { return q.stopped.ps(); }},
}};

const std::array<Column<PauseRecord>, 6> pause_columns{{
    {"link", {"1", "link", "number of the link"}, [](const PauseRecord& p) { return p.link; }},
    {"pauses", {"1", "pauses", "pause frames that stopped the link"}, [](const PauseRecord& p) { return p.pauses; }},
    {"total",
     {"ps", "time stopped", "until the link was let go on"},
     [](const PauseRecord& p) { return p.total.ps(); }},
    {"longest",
     {"ps", "longest", "longest time stopped at a stretch"},
     [](const PauseRecord& p) { return p.longest.ps(); }},
    {"first", {"ps", "first", "when the first pause began"}, [](const PauseRecord& p) { return p.first.ps(); }},
    {"last", {"ps", "last", "when the last pause ended"}, [](const PauseRecord& p) { return p.last.ps(); }},
}};

const std::array<Column<ReductionRecord>, 4> reduction_columns{{
    {"device", {"1", "device", "-1 - s for switch s of the network"}, [](const ReductionRecord& r) { return r.node; }},
    {"operations",
     {"1", "operations", "operations that the switch has carried out"},
     [](const ReductionRecord& r) { return r.operations; }},
    {"packets",
     {"1", "packets", "packets to which the switch has added all contributions"},
     [](const ReductionRecord& r) { return r.packets; }},
    {"most_slots",
     {"1", "most slots", "most slots in use at a time"},
     [](const ReductionRecord& r) { return r.most_slots; }},
}};

}  // namespace

void write_reductions(Output& output, const network::PacketRecords& mine) {
  auto all = output.world().gather(std::span<const ReductionRecord>(mine.reductions), Rank(0));
  output.on_root([&](File& file) {
    if (all.empty()) return;
    std::ranges::sort(all, std::ranges::greater(), &ReductionRecord::node);
    file.group("/network/reductions", "one row per switch that has reduced");
    write_table(file, "/network/reductions", reduction_columns, "row", {"1", "row", "row of the columns"},
                std::span<const ReductionRecord>(all));
  });
}

void write_queues(Output& output, const NetworkDescription& network, const network::PacketRecords& mine) {
  if (network.recording.queue_bins == 0) return;
  network::PacketRecords all;
  all.queues = output.world().gather(std::span<const QueueRecord>(mine.queues), Rank(0));
  all.pauses = output.world().gather(std::span<const PauseRecord>(mine.pauses), Rank(0));
  output.on_root([&](File& file) {
    network::put_in_order(all);
    const std::uint32_t shift = all.queues.empty() ? 0 : all.queues.front().shift;
    file.group("/network/queues",
               "one row per link and interval of time in which something waited, was marked or stopped");
    file.attribute("/network/queues", "interval", std::int64_t{1} << shift);
    file.scale("/network/queues/row", all.queues.size(), {"1", "row", "row of the columns"});
    create_columns(file, "/network/queues", queue_columns, all.queues.size(), "row", File::Layout::compressed);
    write_columns(file, "/network/queues", queue_columns, 0, std::span<const QueueRecord>(all.queues));
    file.group("/network/pauses", "one row per link that was stopped; the end that it leads to stopped it");
    write_table(file, "/network/pauses", pause_columns, "row", {"1", "row", "row of the columns"},
                std::span<const PauseRecord>(all.pauses));
  });
}

}  // namespace orrery::results
