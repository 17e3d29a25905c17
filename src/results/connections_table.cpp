#include <algorithm>
#include <array>
#include <span>
#include <tuple>
#include <vector>

#include "columns.hpp"
#include "orrery/network/flow_records.hpp"
#include "tables.hpp"

namespace orrery::results {
namespace {

using network::ConnectionRecord;

const std::array<Column<ConnectionRecord>, 10> connection_columns{{
    {"from", {"1", "from", "NPU that sends the data"}, [](const ConnectionRecord& c) { return c.source; }},
    {"to", {"1", "to", "NPU that receives the data"}, [](const ConnectionRecord& c) { return c.destination; }},
    {"connection",
     {"1", "connection", "number among the connections from one NPU to the other"},
     [](const ConnectionRecord& c) { return c.number; }},
    {"segments", {"1", "segments", "segments sent"}, [](const ConnectionRecord& c) { return c.segments; }},
    {"repeated",
     {"1", "segments sent again", "segments among them that were sent again"},
     [](const ConnectionRecord& c) { return c.repeated; }},
    {"timeouts", {"1", "time-outs", "time-outs of the sender"}, [](const ConnectionRecord& c) { return c.timeouts; }},
    {"round_trip",
     {"ps", "round trip", "smoothed round trip at the end; 0: never measured"},
     [](const ConnectionRecord& c) { return c.round_trip.ps(); }},
    {"greatest_window",
     {"byte", "greatest window", "greatest congestion window"},
     [](const ConnectionRecord& c) { return c.greatest_window; }},
    {"acknowledged",
     {"byte", "acknowledged", "bytes that the sender knows to have come"},
     [](const ConnectionRecord& c) { return c.acknowledged; }},
    {"retransmission_timeout",
     {"ps", "retransmission time-out", "time-out of the sender at the end"},
     [](const ConnectionRecord& c) { return c.timeout.ps(); }},
}};

}  // namespace

void write_connections(Output& output, const network::PacketRecords& mine) {
  auto connections = output.world().gather(std::span<const ConnectionRecord>(mine.connections), Rank(0));
  output.on_root([&](File& file) {
    if (connections.empty()) return;
    std::ranges::sort(connections, {},
                      [](const ConnectionRecord& c) { return std::tuple(c.source, c.destination, c.number); });
    file.group("/network/tcp", "one row per connection of TCP, by the NPUs of its ends");
    write_table(file, "/network/tcp", connection_columns, "row", {"1", "row", "row of the columns"},
                std::span<const ConnectionRecord>(connections));
  });
}

}  // namespace orrery::results
