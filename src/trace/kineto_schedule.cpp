#include "kineto_schedule.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace orrery::trace {
namespace {

/// Clocks of the host and the GPU may differ by so much, in ns.
constexpr std::int64_t clock_slack = 5000;

/// The operation that was launched last in each stream.
using Launched = std::map<std::uint64_t, std::uint32_t>;

/// What is known of an operation beside its recording.
struct Placement {
  std::int64_t begun = 0;     ///< when it was launched: at the latest, if that was not recorded
  std::uint32_t node = 0;     ///< index into Schedule::nodes
  std::uint32_t next = none;  ///< operation in its stream
  static constexpr std::uint32_t none = ~0U;
};

/// What happens on the host at a moment.
struct Moment {
  enum class Kind : std::uint8_t { wait_begins, wait_ends, launch, operation };

  std::int64_t time = 0;
  std::uint32_t order = 0;  ///< order among calls and operations of one time
  std::uint32_t index = 0;  ///< index of the call; `operation`: of an operation whose launch was not recorded
  Kind kind = Kind::launch;
};

/// What the host did before the first node.
struct HostAhead {
  std::int64_t until = 0;  ///< the time up to which work is counted
  std::int64_t work = 0;   ///< ns
};

class Scheduler {
 public:
  Scheduler(const Recording& recording, const RecordedSpan& span) : recording_(recording), span_(span) {}

  Schedule make() {
    choose_operations();
    choose_moments();
    frontier_ = schedule_.start;
    ahead_.until = span_.start;
    schedule_.nodes.emplace_back();
    for (const Moment& moment : moments_) pass(moment);
    work_until(span_.end, 0);
    add_work_ahead();
    resolve();
    return std::move(schedule_);
  }

 private:
  bool is_within(std::int64_t time) const { return time >= span_.start && time < span_.end; }

  /// Takes the operations that were launched within the span, or begin in it if no launch is known.
  void choose_operations() {
    const auto all_begun = launch_times();
    schedule_.start = span_.start;
    schedule_.end = span_.end;
    std::int64_t first = span_.end;
    bool is_first = true;  // nothing was recorded before the span
    for (std::size_t i = 0; i < recording_.operations.size(); ++i) {
      const GpuOperation& operation = recording_.operations[i];
      const std::int64_t begun = all_begun[i];
      if (is_within(begun)) {
        schedule_.operations.push_back(operation);
        placements_.push_back({.begun = begun});
        schedule_.end = std::max(schedule_.end, operation.end);
        first = std::min(first, operation.start);
      } else if (begun < span_.start) {
        schedule_.start = std::max(schedule_.start, operation.end);
        is_first = false;
      }
    }
    if (is_first && runs_ahead_later()) schedule_.start = std::max(schedule_.start, first);
    schedule_.end = std::max(schedule_.end, schedule_.start);
    launched_by_.resize(recording_.calls.size());
    for (std::uint32_t i = 0; i < schedule_.operations.size(); ++i) {
      const GpuOperation& operation = schedule_.operations[i];
      in_stream_[operation.stream].push_back(i);
      if (operation.launch != GpuOperation::none) launched_by_[operation.launch].push_back(i);
    }
    for (auto& [stream, all] : in_stream_)
      for (std::size_t i = 1; i < all.size(); ++i) placements_[all[i - 1]].next = all[i];
  }

  /// Says whether the GPU still works on the span when the next step begins. Then the host is ahead of it in every
  /// step but the first one, and the GPU waits for no launch at the beginning of a step.
  bool runs_ahead_later() const {
    return std::ranges::any_of(recording_.steps, [&](const RecordedStep& step) {
      return step.start >= span_.end && step.start < schedule_.end;
    });
  }

  /// Returns when each operation of the recording was launched. Where that was not recorded, it is before the next one
  /// in its stream was launched, and before it began.
  std::vector<std::int64_t> launch_times() const {
    std::vector<std::int64_t> times(recording_.operations.size());
    std::map<std::uint64_t, std::int64_t> next;
    for (std::size_t i = times.size(); i-- > 0;) {
      const GpuOperation& operation = recording_.operations[i];
      const auto after = next.find(operation.stream);
      times[i] = after == next.end() ? operation.start : std::min(operation.start, after->second);
      if (operation.launch != GpuOperation::none)
        next[operation.stream] = times[i] = recording_.calls[operation.launch].start;
    }
    return times;
  }

  /// Threads count that launch something in the span, and those in which steps are. An operation whose launch was not
  /// recorded comes before the call that launched the next one.
  void choose_moments() {
    std::set<std::uint32_t> threads;
    for (const RecordedStep& step : recording_.steps) threads.insert(step.thread);
    for (const GpuOperation& operation : schedule_.operations)
      if (operation.launch != GpuOperation::none) threads.insert(recording_.calls[operation.launch].thread);
    for (std::uint32_t i = 0; i < schedule_.operations.size(); ++i) {
      if (schedule_.operations[i].launch != GpuOperation::none) continue;
      add_moment(placements_[i].begun, i, Moment::Kind::operation);
      ++schedule_.without_launch;
    }
    for (std::uint32_t i = 0; i < recording_.calls.size(); ++i) {
      const HostCall& call = recording_.calls[i];
      if (!is_within(call.start) || !threads.contains(call.thread)) continue;
      const bool is_relevant = !launched_by_[i].empty() || call.kind != CallKind::other;
      if (is_relevant) add_moment(call.start, i, Moment::Kind::launch);
      if (!waits(i)) continue;
      add_moment(call.start, i, Moment::Kind::wait_begins);
      add_moment(std::min(call.end, span_.end), i, Moment::Kind::wait_ends);
    }
    std::ranges::sort(moments_, [](const Moment& a, const Moment& b) {
      return a.time != b.time ? a.time < b.time : a.order < b.order;
    });
  }

