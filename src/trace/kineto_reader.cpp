// Traces of PyTorch's profiler (Kineto): one file for each rank, JSON.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "kineto_communication.hpp"
#include "kineto_companion.hpp"
#include "kineto_recording.hpp"
#include "kineto_schedule.hpp"
#include "orrery/base/text.hpp"
#include "reader.hpp"

namespace orrery::trace {
namespace {

bool recognises_kineto(std::string_view beginning) {
  const auto start = beginning.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos) return false;
  const auto has = [&](std::string_view part) { return beginning.find(part) != std::string_view::npos; };
  constexpr std::array marks = {"\"schemaVersion\"", "\"distributedInfo\"", "\"cpu_op\"",
                                "\"cuda_runtime\"",  "\"hip_runtime\"",     "\"kernel\""};
  const bool has_events = beginning[start] == '{' ? has("\"traceEvents\"") || has("\"deviceProperties\"")
                                                  : beginning[start] == '[' && has("\"ph\"");
  return has_events && std::ranges::any_of(marks, has);
}

/// Writes the nodes of a schedule for one NPU.
class NodeWriter {
 public:
  NodeWriter(const Recording& recording, const ReadOptions& options, const Schedule& schedule, std::uint64_t npu,
             ParsedTrace& trace)
      : schedule_(schedule), trace_(trace), communication_(recording, options, npu, trace) {
    std::uint64_t id = 0;
    for (const ScheduledNode& planned : schedule.nodes) {
      first_ids_.push_back(id);
      ++id;
      if (planned.is_of_host() || !schedule.operations[planned.operation].communicates) continue;
      auto messages = communication_.messages_of(schedule.operations[planned.operation]);
      if (messages.empty()) continue;
      id += messages.size() - 1;
      messages_.emplace(planned.operation, std::move(messages));
    }
    first_ids_.push_back(id);
  }

  /// Writes all nodes. Returns when communication ended.
  std::vector<RecordedEnd> write() {
    trace_.nodes.reserve(first_ids_.back());
    host_ = trace_.names.intern("host");
    for (std::uint32_t i = 0; i < schedule_.nodes.size(); ++i) write(i);
    return std::move(ends_);
  }

 private:
  void write(std::uint32_t index) {
    const ScheduledNode& planned = schedule_.nodes[index];
    if (planned.is_of_host()) {
      ParsedNode& node = add(index, first_ids_[index], planned.duration);
      node.name = host_;
      node.set(Attribute::is_cpu_op, whole_number(std::uint64_t{1}));
      return;
    }
    const GpuOperation& operation = schedule_.operations[planned.operation];
    if (const auto found = messages_.find(planned.operation); found != messages_.end())
      return write_messages(index, operation, found->second);
    ParsedNode& node = add_operation(index, first_ids_[index], operation, planned.duration);
    const bool is_of_library = operation.may_communicate && communication_.write_of_library(operation, node);
    if (operation.communicates) communication_.write(operation, node);
    if (operation.communicates || is_of_library) add_end(first_ids_[index], operation);
  }

  /// Writes the messages of one kernel. Those of each direction share its duration by their bytes, because sends take
  /// turns.
  void write_messages(std::uint32_t index, const GpuOperation& operation,
                      const std::vector<CommunicationRecord>& messages) {
    const auto is_send = [](const CommunicationRecord& record) { return KinetoCommunication::sends(record); };
    const auto weight = [](const CommunicationRecord& record) {
      return static_cast<double>(std::max<std::uint64_t>(KinetoCommunication::message_bytes(record), 1));
    };
    const bool has_one_peer = std::ranges::all_of(
        messages, [&](const CommunicationRecord& record) { return record.peer == messages.front().peer; });
    double sums[2] = {};
    for (const CommunicationRecord& record : messages) sums[is_send(record)] += weight(record);
    std::uint64_t id = first_ids_[index];
    for (const CommunicationRecord& record : messages) {
      const double share = weight(record) / sums[is_send(record)];
      const auto duration = static_cast<double>(schedule_.nodes[index].duration) * share;
      ParsedNode& node = add_operation(index, id, operation, static_cast<std::int64_t>(duration));
      communication_.write_message(record, node);
      if (has_one_peer) add_end(id, operation);  // with several, the kernel ends with the last of them
      ++id;
    }
  }

