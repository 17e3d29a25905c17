#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <limits>
#include <memory>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "format.hpp"
#include "gather.hpp"
#include "hdf5_file.hpp"
#include "links_table.hpp"
#include "memory_table.hpp"
#include "metrics_table.hpp"
#include "orrery/base/error.hpp"
#include "orrery/base/output_file.hpp"
#include "orrery/base/version.hpp"
#include "orrery/communicator/record.hpp"
#include "orrery/memory/record.hpp"
#include "orrery/network/record.hpp"
#include "orrery/npu/record.hpp"
#include "orrery/parallel/environment.hpp"
#include "orrery/results/results.hpp"
#include "tables.hpp"

namespace orrery::results {
namespace {

using communicator::CollectiveRecord;
using memory::UsageRecord;
using npu::NpuRecord;
using npu::TimelineRecord;

/// The file on rank 0; on the other ranks nothing.
struct Output {
  explicit Output(const std::filesystem::path& path) : partial(path), file(partial.partial(), path) {}

  PartialFile partial;  // outlives `file`
  File file;
};

/// One write of a run's results: what all ranks know, the communicator, and on rank 0 the file.
class Writer {
 public:
  Writer(const RunDescription& run, const RankResults& mine, parallel::Communicator& world)
      : run_(run), mine_(mine), world_(world) {}

  Gathered write(const std::filesystem::path& path) {
    world_.agree([&] {
      if (world_.is_root()) output_ = std::make_unique<Output>(path);
    });
    configuration();
    npus();
    groups();
    collectives();
    network();
    links();
    memory();
    metrics();
    timeline();
    local_memory();
    kernel();
    attributes();
    world_.agree([&] {
      if (!world_.is_root()) return;
      file().close();
      output_->partial.commit_durably();
    });
    return std::move(gathered_);
  }

 private:
  File& file() { return output_->file; }
  /// Runs `body` on rank 0; all ranks throw if it throws.
  template <class Body>
  void on_root(Body body) {
    world_.agree([&] {
      if (world_.is_root()) body();
    });
  }

  void configuration();
  void inputs(const std::string& group, std::span<const std::pair<std::string, std::string>> texts);
  void npus();
  void groups();
  void collectives();
  void network();
  void links();
  void memory();
  void metrics();
  void timeline();
  void local_memory();
  void kernel();
  void attributes();
  std::vector<CollectiveRecord> renumbered_collectives() const;
  std::vector<TimelineRecord> renumbered_timeline(std::vector<std::string>& names);
  void create_timeline(std::span<const std::int64_t> rows, std::span<const std::string> names);