  void add_moment(std::int64_t time, std::uint32_t index, Moment::Kind kind) {
    moments_.push_back({time, static_cast<std::uint32_t>(moments_.size()), index, kind});
  }

  /// Says whether the host waits in a call. A copy waits if the call ended after the copy.
  bool waits(std::uint32_t call) const {
    const CallKind kind = recording_.calls[call].kind;
    if (kind == CallKind::stream_sync || kind == CallKind::event_sync || kind == CallKind::device_sync) return true;
    return kind == CallKind::copy && !launched_by_[call].empty() &&
           std::ranges::all_of(launched_by_[call], [&](std::uint32_t i) {
             return schedule_.operations[i].end <= recording_.calls[call].end;
           });
  }

  void pass(const Moment& moment) {
    switch (moment.kind) {
      case Moment::Kind::operation:
        if (awaited_.empty()) work_until(moment.time, schedule_.operations[moment.index].position);
        return add_operation(moment.index, host_);
      case Moment::Kind::launch:
        return launch(moment.index);
      case Moment::Kind::wait_begins:
        work_until(moment.time, recording_.calls[moment.index].position);
        awaited_[moment.index] = awaited_by(moment.index);
        return;
      case Moment::Kind::wait_ends:
        return end_wait(moment.index, moment.time);
    }
  }

  void launch(std::uint32_t index) {
    const HostCall& call = recording_.calls[index];
    const auto said = recording_.syncs.find(call.correlation);
    if (call.kind == CallKind::event_record) at_record_[call.correlation] = launched_;
    if (call.kind == CallKind::stream_wait) {
      if (said == recording_.syncs.end())
        pending_ = launched_;
      else if (said->second.stream)
        add_recorded(said->second, waits_of_[*said->second.stream]);
    }
    if (launched_by_[index].empty()) return;
    work_until(call.start, call.position);
    for (const std::uint32_t operation : launched_by_[index]) add_operation(operation, host_);
    if (launched_by_[index].size() > 1) order_graph(launched_by_[index]);
  }

  /// Orders the operations of one launch, a CUDA graph, whose edges are not recorded: each follows the last one of
  /// every other stream that had ended when it began. They are in the order of their starts.
  void order_graph(const std::vector<std::uint32_t>& graph) {
    std::map<std::uint64_t, std::vector<std::uint32_t>> streams;
    for (const std::uint32_t i : graph) streams[schedule_.operations[i].stream].push_back(i);
    for (const auto& [stream, own] : streams)
      for (const auto& [other, all] : streams) {
        if (stream == other) continue;
        std::size_t ended = 0;
        for (const std::uint32_t i : own) {
          const std::size_t before = ended;
          while (ended < all.size() && schedule_.operations[all[ended]].end <= schedule_.operations[i].start) ++ended;
          if (ended > before) schedule_.nodes[placements_[i].node].after_operation.push_back(all[ended - 1]);
        }
      }
  }

  /// Looks at an operation and at those that follow it in its stream without a recorded launch. Returns the last of
  /// them that had ended by a moment.
  std::uint32_t last_ended(std::uint32_t index, std::int64_t by) const {
    for (std::uint32_t next = placements_[index].next; next != Placement::none; next = placements_[next].next) {
      const GpuOperation& operation = schedule_.operations[next];
      if (operation.launch != GpuOperation::none || operation.end > by) break;
      index = next;
    }
    return index;
  }

  /// Adds the operation that the event which is waited for follows.
  void add_recorded(const SyncRecord& said, std::vector<std::uint32_t>& to) const {
    const auto record = said.event_record ? at_record_.find(*said.event_record) : at_record_.end();
    const Launched& there = record == at_record_.end() ? launched_ : record->second;
    if (!said.waited_stream) return;
    if (const auto last = there.find(*said.waited_stream); last != there.end()) to.push_back(last->second);
  }

  /// Returns the operations that the host waits for in a call. Where the recording does not say so, these are the last
  /// of all streams which had ended when the call did.
  std::vector<std::uint32_t> awaited_by(std::uint32_t index) const {
    const HostCall& call = recording_.calls[index];
    if (call.kind == CallKind::copy) return launched_by_[index];
    std::vector<std::uint32_t> awaited;
    const auto said = recording_.syncs.find(call.correlation);
    if (said != recording_.syncs.end() && call.kind == CallKind::event_sync) {
      add_recorded(said->second, awaited);
      return awaited;
    }
    const bool is_stream_known = said != recording_.syncs.end() && said->second.stream;
    for (const auto& [stream, last] : launched_) {
      if (call.kind == CallKind::stream_sync && is_stream_known && stream != *said->second.stream) continue;
      const GpuOperation& operation = schedule_.operations[last];
      if (operation.start <= call.end && operation.end <= call.end + clock_slack)
        awaited.push_back(last_ended(last, call.end));
    }
    return awaited;
  }

