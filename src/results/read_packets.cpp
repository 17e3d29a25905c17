#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "orrery/base/error.hpp"
#include "orrery/network/flow_records.hpp"
#include "orrery/results/read.hpp"
#include "source.hpp"

namespace orrery::results {
namespace {

/// Reads columns of one group into records.
template <class Record>
class RecordReader {
 public:
  RecordReader(const Source& source, std::string group) : source_(source), group_(std::move(group)) {}

  template <class T, class Set>
  void read(const char* column, Set set) {
    const auto values = source_.column<T>(fmt::format("{}/{}", group_, column));
    if (!has_any_) records_.resize(values.size());
    has_any_ = true;
    if (values.size() != records_.size()) source_.fail(fmt::format("{} is not whole", group_));
    for (std::size_t i = 0; i < values.size(); ++i) set(records_[i], values[i]);
  }
  template <class T>
  void read(const char* column, T Record::*member) {
    read<T>(column, [member](Record& record, T value) { record.*member = value; });
  }
  void read(const char* column, Time Record::*member) {
    read<std::int64_t>(column, [member](Record& record, std::int64_t ps) { record.*member = Time::from_ps(ps); });
  }
  std::vector<Record> take() { return std::move(records_); }

 private:
  const Source& source_;
  std::string group_;
  bool has_any_ = false;
  std::vector<Record> records_;
};

/// Opens results that have a group.
void require_group(const Source& source, const std::filesystem::path& path, const char* group, const char* option) {
  source.require_version();
  if (!source.has("/network") || !source.has(group))
    throw Error(ErrorCode::bad_input, {.file = path.string()}, fmt::format("holds no {}", group),
                fmt::format("results of a run on the packet network with {}", option), "Run it again with both.");
}

/// Returns what people call the ends of each link.
LinkNames read_links(const Source& source) {
  const auto link = source.column<std::uint32_t>("/network/links/link");
  const auto from = source.column<std::int64_t>("/network/links/from");
  const auto to = source.column<std::int64_t>("/network/links/to");
  const auto switches = source.texts("/network/switches/name");
  if (from.size() != link.size() || to.size() != link.size()) source.fail("/network/links is not whole");
  const auto name = [&](std::int64_t end) {
    if (end >= 0) return fmt::format("NPU {}", end);
    const auto number = static_cast<std::uint64_t>(-1 - end);
    if (number >= switches.size()) source.fail("/network/links names a switch that is not there");
    return switches[number];
  };
  LinkNames names;
  for (std::size_t i = 0; i < link.size(); ++i) names.ends[link[i]] = {name(from[i]), name(to[i])};
  return names;
}

}  // namespace

std::string LinkNames::of(std::uint32_t link) const {
  const auto found = ends.find(link);
  return found == ends.end() ? fmt::format("link {}", link)
                             : fmt::format("{} to {}", found->second.first, found->second.second);
}

FlowsTable read_flows(const std::filesystem::path& path) {
  using network::FlowLinkRecord;
  using network::FlowRecord;
  const Source source(path);
  require_group(source, path, "/network/flows", "--record-flows");
  FlowsTable table;
  RecordReader<FlowRecord> flows(source, "/network/flows");
  flows.read("source", &FlowRecord::source);
  flows.read("destination", &FlowRecord::destination);
  flows.read("number", &FlowRecord::number);
  flows.read("group", &FlowRecord::label);
  flows.read("bytes", &FlowRecord::bytes);
  flows.read("start", &FlowRecord::start);
  flows.read("received", &FlowRecord::received);
  flows.read("alone", &FlowRecord::alone);
  table.flows = flows.take();
  RecordReader<FlowLinkRecord> links(source, "/network/flow_links");
  links.read<std::uint32_t>("flow", [&](FlowLinkRecord& link, std::uint32_t row) {
    if (row >= table.flows.size()) source.fail("/network/flow_links names a message that is not there");
    link.source = table.flows[row].source;
    link.number = table.flows[row].number;
  });
  links.read("link", &FlowLinkRecord::link);
  links.read("packets", &FlowLinkRecord::packets);
  links.read("first", &FlowLinkRecord::first);
  links.read("last", &FlowLinkRecord::last);
  links.read("waited", &FlowLinkRecord::waited);
  network::PacketRecords records;
  records.links = links.take();
  network::put_in_order(records);
  table.links = std::move(records.links);
  table.names = read_links(source);
  table.groups = source.texts("/groups/names");
  return table;
}

QueuesTable read_queues(const std::filesystem::path& path) {
  using network::PauseRecord;
  using network::QueueRecord;
  const Source source(path);
  require_group(source, path, "/network/queues", "--queue-bins");
  const auto interval = source.number_of<std::int64_t>("/network/queues", "interval");
  if (interval <= 0 || !std::has_single_bit(static_cast<std::uint64_t>(interval)))
    source.fail(fmt::format("/network/queues has intervals of {} ps", interval));
  const auto shift = static_cast<std::uint32_t>(std::countr_zero(static_cast<std::uint64_t>(interval)));
  QueuesTable table;
  RecordReader<QueueRecord> queues(source, "/network/queues");
  queues.read("link", &QueueRecord::link);
  queues.read<std::int64_t>("start", [&](QueueRecord& queue, std::int64_t start) {
    if (start < 0 || start >> shift > std::numeric_limits<std::uint32_t>::max())
      source.fail(fmt::format("/network/queues has an interval that begins at {} ps", start));
    queue.shift = shift;
    queue.bin = static_cast<std::uint32_t>(start >> shift);
  });
  queues.read<double>("mean_queue", [&](QueueRecord& queue, double mean) {
    if (!(mean >= 0 && mean < 1e18)) source.fail("/network/queues has a mean that no queue can have");
    queue.waiting = static_cast<unsigned __int128>(std::ldexp(mean, static_cast<int>(shift)));
  });
  queues.read("deepest_queue", &QueueRecord::deepest);
  queues.read("marks", &QueueRecord::marks);
  queues.read("stopped", &QueueRecord::stopped);
  table.queues = queues.take();
  RecordReader<PauseRecord> pauses(source, "/network/pauses");
  pauses.read("link", &PauseRecord::link);
  pauses.read("pauses", &PauseRecord::pauses);
  pauses.read("total", &PauseRecord::total);
  pauses.read("longest", &PauseRecord::longest);
  pauses.read("first", &PauseRecord::first);
  pauses.read("last", &PauseRecord::last);
  table.pauses = pauses.take();
  table.names = read_links(source);
  return table;
}

}  // namespace orrery::results
