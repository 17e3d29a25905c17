#include "kineto_recording.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "json_elements.hpp"
#include "orrery/base/error.hpp"

namespace orrery::trace {
namespace {

using Json = simdjson::dom::element;

constexpr double largest_us = 4e15;  // of a time; in nanoseconds it fits 63 bits

/// Sizes of PyTorch's types, as operators ("c10::Half") and kernels ("Half") name them.
std::optional<std::uint64_t> size_of_type(std::string_view name) {
  if (const auto colons = name.rfind("::"); colons != std::string_view::npos) name.remove_prefix(colons + 2);
  std::string type(name);
  std::ranges::transform(type, type.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c; });
  constexpr std::pair<std::string_view, std::uint64_t> sizes[] = {{"float", 4},
                                                                  {"half", 2},
                                                                  {"bfloat16", 2},
                                                                  {"double", 8},
                                                                  {"long int", 8},
                                                                  {"long", 8},
                                                                  {"int", 4},
                                                                  {"short", 2},
                                                                  {"short int", 2},
                                                                  {"unsigned char", 1},
                                                                  {"signed char", 1},
                                                                  {"char", 1},
                                                                  {"byte", 1},
                                                                  {"bool", 1},
                                                                  {"float8_e5m2", 1},
                                                                  {"float8_e4m3fn", 1},
                                                                  {"float8_e4m3fnuz", 1},
                                                                  {"float8_e5m2fnuz", 1},
                                                                  {"float8_e8m0fnu", 1},
                                                                  {"complexfloat", 8},
                                                                  {"complexdouble", 16}};
  for (const auto& [known, size] : sizes)
    if (type == known) return size;
  return std::nullopt;
}

std::optional<std::uint64_t> whole(const Json& value) {
  std::uint64_t number = 0;
  if (value.get(number) == simdjson::SUCCESS) return number;
  std::string_view text;
  if (value.get(text) != simdjson::SUCCESS) return std::nullopt;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || result.ec != std::errc() || result.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<std::string_view> text_of(const Json& value) {
  std::string_view text;
  if (value.get(text) != simdjson::SUCCESS) return std::nullopt;
  return text;
}

/// Multiplies; nothing if the product does not fit.
std::optional<std::uint64_t> product(std::uint64_t a, std::uint64_t b) {
  if (b != 0 && a > std::uint64_t(std::numeric_limits<std::int64_t>::max()) / b) return std::nullopt;
  return a * b;
}

/// Returns the number of elements of the tensor or the tensors whose sizes these are: [4, 2], [[4, 2], [8]].
std::optional<std::uint64_t> elements(const Json& dimensions) {
  simdjson::dom::array list;
  if (dimensions.get(list) != simdjson::SUCCESS || list.size() == 0) return std::nullopt;
  std::uint64_t sum = 0, number = 1;
  bool is_of_tensors = false;
  for (const Json item : list) {
    std::optional<std::uint64_t> next;
    if (item.is_array()) {
      is_of_tensors = true;
      const auto of_tensor = elements(item);
      if (!of_tensor) return std::nullopt;
      sum += *of_tensor;
    } else if (next = whole(item); !next || !(next = product(number, *next))) {
      return std::nullopt;
    } else {
      number = *next;
    }
  }
  return is_of_tensors ? sum : number;
}

std::optional<Json> first_of(const Json& list) {
  simdjson::dom::array array;
  if (list.get(array) != simdjson::SUCCESS || array.size() == 0) return std::nullopt;
  return array.at(0).value();
}

/// The arguments of an event that have a meaning here.
struct Arguments {
  std::optional<std::uint64_t> correlation, stream, device, waited_stream, event_record;
  CommunicationRecord record;
  std::optional<std::uint64_t> in_elements, out_elements, element_size, first_rank, stride;
  std::optional<Json> dimensions, types, values;
  std::optional<std::string_view> members;
};

bool is_of_communication(std::string_view key) {
  return key == "Collective name" || key.ends_with("nelems") || key.starts_with("Process Group") ||
         key.starts_with("Group size") || key.starts_with("Global rank") || key == "dtype" || key.ends_with(" Rank");
}

void read_communication(std::string_view key, const Json& value, Arguments& all) {
  if (key == "Collective name") {
    if (const auto text = text_of(value)) all.record.name = *text;
  } else if (key == "In msg nelems") {
    all.in_elements = whole(value);
  } else if (key == "Out msg nelems") {
    all.out_elements = whole(value);
  } else if (key == "dtype") {
    if (const auto text = text_of(value)) all.element_size = size_of_type(*text);
  } else if (key == "Process Group Name") {
    if (const auto text = text_of(value)) all.record.group = *text;
  } else if (key == "Process Group Ranks") {
    all.members = text_of(value);
  } else if (key == "Group size") {
    all.record.group_size = whole(value);
  } else if (key == "Global rank start") {
    all.first_rank = whole(value);
  } else if (key == "Global rank stride") {
    all.stride = whole(value);
  } else if (key == "Src Rank" || key == "Dst Rank") {
    all.record.peer = whole(value);
  }
}

Arguments read_arguments(const Json& args) {
  Arguments all;
  simdjson::dom::object object;
  if (args.get(object) != simdjson::SUCCESS) return all;
  for (const auto [key, value] : object) {
    if (key == "correlation")
      all.correlation = whole(value);
    else if (key == "stream")
      all.stream = whole(value);
    else if (key == "device")
      all.device = whole(value);
    else if (key == "wait_on_stream")
      all.waited_stream = whole(value);
    else if (key == "wait_on_cuda_event_record_corr_id")
      all.event_record = whole(value);
    else if (key == "Input Dims")
      all.dimensions = value;
    else if (key == "Input type")
      all.types = value;
    else if (key == "Concrete Inputs")
      all.values = value;
    else if (is_of_communication(key))
      read_communication(key, value, all);
  }
  return all;
}

/// Returns the members that lie regularly: so many from `first` on, each `stride` after the one before.
std::vector<std::uint64_t> regular(std::uint64_t first, std::uint64_t stride, std::uint64_t size) {
  std::vector<std::uint64_t> members(size);
  for (std::uint64_t i = 0; i < size; ++i) members[i] = first + i * stride;
  return members;
}

constexpr std::uint64_t most_members = std::uint64_t{1} << 24;

void settle_members(const Arguments& all, CommunicationRecord& record) {
  const std::uint64_t size = record.group_size.value_or(0);
  if (all.members)
    if (auto listed = members_in(*all.members)) {
      record.members = std::move(listed->first);
      record.is_cut = listed->second;
    }
  const bool is_complete =
      record.members && !record.is_cut && (record.members->empty() || record.members->size() == size);
  if (is_complete || size < 2 || size > most_members) return;
  if (all.first_rank && all.stride && *all.stride > 0 && *all.stride < most_members && *all.first_rank < most_members) {
    record.members = regular(*all.first_rank, *all.stride, size);
    record.is_cut = false;
  } else if (record.is_cut && record.members->size() > 2) {  // all but the last are the first ones
    const auto& known = *record.members;
    const std::uint64_t stride = known[1] - known[0];
    auto made = regular(known[0], stride, size);
    if (std::equal(known.begin(), known.end() - 1, made.begin()) && made.back() == known.back()) {
      record.members = std::move(made);
      record.is_cut = false;
    }
  }
}

/// Makes the record of an event from its arguments. Operators of older recordings list the sizes of their tensors and
/// other inputs instead: [tensors, number, group, rank, ..., size of the group].
CommunicationRecord make_record(Arguments& all, bool is_operator) {
  CommunicationRecord record = std::move(all.record);
  if (all.element_size) {
    if (all.in_elements) record.in_bytes = product(*all.in_elements, *all.element_size);
    if (all.out_elements) record.out_bytes = product(*all.out_elements, *all.element_size);
  }
  if (is_operator && !record.in_bytes && all.dimensions && all.types) {
    const auto dimensions = first_of(*all.dimensions), type = first_of(*all.types);
    const auto name = type ? text_of(*type) : std::nullopt;
    const auto size = name ? size_of_type(*name) : std::nullopt;
    const auto number = dimensions ? elements(*dimensions) : std::nullopt;
    if (size && number) record.in_bytes = product(*number, *size);
  }
  simdjson::dom::array values;
  if (is_operator && all.values && all.values->get(values) == simdjson::SUCCESS && values.size() >= 8) {
    if (!record.group_size) record.group_size = whole(values.at(values.size() - 1).value());
    if (!record.peer) record.peer = whole(values.at(3).value());
  }
  settle_members(all, record);
  return record;
}

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
    finish();
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
    if (const auto text = value ? text_of(*value) : std::nullopt) {
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
        event.phase = text_of(field).value_or("");
      else if (key == "cat")
        event.category = text_of(field).value_or("");
      else if (key == "name")
        event.name = text_of(field).value_or("");
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
    if (event.args) call.correlation = read_correlation(*event.args).value_or(0);
  }

  static std::optional<std::uint64_t> read_correlation(const Json& args) {
    Json value;
    return args["correlation"].get(value) == simdjson::SUCCESS ? whole(value) : std::nullopt;
  }

  void read_operation(const Event& event) {
    GpuOperation operation;
    operation.start = time(event.ts, "ts", event);
    operation.end = end_of(event, operation.start);
    operation.position = event.position;
    operation.name = event.name;
    Arguments all = event.args ? read_arguments(*event.args) : Arguments();
    if (!all.stream && event.thread) all.stream = whole(*event.thread);
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
    }
    recording_.operations.push_back(std::move(operation));
  }