  /// Ends a wait: what the call took after the last of the awaited operations had ended is work of the host.
  void end_wait(std::uint32_t index, std::int64_t time) {
    const HostCall& call = recording_.calls[index];
    const auto awaited = awaited_.extract(index).mapped();
    ahead_.until = std::max(ahead_.until, std::min(time, schedule_.start));
    if (awaited.empty()) return work_until(time, call.position);
    std::int64_t over = call.start;
    for (const std::uint32_t operation : awaited) over = std::max(over, schedule_.operations[operation].end);
    frontier_ = std::max(frontier_, std::min(over, time));
    work_until(time, call.position);
    schedule_.nodes.back().after_operation = awaited;
  }

  /// Adds the work of the host up to a moment.
  void work_until(std::int64_t time, std::uint64_t position) {
    const std::int64_t before = std::min(time, schedule_.start);
    ahead_.work += std::max<std::int64_t>(before - ahead_.until, 0);
    ahead_.until = std::max(ahead_.until, before);
    add_work(std::max<std::int64_t>(time - frontier_, 0), position);
    frontier_ = std::max(frontier_, time);
  }

  /// Lets the host do as much ahead of the next step as it did ahead of this one, beyond the time in which it waits for
  /// the GPU: otherwise a step could take less than the work of the host in it.
  void add_work_ahead() {
    std::int64_t waiting = std::max<std::int64_t>(span_.end - schedule_.start, 0);
    for (const ScheduledNode& node : schedule_.nodes)
      if (node.is_of_host()) waiting -= node.duration;
    if (ahead_.work > waiting) schedule_.nodes.back().duration += ahead_.work - waiting;
  }

  /// Adds work of the host.
  void add_work(std::int64_t duration, std::uint64_t position) {
    ScheduledNode node;
    node.duration = duration;
    node.after.push_back(host_);
    node.position = position;
    host_ = static_cast<std::uint32_t>(schedule_.nodes.size());
    schedule_.nodes.push_back(std::move(node));
  }

  void add_operation(std::uint32_t index, std::uint32_t after) {
    const GpuOperation& operation = schedule_.operations[index];
    ScheduledNode node;
    node.duration = operation.end - operation.start;
    node.operation = index;
    node.after.push_back(after);
    node.position = operation.position;
    for (const std::uint32_t last : std::exchange(waits_of_[operation.stream], {}))
      node.after_operation.push_back(last_ended(last, operation.start));
    // An operation that may have been launched before the wait leaves to later ones what it cannot have waited for.
    for (const auto& [stream, last] : std::exchange(pending_, {})) {
      const bool has_ended = schedule_.operations[last].end <= operation.start + clock_slack;
      if (has_ended && stream != operation.stream)
        node.after_operation.push_back(last_ended(last, operation.start));
      else if (!has_ended && operation.launch == GpuOperation::none)
        pending_[stream] = last;
    }
    launched_[operation.stream] = index;
    placements_[index].node = static_cast<std::uint32_t>(schedule_.nodes.size());
    schedule_.nodes.push_back(std::move(node));
  }

  /// Turns operations into nodes, and lets each wait for the one before it in its stream.
  void resolve() {
    for (const auto& [stream, all] : in_stream_)
      for (std::size_t i = 1; i < all.size(); ++i)
        schedule_.nodes[placements_[all[i]].node].after_operation.push_back(all[i - 1]);
    for (ScheduledNode& node : schedule_.nodes)
      for (const std::uint32_t operation : node.after_operation) node.after.push_back(placements_[operation].node);
  }

  const Recording& recording_;
  const RecordedSpan& span_;
  Schedule schedule_;
  std::vector<Moment> moments_;
  std::vector<std::vector<std::uint32_t>> launched_by_;  ///< [calls] operations
  std::map<std::uint64_t, std::vector<std::uint32_t>> in_stream_;
  Launched launched_;
  Launched pending_;  ///< operations that the next operation waits for, where no stream is named
  std::map<std::uint64_t, std::vector<std::uint32_t>> waits_of_;  ///< predecessors by stream
  std::map<std::uint64_t, Launched> at_record_;  ///< operations launched, by the correlation of the call
  std::map<std::uint32_t, std::vector<std::uint32_t>> awaited_;  ///< operations awaited, by the call
  std::vector<Placement> placements_;                            ///< [Schedule::operations]
  std::int64_t frontier_ = 0;                                    ///< the host's work is done up to here
  HostAhead ahead_;
  std::uint32_t host_ = 0;  ///< last node of the host
};

}  // namespace

Schedule make_schedule(const Recording& recording, const RecordedSpan& span) {
  return Scheduler(recording, span).make();
}

}  // namespace orrery::trace
