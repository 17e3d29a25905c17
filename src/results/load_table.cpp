#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "columns.hpp"
#include "format.hpp"
#include "orrery/base/error.hpp"
#include "orrery/results/load.hpp"
#include "orrery/results/read.hpp"
#include "source.hpp"
#include "tables.hpp"

namespace orrery::results {
namespace format {

using pdes::LoadEvents;
using pdes::LoadFlow;
using pdes::LoadReply;

const std::array<Column<LoadEvents>, 3> load_events_columns{{
    {"block", {"1", "block", "block of NPUs"}, [](const LoadEvents& row) { return row.block; }},
    {"bin", {"1", "bin", "bin of simulated time"}, [](const LoadEvents& row) { return row.bin; }},
    {"events",
     {"1", "events", "events that the block handled in the bin"},
     [](const LoadEvents& row) { return row.events; }},
}};

const std::array<Column<LoadFlow>, 5> load_flow_columns{{
    {"from", {"1", "from", "block that sent the events"}, [](const LoadFlow& row) { return row.from; }},
    {"to", {"1", "to", "block that the events were for"}, [](const LoadFlow& row) { return row.to; }},
    {"sent", {"1", "sent", "bin in which they were sent"}, [](const LoadFlow& row) { return row.sent; }},
    {"due", {"1", "due", "bin of the time that the events have"}, [](const LoadFlow& row) { return row.arrives; }},
    {"events", {"1", "events", "number of these events"}, [](const LoadFlow& row) { return row.events; }},
}};

const std::array<Column<LoadReply>, 4> load_reply_columns{{
    {"communicator",
     {"1", "communicator", "id in /load/communicators"},
     [](const LoadReply& row) { return row.communicator; }},
    {"last_arrival",
     {"1", "last arrival", "bin in which the last member joined"},
     [](const LoadReply& row) { return row.last_arrival; }},
    {"completion",
     {"1", "completion", "bin in which the first member completed"},
     [](const LoadReply& row) { return row.completion; }},
    {"count", {"1", "count", "number of such collectives"}, [](const LoadReply& row) { return row.count; }},
}};

}  // namespace format

namespace {

template <class Columns, class Record>
void write_rows(File& file, const std::string& group, std::string_view description, const Columns& columns,
                std::span<const Record> rows) {
  file.group(group, description);
  file.scale(group + "/row", rows.size(), {"1", "row", "row of the columns"});
  create_columns(file, group, columns, rows.size(), "row", File::Layout::compressed);
  write_columns(file, group, columns, 0, rows);
}

void write_communicators(File& file, std::span<const LoadCommunicator> communicators) {
  const std::string group = "/load/communicators";
  std::vector<std::uint32_t> ids, hosts, members;
  std::vector<std::uint64_t> offsets{0};
  for (const LoadCommunicator& communicator : communicators) {
    ids.push_back(communicator.id);
    hosts.push_back(communicator.host);
    members.insert(members.end(), communicator.blocks.begin(), communicator.blocks.end());
    offsets.push_back(members.size());
  }
  file.group(group, "communicators whose members are in several blocks");
  file.column<std::uint32_t>(group + "/id", ids, {"1", "id", "number of the communicator, ascending"});
  file.column<std::uint32_t>(group + "/host", hosts,
                             {"1", "host", "block of the NPU whose rank hosts the communicator"});
  file.column<std::uint64_t>(group + "/offsets", offsets, {"1", "offsets", "row i has its blocks from here on"});
  file.column<std::uint32_t>(group + "/blocks", members, {"1", "blocks", "blocks of the members"});
}

void write_attributes_of(File& file, const Load& load) {
  const pdes::LoadRecord& record = load.record;
  file.attribute("/load", "bin_width", static_cast<std::int64_t>(record.bin_width()));
  file.attribute("/load", "num_blocks", std::int64_t{record.num_blocks});
  file.attribute("/load", "num_npus", std::int64_t{load.num_npus});
  file.attribute("/load", "least_delay", record.least_delay.ps());
  file.attribute("/load", "runs_ahead", std::int64_t{load.runs_ahead});
}

/// Returns the record of all ranks on rank 0. Collective.
pdes::LoadRecord gathered(pdes::LoadRecord mine, parallel::Communicator& world) {
  std::array<std::int64_t, 2> largest{mine.shift, -mine.least_delay.ps()};
  world.maximum(largest);
  coarsen(mine, static_cast<std::uint32_t>(largest[0]));
  mine.least_delay = Time::from_ps(-largest[1]);
  mine.events = world.gather<pdes::LoadEvents>(mine.events, Rank(0));
  mine.flows = world.gather<pdes::LoadFlow>(mine.flows, Rank(0));
  mine.replies = world.gather<pdes::LoadReply>(mine.replies, Rank(0));
  limit_rows(mine);
  return mine;
}

}  // namespace

void write_load(Output& output, const std::optional<Load>& mine) {
  if (!mine) return;
  Load all = *mine;
  all.record = gathered(mine->record, output.world());
  output.on_root([&](File& file) {
    file.group("/load", "what contiguous blocks of NPUs did in bins of simulated time");
    write_attributes_of(file, all);
    write_rows(file, "/load/events", "events that blocks handled", format::load_events_columns,
               std::span<const pdes::LoadEvents>(all.record.events));
    write_rows(file, "/load/flows", "events from block to block", format::load_flow_columns,
               std::span<const pdes::LoadFlow>(all.record.flows));
    write_rows(file, "/load/replies", "collectives of several blocks", format::load_reply_columns,
               std::span<const pdes::LoadReply>(all.record.replies));
    write_communicators(file, all.communicators);
  });
}

namespace {

/// Fills one member of rows from a dataset. All datasets of a table have equally many rows.
template <class Row, class T>
void fill_column(const Source& source, const std::string& path, std::vector<Row>& rows, T Row::*member, bool is_first) {
  const auto values = source.column<T>(path);
  if (is_first) rows.resize(values.size());
  if (values.size() != rows.size())
    source.fail(fmt::format("{} has {} rows instead of {}", path, values.size(), rows.size()));
  for (std::size_t i = 0; i < values.size(); ++i) rows[i].*member = values[i];
}

std::vector<LoadCommunicator> read_communicators(const Source& source) {
  const auto ids = source.column<std::uint32_t>("/load/communicators/id");
  const auto hosts = source.column<std::uint32_t>("/load/communicators/host");
  const auto offsets = source.column<std::uint64_t>("/load/communicators/offsets");
  const auto blocks = source.column<std::uint32_t>("/load/communicators/blocks");
  if (hosts.size() != ids.size() || offsets.size() != ids.size() + 1 || offsets.back() != blocks.size() ||
      !std::ranges::is_sorted(offsets) || !std::ranges::is_sorted(ids))
    source.fail("/load/communicators is not whole");
  std::vector<LoadCommunicator> communicators;
  for (std::size_t i = 0; i < ids.size(); ++i)
    communicators.push_back({ids[i],
                             hosts[i],
                             {blocks.begin() + static_cast<std::ptrdiff_t>(offsets[i]),
                              blocks.begin() + static_cast<std::ptrdiff_t>(offsets[i + 1])}});
  return communicators;
}

void require_whole(const Source& source, const Load& load) {
  const pdes::LoadRecord& record = load.record;
  const std::uint32_t blocks = record.num_blocks, bins = pdes::most_bins(blocks);
  const auto is_known = [&](std::uint32_t id) {
    return std::ranges::binary_search(load.communicators, id, {}, &LoadCommunicator::id);
  };
  const bool is_whole =
      std::ranges::all_of(record.events, [&](const auto& row) { return row.block < blocks && row.bin < bins; }) &&
      std::ranges::all_of(record.flows,
                          [&](const auto& row) {
                            return row.from < blocks && row.to < blocks && row.sent <= row.arrives &&
                                   row.arrives < bins;
                          }) &&
      std::ranges::all_of(record.replies,
                          [&](const auto& row) {
                            return is_known(row.communicator) && row.last_arrival <= row.completion &&
                                   row.completion < bins;
                          }) &&
      std::ranges::all_of(load.communicators, [&](const LoadCommunicator& communicator) {
        return communicator.host < blocks && !communicator.blocks.empty() &&
               std::ranges::all_of(communicator.blocks, [&](std::uint32_t block) { return block < blocks; });
      });
  if (!is_whole) source.fail("/load makes no sense");
}

void read_attributes_of(const Source& source, Load& load) {
  const auto width = source.number_of<std::int64_t>("/load", "bin_width");
  const auto num_blocks = source.number_of<std::int64_t>("/load", "num_blocks");
  const auto num_npus = source.number_of<std::int64_t>("/load", "num_npus");
  const auto least_delay = source.number_of<std::int64_t>("/load", "least_delay");
  if (width < 1 || !std::has_single_bit(static_cast<std::uint64_t>(width)) || num_blocks < 1 ||
      num_blocks > most_load_blocks || num_npus < num_blocks || num_npus > std::int64_t{1} << 28U || least_delay < 0)
    source.fail("/load has attributes that make no sense");
  load.record.shift = static_cast<std::uint32_t>(std::countr_zero(static_cast<std::uint64_t>(width)));
  load.record.num_blocks = static_cast<std::uint32_t>(num_blocks);
  load.record.least_delay = Time::from_ps(least_delay);
  load.num_npus = static_cast<std::uint32_t>(num_npus);
  load.runs_ahead = source.number_of<std::int64_t>("/load", "runs_ahead") != 0;
}

}  // namespace

LoadTable read_load(const std::filesystem::path& path) {
  const Source source(path);
  source.require_version();
  if (!source.has("/load"))
    throw Error(ErrorCode::bad_input, {.file = path.string()}, "holds no load", "results of a run with --record-load",
                "Run it again with --record-load.");
  LoadTable table;
  Load& load = table.load;
  read_attributes_of(source, load);
  auto& [shift, num_blocks, least_delay, events, flows, replies] = load.record;
  fill_column(source, "/load/events/block", events, &pdes::LoadEvents::block, true);
  fill_column(source, "/load/events/bin", events, &pdes::LoadEvents::bin, false);
  fill_column(source, "/load/events/events", events, &pdes::LoadEvents::events, false);
  fill_column(source, "/load/flows/from", flows, &pdes::LoadFlow::from, true);
  fill_column(source, "/load/flows/to", flows, &pdes::LoadFlow::to, false);
  fill_column(source, "/load/flows/sent", flows, &pdes::LoadFlow::sent, false);
  fill_column(source, "/load/flows/due", flows, &pdes::LoadFlow::arrives, false);
  fill_column(source, "/load/flows/events", flows, &pdes::LoadFlow::events, false);
  fill_column(source, "/load/replies/communicator", replies, &pdes::LoadReply::communicator, true);
  fill_column(source, "/load/replies/last_arrival", replies, &pdes::LoadReply::last_arrival, false);
  fill_column(source, "/load/replies/completion", replies, &pdes::LoadReply::completion, false);
  fill_column(source, "/load/replies/count", replies, &pdes::LoadReply::count, false);
  load.communicators = read_communicators(source);
  require_whole(source, load);
  const KernelTable kernel = read_kernel(path);
  table.num_ranks = static_cast<int>(kernel.ranks.size());
  table.status = kernel.status;
  for (const KernelRecord& rank : kernel.ranks) {
    table.events += rank.events;
    table.busy_time += rank.busy_time;
  }
  return table;
}

}  // namespace orrery::results
