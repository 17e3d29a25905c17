#include "orrery/results/read.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>

#include "format.hpp"
#include "orrery/base/error.hpp"
#include "orrery/memory/record.hpp"
#include "orrery/npu/record.hpp"
#include "source.hpp"

namespace orrery::results {
KernelTable read_kernel(const std::filesystem::path& path) {
  const Source source(path);
  source.require_version();
  KernelTable table{source.text("status"), source.number<double>("wall_time"), {}};
  const auto num_ranks = source.number<std::int64_t>("num_ranks");
  if (num_ranks < 1) source.fail(fmt::format("is of {} ranks", num_ranks));
  const auto fill = [&]<class T>(const std::string& column, T KernelRecord::*member) {
    const auto values = source.column<T>(column);
    if (values.size() != static_cast<std::size_t>(num_ranks))
      source.fail(fmt::format("{} has {} rows for {} ranks", column, values.size(), num_ranks));
    table.ranks.resize(values.size());
    for (std::size_t rank = 0; rank < values.size(); ++rank) table.ranks[rank].*member = values[rank];
  };
  for (const auto& quantity : format::kernel_quantities) {
    const std::string column = fmt::format("/kernel/{}", quantity.name);
    constexpr std::string_view later[] = {"events_sent", "posts_sent", "waits"};  // than files of version 0.1.0
    if (std::ranges::find(later, quantity.name) != std::end(later) && !source.has(column.c_str())) continue;
    if (quantity.count != nullptr)
      fill(column, quantity.count);
    else
      fill(column, quantity.seconds);
  }
  return table;
}

struct Timeline::State {
  explicit State(const std::filesystem::path& path) : source(path) {
    source.require_version();
    if (!source.has("/timeline"))
      throw Error(ErrorCode::bad_input, {.file = path.string()}, "holds no timeline",
                  "results of a run with --timeline", "Run it again with --timeline.");
    has_messages = source.has("/timeline/bytes");
    const std::span columns(format::timeline_columns);
    nodes.emplace(source, "/timeline", columns.first(has_messages ? columns.size() : format::first_timeline_columns));
    names = source.texts("/timeline/names");
    groups = source.texts("/groups/names");
    if (!source.has("/local_memory")) return;
    usage.emplace(source, "/local_memory", format::usage_columns);
    if (usage->num_npus() != nodes->num_npus()) source.fail("/local_memory is not whole");
  }

  Source source;  // before its datasets, which are closed first
  std::optional<NpuTable> nodes, usage;
  bool has_messages = false;  // the timeline says which data nodes move, and to whom
  std::vector<std::string> names, groups;
};

Timeline::Timeline(const std::filesystem::path& path) : state_(std::make_unique<State>(path)) {}
Timeline::~Timeline() = default;

std::uint32_t Timeline::num_npus() const { return static_cast<std::uint32_t>(state_->nodes->num_npus()); }

std::vector<npu::TimelineRecord> Timeline::rows(NpuId npu) const {
  const NpuTable& table = *state_->nodes;
  const auto node = table.read<std::uint64_t>("node", npu);
  const auto start = table.read<std::int64_t>("start", npu);
  const auto finish = table.read<std::int64_t>("finish", npu);
  const auto kind = table.read<std::int8_t>("kind", npu);
  const auto name = table.read<std::uint32_t>("name", npu);
  const auto group = table.read<std::int32_t>("group", npu);
  std::vector<npu::TimelineRecord> records;
  for (std::size_t i = 0; i < node.size(); ++i) {
    if (name[i] >= state_->names.size() || kind[i] < 0 || kind[i] > static_cast<std::int8_t>(trace::NodeKind::host) ||
        group[i] < -1 || (group[i] >= 0 && static_cast<std::size_t>(group[i]) >= state_->groups.size()) ||
        start[i] < 0 || finish[i] < start[i])
      state_->source.fail(fmt::format("row {} of /timeline makes no sense", table.first(npu) + i));
    records.push_back({.npu = npu,
                       .group = static_cast<std::uint32_t>(group[i]),
                       .node = node[i],
                       .start = Time::from_ps(start[i]),
                       .finish = Time::from_ps(finish[i]),
                       .kind = static_cast<trace::NodeKind>(kind[i]),
                       .name = name[i]});
  }
  if (state_->has_messages) add_messages(npu, records);
  return records;
}

void Timeline::add_messages(NpuId npu, std::vector<npu::TimelineRecord>& records) const {
  const NpuTable& table = *state_->nodes;
  const auto bytes = table.read<std::int64_t>("bytes", npu);
  const auto peer = table.read<std::int32_t>("peer", npu);
  const auto tag = table.read<std::uint64_t>("tag", npu);
  const auto operation = table.read<std::int8_t>("operation", npu);
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (bytes[i] < 0 || peer[i] < -1 || operation[i] < npu::TimelineRecord::no_operation ||
        operation[i] > static_cast<std::int8_t>(trace::CollectiveKind::expert_combine))
      state_->source.fail(fmt::format("row {} of /timeline makes no sense", table.first(npu) + i));
    records[i].bytes = static_cast<std::uint64_t>(bytes[i]);
    records[i].peer = static_cast<std::uint32_t>(peer[i]);
    records[i].tag = tag[i];
    records[i].operation = operation[i];
  }
}

std::vector<memory::UsageRecord> Timeline::usage(NpuId npu) const {
  std::vector<memory::UsageRecord> records;
  if (!state_->usage) return records;
  const auto time = state_->usage->read<std::int64_t>("time", npu);
  const auto usage = state_->usage->read<std::int64_t>("usage", npu);
  for (std::size_t i = 0; i < time.size(); ++i) {
    if (time[i] < 0 || usage[i] < 0)
      state_->source.fail(fmt::format("row {} of /local_memory makes no sense", state_->usage->first(npu) + i));
    records.push_back({npu, Time::from_ps(time[i]), Bytes(static_cast<std::uint64_t>(usage[i]))});
  }
  return records;
}

const std::string& Timeline::name(std::uint32_t index) const { return state_->names[index]; }
const std::string& Timeline::group(std::uint32_t index) const { return state_->groups[index]; }

bool is_interrupted(const std::filesystem::path& path) {
  try {
    const Source source(path);
    source.require_format();
    return source.text("status") == format::status_name(Status::interrupted);
  } catch (const Error&) {
    return false;
  }
}

}  // namespace orrery::results
