#include "chrome_trace.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "flow_arrows.hpp"
#include "orrery/base/text.hpp"
#include "orrery/npu/work.hpp"
#include "time_bins.hpp"

namespace orrery::show {
namespace {

using npu::TimelineRecord;
using npu::Work;
using trace::NodeKind;

// Chrome's Trace Event Format (JSON object form). Complete events ("X") of one thread must not overlap but nest, so
// what overlaps goes to further threads. Process 0 and thread 0 mean something else to Perfetto, so both are counted
// from 1.

std::string json_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Returns a time in microseconds as decimal text, exactly.
std::string microseconds(std::int64_t ps) {
  return ps % 1'000'000 == 0 ? fmt::to_string(ps / 1'000'000) : fmt::format("{}.{:06}", ps / 1'000'000, ps % 1'000'000);
}

/// The tracks of an NPU, from top to bottom.
enum class Track : std::uint8_t { compute, cpu, collective, message, memory, exposed, idle };

Track track_of(NodeKind kind) {
  switch (kind) {
    case NodeKind::compute:
      return Track::compute;
    case NodeKind::cpu:
    case NodeKind::host:
      return Track::cpu;
    case NodeKind::collective:
      return Track::collective;
    case NodeKind::mem_load:
    case NodeKind::mem_store:
      return Track::memory;
    case NodeKind::send:
    case NodeKind::receive:
    case NodeKind::instant:
      return Track::message;
  }
  ensure_failed("a node has a track", std::source_location::current());
}

std::string_view category(NodeKind kind) {
  constexpr std::string_view names[] = {"instant", "cpu",    "compute", "collective", "send",
                                        "receive", "memory", "memory",  "host"};
  return names[static_cast<std::size_t>(kind)];
}

/// A node begins or ends at this time.
struct Change {
  std::int64_t at = 0;
  Work work = Work::idle;
  bool begins = true;
};

std::vector<Change> changes_of(std::span<const npu::TimelineRecord> rows) {
  std::vector<Change> changes;
  for (const auto& row : rows) {
    if (row.kind == NodeKind::instant || row.start == row.finish) continue;
    const Work work = npu::work_of(row.kind);
    changes.push_back({row.start.ps(), work, true});
    changes.push_back({row.finish.ps(), work, false});
  }
  std::ranges::sort(changes, {}, &Change::at);
  return changes;
}

class ChromeTrace {
 public:
  ChromeTrace(const results::Timeline& timeline, std::span<const config::NpuRange> ranges, TextOutput& output)
      : timeline_(timeline), ranges_(ranges), output_(output), arrows_(ranges) {}