  ParsedNode& add(std::uint32_t index, std::uint64_t id, std::int64_t duration) {
    const ScheduledNode& planned = schedule_.nodes[index];
    ParsedNode& node = trace_.add_node(planned.position);
    node.id = id;
    node.type = static_cast<std::uint32_t>(NodeType::comp);
    node.duration = static_cast<std::uint64_t>(duration);
    if (index == 0) return node;
    for (const std::uint32_t before : planned.after)
      for (std::uint64_t of = first_ids_[before]; of < first_ids_[before + 1]; ++of) trace_.data.push_back(of);
    return node;
  }

  ParsedNode& add_operation(std::uint32_t index, std::uint64_t id, const GpuOperation& operation,
                            std::int64_t duration) {
    ParsedNode& node = add(index, id, duration);
    node.name = trace_.names.intern(operation.name);
    node.set(Attribute::stream, whole_number(operation.stream));
    return node;
  }

  void add_end(std::uint64_t id, const GpuOperation& operation) {
    ends_.push_back({NodeId(static_cast<std::uint32_t>(id)), operation.end - schedule_.start});
  }

  const Schedule& schedule_;
  ParsedTrace& trace_;
  KinetoCommunication communication_;
  std::vector<std::uint64_t> first_ids_;                                          ///< [nodes + 1]
  std::unordered_map<std::uint32_t, std::vector<CommunicationRecord>> messages_;  ///< messages of each operation
  std::vector<RecordedEnd> ends_;
  std::uint32_t host_ = 0;
};

/// Writes the trace of one rank, and of its copies.
class KinetoReader {
 public:
  KinetoReader(TraceFile& file, TraceSink& sink)
      : file_(file), options_(sink.options()), sink_(sink), recording_(read_recording(file)) {}

  void read() {
    check_ranks();
    complete_from_execution_trace(file_, options_.recording.execution_traces, recording_);
    const RecordedSpan span = span_of_step();
    const Schedule schedule = make_schedule(recording_, span);
    if (!recording_.rank) return write(schedule, span, file_.source().npu.value_or(0), sink_.begin());
    const std::uint64_t copies = options_.recording.replicate;
    const std::uint64_t last = copies == 0 ? *recording_.rank : world_size() - 1;
    for (std::uint64_t npu = *recording_.rank; npu <= last; npu += copies == 0 ? 1 : copies)
      if (ParsedTrace* const trace = sink_.begin(NpuId(static_cast<std::uint32_t>(npu))))
        write(schedule, span, npu, *trace);
  }

 private:
  [[noreturn]] void fail(std::string_view found, std::string_view expected, std::string_view hint = {}) const {
    throw Error(ErrorCode::bad_input, file_.place(), found, expected, hint);
  }

  std::string what_this_is() const {
    if (!recording_.rank) return "this is the Kineto trace of a process that knew no ranks";
    if (!recording_.world_size) return fmt::format("this is the Kineto trace of rank {}", *recording_.rank);
    return fmt::format("this is the Kineto trace of rank {} of {}", *recording_.rank, *recording_.world_size);
  }

  /// Returns the number of ranks; that of the system's NPUs if the recording of a rank does not say it.
  std::uint64_t world_size() const {
    return recording_.world_size.value_or(options_.alone ? *recording_.rank + 1 : options_.num_npus);
  }

  void check_ranks() const {
    if (recording_.calls.empty() && recording_.operations.empty())
      fail(what_this_is() + ", but it holds neither calls of CUDA or HIP nor GPU operations",
           "a recording with ProfilerActivity.CPU and ProfilerActivity.CUDA");
    const std::uint64_t copies = options_.recording.replicate;
    if (!recording_.rank || options_.alone) return;
    const std::uint64_t world = world_size();
    if (*recording_.rank >= world)
      fail(fmt::format("{}, but the system has {}", what_this_is(), counted(options_.num_npus, "NPU")),
           fmt::format("a system of more than {}", counted(*recording_.rank, "NPU")));
    if (world != options_.num_npus)
      fail(fmt::format("{}, but the system has {}", what_this_is(), counted(options_.num_npus, "NPU")),
           fmt::format("a system of {}, and traces of all ranks", counted(world, "NPU")),
           "workload.replicate makes ranks without a trace from those that have one.");
    if (copies > 0 && (world % copies != 0 || *recording_.rank >= copies))
      fail(fmt::format("{}, but workload.replicate is {}", what_this_is(), copies),
           fmt::format("traces of ranks 0 to {}, whose number divides {}", copies - 1, world));
  }

