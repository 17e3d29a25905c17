#include <algorithm>
#include <array>
#include <span>
#include <tuple>
#include <vector>

#include "columns.hpp"
#include "orrery/network/flit_records.hpp"
#include "tables.hpp"

namespace orrery::results {
namespace {

using network::FlitRecord;

const std::array<Column<FlitRecord>, 10> flit_columns{{
    {"dimension",
     {"1", "dimension", "first of the dimensions that are simulated together"},
     [](const FlitRecord& f) { return f.dimension; }},
    {"kind",
     {"1", "kind", "0: from router to router; 1: from a router to its NPU; 2: from an NPU to its router"},
     [](const FlitRecord& f) { return static_cast<std::uint32_t>(f.kind); }},
    {"from", {"1", "from", "NPU at the start of the link"}, [](const FlitRecord& f) { return f.from; }},
    {"to", {"1", "to", "NPU at the end of the link"}, [](const FlitRecord& f) { return f.to; }},
    {"cycle", {"ps", "cycle", "time of a cycle"}, [](const FlitRecord& f) { return f.cycle.ps(); }},
    {"flits", {"1", "flits", "flits that passed the link"}, [](const FlitRecord& f) { return f.flits; }},
    {"starved_cycles",
     {"1", "cycles without credit", "cycles in which a flit waited for the link and had no credit"},
     [](const FlitRecord& f) { return f.starved; }},
    {"occupancy",
     {"1", "occupancy", "flits sent over the link whose credit is not back, summed over cycles"},
     [](const FlitRecord& f) { return f.occupancy; }},
    {"peak_occupancy",
     {"1", "peak occupancy", "most of these flits at a time"},
     [](const FlitRecord& f) { return f.peak; }},
    {"peak_waiting",
     {"1", "peak waiting", "most flits at a time that waited at the NPU, which holds any number (kind 2)"},
     [](const FlitRecord& f) { return f.waiting; }},
}};

}  // namespace

void write_flits(Output& output, const NetworkDescription& network, std::span<const FlitRecord> mine) {
  if (!network.has_flits) return;
  auto flits = output.world().gather(mine, Rank(0));
  output.on_root([&](File& file) {
    std::ranges::stable_sort(flits, {},
                             [](const FlitRecord& f) { return std::tuple(f.dimension, f.kind, f.from, f.to); });
    file.group("/network/flits", "one row per directed link that carried flits, by dimension, kind, from and to");
    write_table(file, "/network/flits", flit_columns, "row", {"1", "row", "row of the columns"},
                std::span<const FlitRecord>(flits));
  });
}

}  // namespace orrery::results