  void write() {
    output_.write("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
    std::int64_t end = 1;
    std::uint64_t count = 0;
    for_each(ranges_, [&](NpuId npu) {
      ++count;
      for (const auto& row : timeline_.rows(npu)) {
        end = std::max(end, row.finish.ps());
        arrows_.count(row);
      }
      arrows_.next_npu();
    });
    TimeBins bins(end);
    for_each(ranges_, [&](NpuId npu) { write_npu(npu, bins); });
    write_bins(bins, count);
    output_.write("\n]}\n");
  }

 private:
  /// A thread of the process. Its slices follow each other without overlap.
  struct Lane {
    std::uint32_t thread;
    Time until;
  };

  template <class Visit>
  static void for_each(std::span<const config::NpuRange> ranges, Visit visit) {
    for (const auto& range : ranges)
      for (std::uint64_t npu = range.first; npu <= range.last; ++npu) visit(NpuId(static_cast<std::uint32_t>(npu)));
  }

  void event(std::string_view text) {
    output_.write(is_first_ ? "\n" : ",\n");
    is_first_ = false;
    output_.write(text);
  }

  void name_process(const std::string& name, std::uint64_t place) {
    event(
        fmt::format(R"({{"ph":"M","pid":{},"name":"process_name","args":{{"name":{}}}}})", process_, json_text(name)));
    event(fmt::format(R"({{"ph":"M","pid":{},"name":"process_sort_index","args":{{"sort_index":{}}}}})", process_,
                      place));
  }

  std::uint32_t new_thread(Track track, std::uint32_t group, std::size_t lane) {
    constexpr std::string_view names[] = {"compute", "CPU",     "communication", "send and receive",
                                          "memory",  "exposed", "idle"};
    std::string name(names[static_cast<std::size_t>(track)]);
    if (group != npu::TimelineRecord::no_group) name += fmt::format(" {}", group_name(group));
    if (lane > 0) name += fmt::format(" ({})", lane + 1);
    const auto thread = ++num_threads_;
    event(fmt::format(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":{}}}}})", process_, thread,
                      json_text(name)));
    event(fmt::format(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_sort_index","args":{{"sort_index":{}}}}})",
                      process_, thread,
                      static_cast<std::uint32_t>(track) * 1000 + std::min<std::size_t>(lanes_.size(), 999)));
    return thread;
  }

  /// Returns a thread of the track that is free from `start` to `finish`. Adds one if there is none.
  std::uint32_t thread_for(Track track, std::uint32_t group, Time start, Time finish) {
    auto& lanes = lanes_[{track, group}];
    auto free = std::ranges::find_if(lanes, [&](const Lane& lane) { return lane.until <= start; });
    if (free == lanes.end()) {
      const auto thread = new_thread(track, group, lanes.size());
      free = lanes.insert(lanes.end(), {thread, Time::zero()});
    }
    free->until = finish;
    return free->thread;
  }

  void slice(std::uint32_t thread, std::int64_t from, std::int64_t to, std::string_view category_name,
             const std::string& name_text, const std::string& arguments = {}) {
    event(fmt::format(R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"cat":"{}","name":{}{}}})", process_, thread,
                      microseconds(from), microseconds(to - from), category_name, name_text,
                      arguments.empty() ? "" : fmt::format(R"(,"args":{{{}}})", arguments)));
  }

  /// Returns what is told of a node beside its name and its times.
  std::string arguments_of(const TimelineRecord& row) const {
    std::string text = fmt::format(R"("node":{})", row.node);
    if (row.bytes > 0) text += fmt::format(R"(,"bytes":{})", row.bytes);
    if (row.peer != TimelineRecord::no_peer) text += fmt::format(R"(,"peer":{},"tag":{})", row.peer, row.tag);
    if (row.operation != TimelineRecord::no_operation)
      text += fmt::format(R"(,"operation":{})",
                          json_text(trace::name(trace::CollectiveKind{static_cast<std::uint8_t>(row.operation)})));
    if (row.group != TimelineRecord::no_group) text += fmt::format(R"(,"group":{})", json_text(group_name(row.group)));
    return text;
  }

  std::string_view group_name(std::uint32_t group) const {
    return timeline_.group(group).empty() ? "world" : std::string_view(timeline_.group(group));
  }

  /// Writes the end of an arrow at a node, if there is one.
  void arrow(std::uint32_t thread, const TimelineRecord& row) {
    const auto end = arrows_.end_at(row);
    if (!end) return;
    using Part = FlowArrows::End::Part;
    const bool is_message = row.kind != NodeKind::collective;
    event(fmt::format(R"({{"ph":"{}","id":{},"pid":{},"tid":{},"ts":{},"cat":"{}","name":"{}"{}}})",
                      end->part == Part::begins   ? "s"
                      : end->part == Part::passes ? "t"
                                                  : "f",
                      end->id, process_, thread, microseconds(end->at.ps()), is_message ? "message" : "members",
                      is_message ? "message" : "collective", end->part == Part::ends ? R"(,"bp":"e")" : ""));
  }

  void counter(std::string_view name, std::int64_t at, std::string_view values) {
    event(fmt::format(R"({{"ph":"C","pid":{},"name":"{}","ts":{},"args":{{{}}}}})", process_, name, microseconds(at),
                      values));
  }