  RecordedSpan whole() const {
    RecordedSpan span{std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min(),
                      "the recording", std::nullopt};
    const auto add = [&](const auto& all) {
      for (const auto& event : all) {
        span.start = std::min(span.start, event.start);
        span.end = std::max(span.end, event.end + 1);
      }
    };
    add(recording_.calls);
    add(recording_.operations);
    add(recording_.steps);
    return span;
  }

  static RecordedSpan span_of(const RecordedStep& step) {
    return {step.start, step.end, fmt::format("ProfilerStep#{}", step.number), static_cast<std::uint32_t>(step.number)};
  }

  /// Says whether a recording was cut off within a step: nothing is there in its last quarter, and it has fewer
  /// operations than the step before.
  bool is_cut(const RecordedStep& step, const RecordedStep& before) const {
    const auto& [calls, operations] = std::tie(recording_.calls, recording_.operations);
    const std::int64_t from = step.end - (step.end - step.start) / 4;
    const auto is_late = [&](const auto& event) { return event.start < step.end && event.end >= from; };
    if (std::ranges::any_of(calls, is_late) || std::ranges::any_of(operations, is_late)) return false;
    const auto count = [&](const RecordedStep& of) {
      return std::ranges::count_if(operations,
                                   [&](const auto& each) { return each.start >= of.start && each.start < of.end; });
    };
    return count(step) < count(before);
  }

  /// Returns the last step that was not cut off.
  const RecordedStep& last_step() const {
    std::size_t last = recording_.steps.size() - 1;
    while (last > 0 && is_cut(recording_.steps[last], recording_.steps[last - 1])) --last;
    return recording_.steps[last];
  }

  RecordedSpan span_of_step() const {
    using Kind = StepChoice::Kind;
    const auto& steps = recording_.steps;
    const auto [kind, number] = options_.recording.step;
    if (kind == Kind::all || (kind == Kind::last && steps.empty())) return whole();
    if (kind == Kind::last) return span_of(last_step());
    const auto found = std::ranges::find(steps, number, &RecordedStep::number);
    if (found != steps.end()) return span_of(*found);
    std::string known;
    for (const RecordedStep& step : steps) known += fmt::format("{}{}", known.empty() ? "" : ", ", step.number);
    fail(fmt::format("{}, and it holds no ProfilerStep#{}", what_this_is(), number),
         steps.empty() ? "a recording in which the program calls profiler.step(), or no workload.step"
                       : "one of the steps " + known);
  }

  void write(const Schedule& schedule, const RecordedSpan& span, std::uint64_t npu, ParsedTrace& trace) const {
    trace.duration_unit = {1000, "nanosecond"};
    if (schedule.without_launch > 0)
      trace.notices.add(
          "kineto-launch",
          "the launches of GPU operations were not recorded: they are taken to be before their beginning, and before "
          "the next launch of their streams",
          schedule.without_launch);
    if (recording_.rank && !recording_.world_size && !options_.alone)
      trace.notices.add("kineto-world", fmt::format("distributedInfo does not say how many ranks there are: the {} of "
                                                    "the system are taken for all ranks",
                                                    counted(options_.num_npus, "NPU")));
    NodeWriter writer(recording_, options_, schedule, npu, trace);
    trace.recorded = std::make_shared<const RecordedTime>(
        RecordedTime{recording_.clock_base + schedule.start, schedule.end - schedule.start, span.step, writer.write()});
    if (options_.recording.step.kind == StepChoice::Kind::last && span.step &&
        *span.step != recording_.steps.back().number)
      trace.notices.add("kineto-step", fmt::format("the recording ends within its last step: {} is taken", span.name));
    trace.nodes.front().name = trace.names.intern("later than the first rank");
    trace.nodes.back().name = trace.names.intern(fmt::format("{} ends", span.name));
  }

  TraceFile& file_;
  const ReadOptions& options_;
  TraceSink& sink_;
  Recording recording_;
};

void read_kineto(TraceFile& file, TraceSink& sink) { KinetoReader(file, sink).read(); }

}  // namespace

extern constinit const Reader kineto_reader{
    .name = "kineto",
    .help = "PyTorch profiler (Kineto): JSON, one file for each rank, which it names",
    .recognises = recognises_kineto,
    .read = read_kineto,
};

}  // namespace orrery::trace