  const RunDescription& run_;
  const RankResults& mine_;
  parallel::Communicator& world_;
  std::unique_ptr<Output> output_;
  std::vector<std::uint32_t> group_position_;  ///< place of each group in the file
  Time simulated_time_;                        ///< rank 0 only
  std::vector<std::int64_t> dimension_bytes_;  ///< the same
  Gathered gathered_;
};

void Writer::configuration() {
  on_root([&] {
    file().group("/config", "what was simulated");
    file().text("/config/resolved", run_.resolved_configuration,
                {"", "resolved configuration", "the whole configuration as YAML; it can be run again"});
    inputs("/config/inputs", run_.inputs);
  });
}

/// Each under the last part of its name; a number tells equal ones apart. Rank 0 only.
void Writer::inputs(const std::string& group, std::span<const std::pair<std::string, std::string>> texts) {
  file().group(group, "the text inputs, verbatim");
  std::set<std::string> taken;
  for (const auto& [name, text] : texts) {
    std::string base = name.substr(name.find_last_of('/') + 1);
    if (base.empty() || base == ".") base = "input";
    std::string free = base;
    for (int next = 2; !taken.insert(free).second; ++next) free = fmt::format("{}.{}", base, next);
    file().text(group + "/" + free, text, {"", name, "an input file as it was read"});
  }
}

void Writer::npus() {
  on_root([&] {
    file().group("/npus", "one row per NPU");
    file().scale("/npus/npu", run_.num_npus, {"1", "NPU", "number of the NPU, dimension 0 of the topology fastest"});
    create_columns(file(), "/npus", format::npu_columns, run_.num_npus, "npu", File::Layout::contiguous);
  });
  const std::vector<std::int64_t> one_each(run_.num_npus, 1);
  auto consume = [&](std::uint64_t first, std::span<const NpuRecord> records) {
    for (std::size_t i = 0; i < records.size(); ++i) {
      const NpuRecord& npu = records[i];
      ensure(npu.npu.value() == first + i, "every NPU has one record");
      ensure(run_.status != Status::complete ||
                 npu.compute + npu.cpu + npu.exposed_communication + npu.exposed_memory + npu.idle == npu.finish,
             "the times of an NPU add up to its finish time");
      simulated_time_ = std::max(simulated_time_, npu.finish);
    }
    write_columns(file(), "/npus", format::npu_columns, first, records);
    gathered_.npus.insert(gathered_.npus.end(), records.begin(), records.end());
  };
  gather_in_order<NpuRecord>(
      world_, mine_.npus, one_each, [](const NpuRecord& npu) { return npu.npu.index(); },
      [](const NpuRecord&, const NpuRecord&) { return false; }, consume);
}

/// Groups are written in the order of their names and members, however they were numbered in the run.
void Writer::groups() {
  std::vector<std::uint32_t> order(run_.groups.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return run_.groups[a] < run_.groups[b]; });
  group_position_.resize(order.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) group_position_[order[i]] = i;
  on_root([&] {
    std::vector<std::string> names;
    std::vector<std::uint64_t> offsets{0};
    std::vector<std::uint32_t> members;
    for (const auto index : order) {
      const trace::Group& group = run_.groups[index];
      names.push_back(group.name);
      for (const NpuId npu : group.members) members.push_back(npu.value());
      if (group.members.empty()) {
        members.resize(members.size() + run_.num_npus);
        std::iota(members.end() - run_.num_npus, members.end(), 0U);
      }
      offsets.push_back(members.size());
    }
    file().group("/groups", "process groups: group g has the members offsets[g] to offsets[g + 1] - 1");
    file().scale("/groups/group", names.size(), {"1", "group", "index of the process group"});
    file().strings("/groups/names", names, {"", "name", "name of the process group; empty: the world"});
    file().attach("/groups/names", "/groups/group");
    file().scale("/groups/bound", offsets.size(), {"1", "bound", "index of an offset"});
    file().column<std::uint64_t>(
        "/groups/offsets", offsets,
        {"1", "offset", "index into members of the group's first member; the last value is the number of all members"});
    file().attach("/groups/offsets", "/groups/bound");
    file().scale("/groups/member", members.size(), {"1", "member", "row of members"});
    file().column<std::uint32_t>("/groups/members", members,
                                 {"1", "member", "NPU, in the order in which the group lists it"});
    file().attach("/groups/members", "/groups/member");
  });
}

/// With groups as in the file, in the order of group and ordinal.
std::vector<CollectiveRecord> Writer::renumbered_collectives() const {
  std::vector<CollectiveRecord> records = mine_.collectives;
  for (CollectiveRecord& record : records) {
    ensure(record.group.index() < group_position_.size(), "the group of a collective is known");
    record.group = GroupId(group_position_[record.group.index()]);
  }
  std::sort(records.begin(), records.end(), [](const auto& a, const auto& b) { return a.group < b.group; });
  return records;
}

void Writer::collectives() {
  std::vector<CollectiveRecord> records;
  world_.agree([&] { records = renumbered_collectives(); });
  std::vector<std::int64_t> rows(run_.groups.size(), 0);
  for (const auto& record : records) ++rows[record.group.index()];
  world_.sum(rows);
  const auto total = static_cast<std::uint64_t>(std::accumulate(rows.begin(), rows.end(), std::int64_t{0}));
  std::int64_t all = 0;
  for (const auto& sum : mine_.collective_sums) all += static_cast<std::int64_t>(sum.count);
  world_.sum(std::span(&all, 1));

  on_root([&] {
    file().group("/collectives", "one row per recorded collective, in the order of group and ordinal");
    file().scale("/collectives/collective", total, {"1", "collective", "row of the columns"});
    file().attribute("/collectives", "recorded", static_cast<std::int64_t>(total));
    file().attribute("/collectives", "total", all);
    create_columns(file(), "/collectives", format::collective_columns, total, "collective", File::Layout::compressed);
  });
  auto consume = [&](std::uint64_t first, std::span<const CollectiveRecord> block) {
    write_columns(file(), "/collectives", format::collective_columns, first, block);
  };
  // Every field takes part, so that the order is the same wherever the records come from.
  auto before = [](const CollectiveRecord& a, const CollectiveRecord& b) {
    return std::tuple(a.ordinal, a.first_arrival, a.last_arrival, a.finish, a.kind, a.size, a.members) <
           std::tuple(b.ordinal, b.first_arrival, b.last_arrival, b.finish, b.kind, b.size, b.members);
  };
  gather_in_order<CollectiveRecord>(
      world_, records, rows, [](const CollectiveRecord& c) { return c.group.index(); }, before, consume);
}

/// of_ranks: [ranks][dimensions]. Throws Error (bad_input) if a sum over ranks does not fit.
std::vector<std::int64_t> sums_of_bytes(std::span<const std::int64_t> of_ranks, std::size_t dimensions) {
  std::vector<std::int64_t> sums(dimensions, 0);
  for (std::size_t i = 0; i < of_ranks.size(); ++i) {
    const std::size_t d = i % dimensions;
    // The largest number stands for what did not fit on a rank.
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    if (__builtin_add_overflow(sums[d], of_ranks[i], &sums[d]) || sums[d] == most)
      throw Error(ErrorCode::bad_input, {},
                  fmt::format("in dimension {} of the topology the NPUs send more than 2^63 - 1 bytes in all, the most "
                              "that results hold",
                              d),
                  {}, "Simulate fewer iterations, or a part of the system.");
  }
  return sums;
}

/// of_ranks: [ranks][dimensions]. In ps; added as whole numbers, so that the partition does not change the sum.
std::vector<double> sums_of_times(std::span<const SumOfTimes> of_ranks, std::size_t dimensions) {
  std::vector<SumOfTimes> sums(dimensions, 0);
  for (std::size_t i = 0; i < of_ranks.size(); ++i) sums[i % dimensions] += of_ranks[i];
  return {sums.begin(), sums.end()};
}

void Writer::network() {
  const std::size_t dimensions = run_.dimension_sizes.size();
  std::vector<std::int64_t> bytes(dimensions, 0);
  std::vector<SumOfTimes> busy(dimensions, 0);
  world_.agree([&] {
    ensure(mine_.network.bytes.size() <= dimensions && mine_.network.busy_time.size() <= dimensions,
           "network figures are per dimension");
    ensure(run_.links.empty() || run_.links.size() == dimensions, "links are per dimension");
  });
  for (std::size_t d = 0; d < mine_.network.bytes.size(); ++d)
    bytes[d] = static_cast<std::int64_t>(std::min(mine_.network.bytes[d], Bytes::most()).count());
  std::ranges::copy(mine_.network.busy_time, busy.begin());
  const auto bytes_of_ranks = world_.gather(std::span<const std::int64_t>(bytes), Rank(0));
  const auto busy_of_ranks = world_.gather(std::span<const SumOfTimes>(busy), Rank(0));
  on_root([&] {
    const auto all_bytes = sums_of_bytes(bytes_of_ranks, dimensions);
    const auto busy_time = sums_of_times(busy_of_ranks, dimensions);
    dimension_bytes_ = all_bytes;
    std::vector<double> utilisation(dimensions, 0);
    for (std::size_t d = 0; d < dimensions; ++d) {
      const auto links = static_cast<double>(run_.links.empty() ? run_.num_npus : run_.links[d]);
      if (links > 0 && simulated_time_ > Time::zero())  // a dimension of one NPU has none
        utilisation[d] = busy_time[d] / (links * static_cast<double>(simulated_time_.ps()));
    }
    file().group("/network", "one row per dimension of the topology");
    file().scale("/network/dimension", dimensions, {"1", "dimension", "dimension of the topology, 0 innermost"});
    file().column<std::uint32_t>("/network/size", run_.dimension_sizes,
                                 {"1", "size", "NPUs in a line of the dimension"});
    file().column<std::int64_t>("/network/bytes", all_bytes, {"byte", "bytes", "bytes sent by all NPUs"});
    file().column<double>("/network/busy_time", busy_time,
                          {"ps", "busy time", "time in which a link carried bytes, summed over links"});
    std::vector<std::uint32_t> sharers = run_.sharers;
    sharers.resize(dimensions, 1);
    file().column<std::uint32_t>(
        "/network/sharers", sharers,
        {"1", "sharers", "collectives of an NPU among which the bandwidth of the dimension is divided"});
    file().column<double>("/network/utilisation", utilisation,
                          {"1", "utilisation", "busy time over links times simulated time"});
    for (const char* name : {"size", "bytes", "busy_time", "sharers", "utilisation"})
      file().attach(std::string("/network/") + name, "/network/dimension");
  });
}

void Writer::links() {
  if (!run_.has_links) return;
  gathered_.links = world_.gather(std::span<const network::LinkRecord>(mine_.links), Rank(0));
  on_root([&] {
    std::ranges::sort(gathered_.links, {}, &network::LinkRecord::link);
    write_links(file(), gathered_.links, run_.switches);
  });
}

void Writer::memory() {
  const auto stages = world_.gather(std::span<const memory::MemoryStageRecord>(mine_.memory), Rank(0));
  on_root([&] {
    if (!stages.empty()) write_memory(file(), stages, simulated_time_);
  });
}

void Writer::metrics() {
  const auto collectives = world_.gather<communicator::CollectiveSum>(mine_.collective_sums, Rank(0));
  on_root([&] {
    if (run_.status != Status::complete) return;
    gathered_.metrics = metrics_of(gathered_.npus, dimension_bytes_, run_.iterations, run_.step, collectives);
    if (gathered_.metrics) write_metrics(file(), *gathered_.metrics);
  });
}

/// With names and groups as in the file. Names that no record has are left out: which of them a rank knows depends on
/// its NPUs.
std::vector<TimelineRecord> Writer::renumbered_timeline(std::vector<std::string>& names) {
  std::vector<std::uint32_t> position(mine_.timeline_names.size(), 0);
  std::vector<std::string> used;
  world_.agree([&] {
    for (const auto& record : mine_.timeline) {
      ensure(record.name < position.size(), "the name of a timeline record is known");
      ensure(record.group == TimelineRecord::no_group || record.group < group_position_.size(),
             "the group of a timeline record is known");
      position[record.name] = 1;
    }
  });
  for (std::size_t i = 0; i < position.size(); ++i) {
    if (position[i] == 1) {
      position[i] = static_cast<std::uint32_t>(used.size());
      used.push_back(mine_.timeline_names[i]);
    }
  }
  const auto global = intern(world_, used, names);
  std::vector<TimelineRecord> records = mine_.timeline;
  for (auto& record : records) {
    record.name = global[position[record.name]];
    if (record.group != TimelineRecord::no_group) record.group = group_position_[record.group];
  }
  return records;
}

void Writer::create_timeline(std::span<const std::int64_t> rows, std::span<const std::string> names) {
  file().group("/timeline",
               "one row per recorded node that ran: NPU i has the rows offsets[i] to offsets[i + 1] - 1, by start");
  const std::uint64_t total = create_offsets(file(), "/timeline", rows);
  file().scale("/timeline/name_id", names.size(), {"1", "name id", "what the column name holds"});
  file().strings("/timeline/names", names, {"", "name", "names of nodes, sorted"});
  file().attach("/timeline/names", "/timeline/name_id");
  std::int64_t nodes = 0;
  for (const auto& npu : gathered_.npus) nodes += static_cast<std::int64_t>(npu.nodes_completed);
  file().attribute("/timeline", "recorded", static_cast<std::int64_t>(total));
  file().attribute("/timeline", "total", nodes);
  create_columns(file(), "/timeline", format::timeline_columns, total, "row", File::Layout::compressed);
}

void Writer::timeline() {
  const auto rows = rows_of_npus(std::span<const TimelineRecord>(mine_.timeline), run_.num_npus, world_);
  if (rows.empty()) return;
  std::vector<std::string> names;
  const auto records = renumbered_timeline(names);
  on_root([&] { create_timeline(rows, names); });
  auto consume = [&](std::uint64_t first, std::span<const TimelineRecord> block) {
    write_columns(file(), "/timeline", format::timeline_columns, first, block);
  };
  gather_in_order<TimelineRecord>(
      world_, records, rows, [](const TimelineRecord& r) { return r.npu.index(); },
      [](const TimelineRecord& a, const TimelineRecord& b) {
        return std::tuple(a.start, a.node) < std::tuple(b.start, b.node);
      },
      consume);
}

void Writer::local_memory() {
  const std::span<const UsageRecord> mine = mine_.usage;
  const auto rows = rows_of_npus(mine, run_.num_npus, world_);
  if (rows.empty()) return;
  on_root([&] {
    file().group("/local_memory",
                 "one row per change of what the tensors in the local memory of an NPU take: NPU i has the rows "
                 "offsets[i] to offsets[i + 1] - 1, by time");
    const std::uint64_t total = create_offsets(file(), "/local_memory", rows);
    create_columns(file(), "/local_memory", format::usage_columns, total, "row", File::Layout::compressed);
  });
  auto consume = [&](std::uint64_t first, std::span<const UsageRecord> block) {
    write_columns(file(), "/local_memory", format::usage_columns, first, block);
  };
  gather_in_order<UsageRecord>(
      world_, mine, rows, [](const UsageRecord& r) { return r.npu.index(); },
      [](const UsageRecord&, const UsageRecord&) { return false; }, consume);
}

void Writer::kernel() {
  gathered_.ranks = world_.gather<KernelRecord>(std::span(&mine_.kernel, 1), Rank(0));
  const std::span<const KernelRecord> ranks = gathered_.ranks;
  on_root([&] {
    file().group("/kernel", "one row per MPI rank: how the simulation went, not what it found");
    if (!run_.kernel_inputs.empty()) inputs("/kernel/inputs", run_.kernel_inputs);
    file().scale("/kernel/rank", ranks.size(), {"1", "rank", "MPI rank"});
    for (const auto& quantity : format::kernel_quantities) {
      const std::string path = std::string("/kernel/") + quantity.name;
      if (quantity.count) {
        file().column<std::uint64_t>(
            path, column_of<std::uint64_t>(ranks, [&](const KernelRecord& r) { return r.*quantity.count; }),
            quantity.label);
      } else {
        file().column<double>(
            path, column_of<double>(ranks, [&](const KernelRecord& r) { return r.*quantity.seconds; }), quantity.label);
      }
      file().attach(path, "/kernel/rank");
    }
  });
}

void Writer::attributes() {
  const auto hosts = gather_texts(world_, std::span(&mine_.host, 1));
  on_root([&] {
    const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    file().attribute("/", "format", format::name);
    file().attribute("/", "format_version", format::version);
    file().attribute("/", "created", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now)));
    file().attribute("/", "orrery_version", version());
    file().attribute("/", "revision", revision());
    file().attribute("/", "command_line", run_.command_line);
    file().attribute("/", "mpi_library", parallel::library_version());
    file().attribute("/", "hdf5_version", hdf5_version());
    file().attribute("/", "num_ranks", std::int64_t{world_.size()});
    file().attribute("/", "hosts", hosts);
    file().attribute("/", "status", format::status_name(run_.status));
    if (run_.num_classes) file().attribute("/", "num_classes", std::int64_t{*run_.num_classes});
    file().attribute("/", "simulated_time", simulated_time_.ps());
    file().attribute("/", "wall_time", run_.wall_time);
  });
}

}  // namespace

Gathered write(const std::filesystem::path& path, const RunDescription& run, const RankResults& mine,
               parallel::Communicator& world) {
  return Writer(run, mine, world).write(path);
}

std::string hdf5_version() {
  start_library();
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  H5get_libversion(&major, &minor, &release);
  return fmt::format("{}.{}.{}", major, minor, release);
}

}  // namespace orrery::results
