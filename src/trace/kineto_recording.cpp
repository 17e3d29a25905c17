#include "kineto_recording.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "json_elements.hpp"
#include "kineto_arguments.hpp"
#include "kineto_launches.hpp"
#include "kineto_libraries.hpp"
#include "orrery/base/error.hpp"

namespace orrery::trace {
namespace {

using Json = simdjson::dom::element;

constexpr double largest_us = 4e15;  // of a time; in nanoseconds it fits 63 bits

CallKind kind_of_call(std::string_view name) {
  const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  if (has("StreamWaitEvent")) return CallKind::stream_wait;
  if (has("EventRecord")) return CallKind::event_record;
  if (has("StreamSynchronize")) return CallKind::stream_sync;
  if (has("EventSynchronize")) return CallKind::event_sync;
  if (has("DeviceSynchronize") || has("CtxSynchronize") || name == "cudaFree" || name == "hipFree")
    return CallKind::device_sync;
  return has("Memcpy") ? CallKind::copy : CallKind::other;
}

/// What the category of an event says.
enum class Category : std::uint8_t { other, call, kernel, copy, sync, operation };

Category category_of(std::string_view name) {
  constexpr std::pair<std::string_view, Category> known[] = {
      {"cuda_runtime", Category::call}, {"cuda_driver", Category::call},
      {"hip_runtime", Category::call},  {"hip_driver", Category::call},
      {"Runtime", Category::call},      {"kernel", Category::kernel},
      {"Kernel", Category::kernel},     {"gpu_memcpy", Category::copy},
      {"gpu_memset", Category::copy},   {"Memcpy", Category::copy},
      {"Memset", Category::copy},       {"cuda_sync", Category::sync},
      {"cpu_op", Category::operation},  {"user_annotation", Category::operation},
      {"Operator", Category::operation}};
  for (const auto& [text, category] : known)
    if (name == text) return category;
  return Category::other;
}

constexpr std::string_view step_name = "ProfilerStep#";

class RecordingReader {
 public:
  explicit RecordingReader(TraceFile& file) : file_(file) {}

  Recording read() {
    constexpr std::string_view arrays[] = {"traceEvents"};
    read_json(
        file_, arrays, [this](auto, const Json& value, std::uint64_t position) { read_event(value, position); },
        [this](std::string_view name, const Json& value, std::uint64_t position) {
          read_member(name, value, position);
        });
    find_launches(recording_);
    return std::move(recording_);
  }

 private:
  /// The fields of an event.
  struct Event {
    std::string_view phase, category, name;
    std::optional<Json> ts, duration, args, thread, process;
    std::uint64_t position = 0;
  };

  [[noreturn]] void fail(std::uint64_t position, std::string_view found, std::string_view expected) const {
    Place place = file_.place();
    place.byte_offset = position;
    throw Error(ErrorCode::bad_input, place, found, expected);
  }

  /// Returns a time in ns. Whole numbers are exact.
  std::int64_t time(const std::optional<Json>& value, std::string_view what, const Event& event) const {
    std::int64_t us = 0;
    double fraction = 0;
    if (value && value->get(us) == simdjson::SUCCESS && std::abs(static_cast<double>(us)) < largest_us)
      return us * 1000;
    if (value && value->get(fraction) == simdjson::SUCCESS && std::abs(fraction) < largest_us)
      return std::llround(fraction * 1000);
    if (const auto text = value ? text_in(*value) : std::nullopt) {
      const auto result = std::from_chars(text->data(), text->data() + text->size(), fraction);
      if (result.ec == std::errc() && result.ptr == text->data() + text->size() && std::abs(fraction) < largest_us)
        return std::llround(fraction * 1000);
    }
    fail(event.position, fmt::format("the event '{}' has no {} that is a time", shown(event.name), what),
         fmt::format("{}, a number of microseconds", what));
  }

  std::int64_t end_of(const Event& event, std::int64_t start) const {
    const std::int64_t duration = event.duration ? time(event.duration, "dur", event) : 0;
    if (duration < 0)
      fail(event.position, fmt::format("the event '{}' has a negative duration", shown(event.name)), "0 or more");
    return start + duration;
  }