  /// Streams of another device than that of the first operation have numbers of their own.
  std::uint64_t stream_number(std::uint64_t stream, std::uint64_t device) {
    if (!device_) device_ = device;
    return device == *device_ ? stream : stream + ((device + 1) << 32U);
  }

  void read_operator(const Event& event) {
    CommunicationOperator op;
    op.start = time(event.ts, "ts", event);
    op.end = end_of(event, op.start);
    op.thread = thread_of(event);
    op.record = static_cast<std::uint32_t>(recording_.records.size());
    Arguments all = event.args ? read_arguments(*event.args) : Arguments();
    CommunicationRecord record = make_record(all, true);
    if (record.name.empty() && event.name.starts_with("nccl:")) record.name = event.name;
    recording_.records.push_back(std::move(record));
    recording_.operators.push_back(op);
  }

  void read_sync(const Event& event) {
    if (!event.args) return;
    const Arguments all = read_arguments(*event.args);
    if (all.correlation) recording_.syncs[*all.correlation] = {all.stream, all.waited_stream, all.event_record};
  }

  void read_step(const Event& event) {
    RecordedStep step;
    const std::string_view number = event.name.substr(step_name.size());
    const auto result = std::from_chars(number.data(), number.data() + number.size(), step.number);
    if (result.ec != std::errc()) return;
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
      if (key == "rank") recording_.rank = whole(field);
      if (key == "world_size") recording_.world_size = whole(field);
      if (key == "pg_config") read_groups(field);
    }
    if (!recording_.rank || !recording_.world_size || *recording_.rank >= *recording_.world_size)
      fail(position, "distributedInfo does not say which rank of how many this is", "rank, and world_size above it");
  }

  void read_groups(const Json& list) {
    simdjson::dom::array groups;
    if (list.get(groups) != simdjson::SUCCESS) return;
    for (const Json group : groups) {
      Json name, ranks;
      simdjson::dom::array members;
      if (group["pg_name"].get(name) != simdjson::SUCCESS || group["ranks"].get(ranks) != simdjson::SUCCESS) continue;
      if (!text_of(name) || ranks.get(members) != simdjson::SUCCESS || members.size() == 0) continue;
      std::vector<std::uint64_t> all;
      for (const Json member : members)
        if (const auto rank = whole(member)) all.push_back(*rank);
      if (all.size() == members.size()) recording_.groups.emplace(*text_of(name), std::move(all));
    }
  }

  /// Sorts calls and operations, and finds the call that launched each operation.
  void finish() {
    auto& calls = recording_.calls;
    std::ranges::stable_sort(calls, {}, &HostCall::start);
    std::ranges::stable_sort(recording_.operations, {}, &GpuOperation::start);
    std::ranges::stable_sort(recording_.operators, {}, &CommunicationOperator::start);
    std::ranges::stable_sort(recording_.steps, {}, &RecordedStep::start);
    std::unordered_map<std::uint64_t, std::uint32_t> by_correlation;
    for (std::uint32_t i = 0; i < calls.size(); ++i)
      if (calls[i].correlation != 0) by_correlation.try_emplace(calls[i].correlation, i);
    for (GpuOperation& operation : recording_.operations) {
      const auto found = by_correlation.find(operation.correlation);
      if (found != by_correlation.end()) operation.launch = found->second;
    }
  }

  TraceFile& file_;
  Recording recording_;
  std::unordered_map<std::string, std::uint32_t> threads_;
  std::optional<std::uint64_t> device_;  ///< of the first operation
};

}  // namespace

