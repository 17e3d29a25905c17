#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <tuple>
#include <vector>

#include "columns.hpp"
#include "format.hpp"
#include "gather.hpp"
#include "orrery/base/error.hpp"
#include "orrery/trace/graph.hpp"
#include "tables.hpp"

namespace orrery::results {

using npu::TimelineRecord;

namespace format {
namespace {

std::vector<std::string> node_kinds() {
  return {"instant", "cpu", "compute", "collective", "send", "receive", "mem-load", "mem-store", "host"};
}

/// Returns the texts of TimelineRecord::operation: index = trace::CollectiveKind. Numbers that no kind has are
/// "number N".
std::vector<std::string> operation_names() {
  using enum trace::CollectiveKind;
  std::vector<std::string> names(static_cast<std::size_t>(expert_combine) + 1);
  for (std::size_t number = 0; number < names.size(); ++number) names[number] = fmt::format("number {}", number);
  for (const auto kind : {all_reduce, reduce, all_gather, gather, scatter, broadcast, all_to_all, reduce_scatter,
                          barrier, expert_dispatch, expert_combine})
    names[static_cast<std::size_t>(kind)] = trace::name(kind);
  return names;
}

}  // namespace

const std::array<Column<TimelineRecord>, 11> timeline_columns{{
    {"npu", {"1", "NPU", "number of the NPU"}, [](const TimelineRecord& r) { return r.npu.value(); }},
    {"node",
     {"1", "node", "id of the node in the NPU's execution trace"},
     [](const TimelineRecord& r) { return r.node; }},
    {"start",
     {"ps", "start", "time at which the node was issued"},
     [](const TimelineRecord& r) { return r.start.ps(); }},
    {"finish",
     {"ps", "finish", "time at which the node completed"},
     [](const TimelineRecord& r) { return r.finish.ps(); }},
    {"kind",
     {"1", "kind", "index into the attribute values"},
     [](const TimelineRecord& r) { return static_cast<std::int8_t>(r.kind); },
     node_kinds},
    {"name", {"1", "name", "index into names"}, [](const TimelineRecord& r) { return r.name; }},
    {"group",
     {"1", "group", "index into /groups for a collective or an access of a group; -1 for other nodes"},
     [](const TimelineRecord& r) { return static_cast<std::int32_t>(r.group); }},
    {"bytes",
     {"byte", "bytes", "size of communication or of an access; 0 for other nodes"},
     [](const TimelineRecord& r) { return static_cast<std::int64_t>(r.bytes); }},
    {"peer",
     {"1", "peer", "NPU at the other end of a send or receive; -1 for other nodes"},
     [](const TimelineRecord& r) { return static_cast<std::int32_t>(r.peer); }},
    {"tag", {"1", "tag", "tag of a send or receive; 0 for other nodes"}, [](const TimelineRecord& r) { return r.tag; }},
    {"operation",
     {"1", "operation", "index into the attribute values for a collective or an access of a group; -1 for other nodes"},
     [](const TimelineRecord& r) { return r.operation; },
     operation_names},
}};

}  // namespace format

namespace {

/// The records of this rank with names and groups as in the file, and all names.
struct RenumberedTimeline {
  std::vector<TimelineRecord> records;
  std::vector<std::string> names;  // of all ranks, sorted
};

/// Leaves out names that no record has, because it depends on the NPUs of a rank which of them it knows. Collective.
RenumberedTimeline renumbered(const RankResults& mine, std::span<const std::uint32_t> group_position,
                              parallel::Communicator& world) {
  std::vector<std::uint32_t> position(mine.timeline_names.size(), 0);
  world.agree([&] {
    for (const auto& record : mine.timeline) {
      ensure(record.name < position.size(), "the name of a timeline record is known");
      ensure(record.group == TimelineRecord::no_group || record.group < group_position.size(),
             "the group of a timeline record is known");
      position[record.name] = 1;
    }
  });
  std::vector<std::string> used;
  for (std::size_t i = 0; i < position.size(); ++i)
    if (position[i] == 1) {
      position[i] = static_cast<std::uint32_t>(used.size());
      used.push_back(mine.timeline_names[i]);
    }
  RenumberedTimeline result;
  const auto global = intern(world, used, result.names);
  result.records = mine.timeline;
  for (auto& record : result.records) {
    record.name = global[position[record.name]];
    if (record.group != TimelineRecord::no_group) record.group = group_position[record.group];
  }
  return result;
}

void create_timeline(File& file, std::span<const std::int64_t> rows, std::span<const std::string> names,
                     std::int64_t nodes_completed) {
  file.group("/timeline",
             "one row per recorded node that ran: NPU i has the rows offsets[i] to offsets[i + 1] - 1, by start");
  const std::uint64_t total = create_offsets(file, "/timeline", rows);
  file.scale("/timeline/name_id", names.size(), {"1", "name id", "value of the column name"});
  file.strings("/timeline/names", names, {"", "name", "names of nodes, sorted"});
  file.attach("/timeline/names", "/timeline/name_id");
  file.attribute("/timeline", "recorded", static_cast<std::int64_t>(total));
  file.attribute("/timeline", "total", nodes_completed);
  create_columns(file, "/timeline", format::timeline_columns, total, "row", File::Layout::compressed);
}

std::vector<std::string> part_names() {
  std::vector<std::string> names;
  for (std::size_t part = 0; part < num_breakdown_parts; ++part) names.emplace_back(breakdown_name(part));
  return names;
}

const std::array<Column<PathSegment>, 6> path_columns{{
    {"start", {"ps", "start", "time at which the segment begins"}, [](const PathSegment& s) { return s.start.ps(); }},
    {"finish", {"ps", "finish", "time at which it ends"}, [](const PathSegment& s) { return s.finish.ps(); }},
    {"npu", {"1", "NPU", "number of the NPU"}, [](const PathSegment& s) { return s.npu.value(); }},
    {"node",
     {"1", "node", "id of the node in the NPU's execution trace; 0 where nothing ran"},
     [](const PathSegment& s) { return s.node; }},
    {"cause",
     {"1", "cause", "index into the attribute values: the column of /breakdown"},
     [](const PathSegment& s) { return static_cast<std::int8_t>(s.part); },
     part_names},
    {"name",
     {"1", "name", "index into /timeline/names; 0 where nothing ran"},
     [](const PathSegment& s) { return s.name; }},
}};

/// Returns what a summary tells of a critical path.
PathFigures figures_of(std::span<const PathSegment> path, std::span<const std::string> names) {
  constexpr std::size_t most_longest = 10;
  PathFigures figures;
  auto& stretches = figures.longest;
  Time longest_node;
  for (const PathSegment& segment : path) {
    const Time takes = segment.finish - segment.start;
    figures.length += takes;
    figures.parts[segment.part] += takes;
    if (stretches.empty() || stretches.back().npu != segment.npu) {
      stretches.push_back({segment.start, segment.start, segment.npu, {}, {}});
      longest_node = Time::zero();
    }
    auto& stretch = stretches.back();
    stretch.finish = segment.finish;
    stretch.parts[segment.part] += takes;
    if (takes <= longest_node) continue;
    longest_node = takes;
    stretch.longest_node = names[segment.name];
  }
  std::ranges::stable_sort(stretches, std::greater(),
                           [](const auto& stretch) { return stretch.finish - stretch.start; });
  if (stretches.size() > most_longest) stretches.resize(most_longest);
  return figures;
}

/// Writes /critical_path. Returns what a summary tells of it.
PathFigures write_path(File& file, std::span<const PathSegment> path, std::span<const std::string> names) {
  file.group(
      "/critical_path",
      "what the end of the run waited for, in the order of time: before each segment comes the one that it waited "
      "for");
  write_table(file, "/critical_path", path_columns, "row", {"1", "row", "row of the columns"}, path);
  return figures_of(path, names);
}

}  // namespace

PathFigures write_timeline(Output& output, const RunDescription& run, const RankResults& mine,
                           std::span<const std::uint32_t> group_position, std::int64_t nodes_completed) {
  const auto rows = rows_of_npus(std::span<const TimelineRecord>(mine.timeline), run.num_npus, output.world());
  PathFigures path;
  if (rows.empty()) return path;
  const auto [records, names] = renumbered(mine, group_position, output.world());
  output.on_root([&, &sorted = names](File& file) { create_timeline(file, rows, sorted, nodes_completed); });
  // The end of a run is that of its last iteration, whose nodes may not be recorded.
  const auto num_rows = std::accumulate(rows.begin(), rows.end(), std::uint64_t{0});
  const bool keeps = run.status == Status::complete && num_rows <= most_path_rows &&
                     num_rows == static_cast<std::uint64_t>(nodes_completed);
  std::vector<TimelineRecord> all;  // on rank 0, if the critical path is looked for
  auto consume = [&](std::uint64_t first, std::span<const TimelineRecord> block) {
    if (keeps) all.insert(all.end(), block.begin(), block.end());
    write_columns(output.file(), "/timeline", format::timeline_columns, first, block);
  };
  gather_in_order<TimelineRecord>(
      output.world(), records, rows, [](const TimelineRecord& r) { return r.npu.index(); },
      [](const TimelineRecord& a, const TimelineRecord& b) {
        return std::tuple(a.start, a.node) < std::tuple(b.start, b.node);
      },
      consume);
  output.on_root([&, &sorted = names](File& file) {
    if (keeps) path = write_path(file, critical_path(all), sorted);
  });
  return path;
}

}  // namespace orrery::results