  std::uint32_t thread_of(const Event& event) {
    std::string key;
    for (const auto& part : {event.process, event.thread})
      if (part) key += simdjson::minify(*part) + "/";
    return threads_.try_emplace(std::move(key), static_cast<std::uint32_t>(threads_.size())).first->second;
  }

  void read_event(const Json& value, std::uint64_t position) {
    simdjson::dom::object object;
    if (value.get(object) != simdjson::SUCCESS) fail(position, "an event of traceEvents is no object", "an object");
    Event event;
    event.position = position;
    for (const auto [key, field] : object) {
      if (key == "ph")
        event.phase = text_in(field).value_or("");
      else if (key == "cat")
        event.category = text_in(field).value_or("");
      else if (key == "name")
        event.name = text_in(field).value_or("");
      else if (key == "ts")
        event.ts = field;
      else if (key == "dur")
        event.duration = field;
      else if (key == "args")
        event.args = field;
      else if (key == "pid")
        event.process = field;
      else if (key == "tid")
        event.thread = field;
    }
    if (event.phase == "X") read_complete_event(event);
  }

  void read_complete_event(const Event& event) {
    switch (category_of(event.category)) {
      case Category::other:
        return;
      case Category::call:
        return read_call(event);
      case Category::kernel:
      case Category::copy:
        return read_operation(event);
      case Category::sync:
        return read_sync(event);
      case Category::operation:
        if (event.name.starts_with(step_name)) return read_step(event);
        if (event.name.starts_with("nccl:") || event.name == "record_param_comms") return read_operator(event);
        if (event.category != "user_annotation" && library_collective(event.name)) read_library_operator(event);
        return;
    }
  }

  void read_call(const Event& event) {
    HostCall& call = recording_.calls.emplace_back();
    call.start = time(event.ts, "ts", event);
    call.end = end_of(event, call.start);
    call.position = event.position;
    call.thread = thread_of(event);
    call.kind = kind_of_call(event.name);
    if (event.args) call.correlation = read_number(*event.args, "correlation").value_or(0);
  }

  static std::optional<std::uint64_t> read_number(const Json& args, std::string_view key) {
    Json value;
    return args[key].get(value) == simdjson::SUCCESS ? whole_in(value) : std::nullopt;
  }

  void read_operation(const Event& event) {
    GpuOperation operation;
    operation.start = time(event.ts, "ts", event);
    operation.end = end_of(event, operation.start);
    operation.position = event.position;
    operation.name = event.name;
    KinetoArguments all = event.args ? read_arguments(*event.args) : KinetoArguments();
    if (!all.stream && event.thread) all.stream = whole_in(*event.thread);
    if (!all.stream)
      fail(event.position, fmt::format("the GPU operation '{}' names no stream", shown(event.name)), "args.stream");
    operation.stream = stream_number(*all.stream, all.device.value_or(0));
    operation.correlation = all.correlation.value_or(0);
    const std::string_view start = event.name.substr(0, 4);
    operation.communicates = category_of(event.category) == Category::kernel &&
                             (start == "nccl" || start == "rccl" || start == "Nccl" || start == "NCCL");
    if (operation.communicates) {
      operation.record = static_cast<std::uint32_t>(recording_.records.size());
      recording_.records.push_back(make_record(all, false));
    } else if (category_of(event.category) == Category::kernel) {
      operation.may_communicate = is_library_kernel(event.name);
    }
    recording_.operations.push_back(std::move(operation));
  }

  /// Streams of another device than that of the first operation have numbers of their own.
  std::uint64_t stream_number(std::uint64_t stream, std::uint64_t device) {
    if (!device_) device_ = device;
    return device == *device_ ? stream : stream + ((device + 1) << 32U);
  }

  /// Returns the peer that the name of an operator tells: 1 for "nccl:send 0->1" and for "nccl:recv 0<-1".
  static std::optional<std::uint64_t> peer_named(std::string_view name) {
    const auto arrow = name.starts_with("nccl:send ") ? name.find("->") : name.find("<-");
    if (arrow == std::string_view::npos || !(name.starts_with("nccl:send ") || name.starts_with("nccl:recv ")))
      return std::nullopt;
    return whole_in(name.substr(arrow + 2));
  }