void CommunicationRecord::complete_with(const CommunicationRecord& other) {
  if (name.empty()) name = other.name;
  if (!in_bytes && !out_bytes) {
    in_bytes = other.in_bytes;
    out_bytes = other.out_bytes;
  }
  if (!group) group = other.group;
  if (!members) {
    members = other.members;
    is_cut = other.is_cut;
  }
  if (!group_size) group_size = other.group_size;
  if (!peer) peer = other.peer;
}

std::optional<std::pair<std::vector<std::uint64_t>, bool>> members_in(std::string_view text) {
  std::pair<std::vector<std::uint64_t>, bool> listed;
  const auto blank = [](char c) { return c == ' ' || c == '"' || c == ','; };
  if (text.starts_with('"') && text.ends_with('"') && text.size() > 1) text = text.substr(1, text.size() - 2);
  if (!text.starts_with('[') || !text.ends_with(']')) return std::nullopt;
  text = text.substr(1, text.size() - 2);
  while (!text.empty()) {
    if (blank(text.front())) {
      text.remove_prefix(1);
    } else if (text.starts_with("...")) {
      listed.second = true;
      text.remove_prefix(3);
    } else {
      std::uint64_t rank = 0;
      const auto result = std::from_chars(text.data(), text.data() + text.size(), rank);
      if (result.ec != std::errc() || rank >= most_members) return std::nullopt;
      listed.first.push_back(rank);
      text.remove_prefix(static_cast<std::size_t>(result.ptr - text.data()));
    }
  }
  return listed;
}

Recording read_recording(TraceFile& file) { return RecordingReader(file).read(); }

}  // namespace orrery::trace