  void write_npu(NpuId npu, TimeBins& bins) {
    process_ = std::uint64_t{npu.value()} + 1;
    num_threads_ = 0;
    lanes_.clear();
    name_process(fmt::format("NPU {}", npu.value()), npu.value() + std::uint64_t{1});
    const auto rows = timeline_.rows(npu);
    for (const auto& row : rows) {
      if (row.kind == NodeKind::instant) continue;
      const auto thread = thread_for(track_of(row.kind), row.group, row.start, row.finish);
      slice(thread, row.start.ps(), row.finish.ps(), category(row.kind), json_text(timeline_.name(row.name)),
            arguments_of(row));
      arrow(thread, row);
    }
    arrows_.next_npu();
    write_states(changes_of(rows), bins);
    for (const auto& usage : timeline_.usage(npu))
      counter("local memory", usage.since.ps(), fmt::format(R"("bytes":{})", usage.usage.count()));
  }

  /// Writes slices of exposed and of idle time, and the counter of communication in flight.
  void write_states(const std::vector<Change>& changes, TimeBins& bins) {
    npu::InService in_service;
    std::int64_t since = 0;   // of the present state
    std::int64_t before = 0;  // the last change
    NpuState state = NpuState::idle;
    for (std::size_t i = 0; i < changes.size();) {
      const std::int64_t now = changes[i].at;
      const auto communicating = in_service.communicating();
      bins.add(TimeBins::communication, before, now, static_cast<int>(communicating));
      for (; i < changes.size() && changes[i].at == now; ++i)
        changes[i].begins ? in_service.begin(changes[i].work) : in_service.end(changes[i].work);
      before = now;
      if (in_service.communicating() != communicating)
        counter("communication in flight", now, fmt::format(R"("nodes":{})", in_service.communicating()));
      const NpuState next = state_of(in_service.counts_for());
      if (next == state && i < changes.size()) continue;
      close_state(state, since, now, bins);
      state = next;
      since = now;
    }
  }

  void close_state(NpuState state, std::int64_t from, std::int64_t to, TimeBins& bins) {
    if (from == to) return;
    bins.add(static_cast<std::size_t>(state), from, to);
    if (state == NpuState::compute || state == NpuState::cpu) return;  // they have tracks of their own
    const bool idle = state == NpuState::idle;
    const auto thread = thread_for(idle ? Track::idle : Track::exposed, npu::TimelineRecord::no_group,
                                   Time::from_ps(from), Time::from_ps(to));
    slice(thread, from, to, idle ? "idle" : "exposed", json_text(state_names[static_cast<std::size_t>(state)]));
  }

  /// Writes one more process, whose counters are over all NPUs.
  void write_bins(const TimeBins& bins, std::uint64_t count) {
    process_ = std::uint64_t{timeline_.num_npus()} + 1;
    name_process(fmt::format("all {} shown", counted(count, "NPU")), 0);
    for (std::size_t bin = 0; bin < num_bins; ++bin) {
      std::string values;
      for (std::size_t state = 0; state < num_busy; ++state) {
        values += fmt::format(R"({}"{}":{:.6g})", state == 0 ? "" : ",", state_names[state],
                              bins.mean(bin, state) / static_cast<double>(count));
      }
      counter("share of NPUs", bins.edge(bin), values);
      counter("communication in flight", bins.edge(bin),
              fmt::format(R"("nodes":{:.6g})", bins.mean(bin, TimeBins::communication)));
    }
  }

  const results::Timeline& timeline_;
  std::span<const config::NpuRange> ranges_;
  TextOutput& output_;
  FlowArrows arrows_;
  bool is_first_ = true;
  std::uint64_t process_ = 0;
  std::uint32_t num_threads_ = 0;
  std::map<std::pair<Track, std::uint32_t>, std::vector<Lane>> lanes_;  // of the present NPU, by track and group
};

}  // namespace

void write_chrome_trace(const results::Timeline& timeline, std::span<const config::NpuRange> npus, TextOutput& output) {
  ChromeTrace(timeline, npus, output).write();
}

}  // namespace orrery::show