  /// Returns an operator whose record is the next one.
  CommunicationOperator operator_of(const Event& event) {
    CommunicationOperator op;
    op.start = time(event.ts, "ts", event);
    op.end = end_of(event, op.start);
    op.thread = thread_of(event);
    op.record = static_cast<std::uint32_t>(recording_.records.size());
    return op;
  }

  void read_library_operator(const Event& event) {
    const CommunicationOperator op = operator_of(event);
    CommunicationRecord record;
    if (event.args) record = library_record(event.name, read_arguments(*event.args));
    recording_.records.push_back(std::move(record));
    recording_.library_operators.push_back(op);
  }

  void read_operator(const Event& event) {
    CommunicationOperator op = operator_of(event);
    KinetoArguments all = event.args ? read_arguments(*event.args) : KinetoArguments();
    if (event.args) op.function = read_number(*event.args, "Record function id").value_or(0);
    if (!all.record.peer) all.record.peer = peer_named(event.name);
    CommunicationRecord record = make_record(all, true);
    if (record.name.empty() && event.name.starts_with("nccl:")) record.name = event.name;
    recording_.records.push_back(std::move(record));
    recording_.operators.push_back(op);
  }

  void read_sync(const Event& event) {
    if (!event.args) return;
    const KinetoArguments all = read_arguments(*event.args);
    if (all.correlation) recording_.syncs[*all.correlation] = {all.stream, all.waited_stream, all.event_record};
  }

  void read_step(const Event& event) {
    RecordedStep step;
    const std::string_view number = event.name.substr(step_name.size());
    const auto result = std::from_chars(number.data(), number.data() + number.size(), step.number);
    if (result.ec != std::errc() || step.number > std::numeric_limits<std::int32_t>::max()) return;
    step.start = time(event.ts, "ts", event);
    step.end = end_of(event, step.start);
    step.thread = thread_of(event);
    recording_.steps.push_back(step);
  }

  void read_member(std::string_view name, const Json& value, std::uint64_t position) {
    if (name == "baseTimeNanoseconds") {
      std::int64_t base = 0;
      if (value.get(base) != simdjson::SUCCESS || base < 0)
        fail(position, "baseTimeNanoseconds is no time", "a number of nanoseconds");
      recording_.clock_base = base;
    }
    if (name != "distributedInfo") return;
    simdjson::dom::object object;
    if (value.get(object) != simdjson::SUCCESS) fail(position, "distributedInfo is no object", "an object");
    for (const auto [key, field] : object) {
      if (key == "rank") recording_.rank = whole_in(field);
      if (key == "world_size") recording_.world_size = whole_in(field);
      if (key == "pg_config") read_groups(field);
    }
    if (recording_.rank && recording_.world_size && *recording_.rank >= *recording_.world_size)
      fail(position, "distributedInfo does not say of how many this is rank " + fmt::to_string(*recording_.rank),
           "world_size above the rank");
  }

  void read_groups(const Json& list) {
    simdjson::dom::array groups;
    if (list.get(groups) != simdjson::SUCCESS) return;
    for (const Json group : groups) {
      Json name, ranks;
      simdjson::dom::array members;
      if (group["pg_name"].get(name) != simdjson::SUCCESS || group["ranks"].get(ranks) != simdjson::SUCCESS) continue;
      if (!text_in(name) || ranks.get(members) != simdjson::SUCCESS || members.size() == 0) continue;
      std::vector<std::uint64_t> all;
      for (const Json member : members)
        if (const auto rank = whole_in(member)) all.push_back(*rank);
      if (all.size() == members.size()) recording_.groups.emplace(*text_in(name), std::move(all));
    }
  }

  TraceFile& file_;
  Recording recording_;
  std::unordered_map<std::string, std::uint32_t> threads_;
  std::optional<std::uint64_t> device_;  ///< device of the first operation
};

}  // namespace

Recording read_recording(TraceFile& file) { return RecordingReader(file).read(); }

}  // namespace orrery::trace
