// Traces of PyTorch's profiler (Kineto): one file for each rank, JSON.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <tuple>

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
    const std::uint64_t last = copies == 0 ? *recording_.rank : *recording_.world_size - 1;
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
    return fmt::format("this is the Kineto trace of rank {} of {}", *recording_.rank, *recording_.world_size);
  }

  void check_ranks() const {
    if (recording_.calls.empty() && recording_.operations.empty())
      fail(what_this_is() + ", but it holds neither calls of CUDA or HIP nor GPU operations",
           "a recording with ProfilerActivity.CPU and ProfilerActivity.CUDA");
    const std::uint64_t copies = options_.recording.replicate;
    if (!recording_.rank || options_.alone) return;
    const std::uint64_t world = *recording_.world_size;
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
    std::vector<RecordedEnd> ends;
    if (schedule.without_launch > 0)
      trace.notices.add(
          "kineto-launch",
          "the launches of GPU operations were not recorded: they are taken to be before their beginning, and before "
          "the next launch of their streams",
          schedule.without_launch);
    KinetoCommunication communication(recording_, options_, npu, trace);
    trace.nodes.reserve(schedule.nodes.size());
    const auto host = trace.names.intern("host");
    for (std::uint32_t i = 0; i < schedule.nodes.size(); ++i) {
      const ScheduledNode& planned = schedule.nodes[i];
      ParsedNode& node = trace.add_node(planned.position);
      node.id = i;
      node.type = static_cast<std::uint32_t>(NodeType::comp);
      node.duration = static_cast<std::uint64_t>(planned.duration);
      if (i > 0) trace.data.insert(trace.data.end(), planned.after.begin(), planned.after.end());
      if (planned.is_of_host()) {
        node.name = host;
        node.set(Attribute::is_cpu_op, whole_number(std::uint64_t{1}));
        continue;
      }
      const GpuOperation& operation = schedule.operations[planned.operation];
      node.name = trace.names.intern(operation.name);
      node.set(Attribute::stream, whole_number(operation.stream));
      if (!operation.communicates) continue;
      communication.write(operation, node);
      ends.push_back({NodeId(i), operation.end - span.start});
    }
    trace.recorded = std::make_shared<const RecordedTime>(
        RecordedTime{recording_.clock_base + span.start, span.end - span.start, span.step, std::move(ends)});
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
