#include <charconv>

#include "keys.hpp"
#include "orrery/base/text.hpp"
#include "validation.hpp"

namespace orrery::config {
namespace {

/// Returns the names of the families of models, with their numbers.
const Words<std::size_t>& model_families() {
  static const Words<std::size_t> words = [] {
    Words<std::size_t> all;
    for (const auto& family : workload::model_families()) all.push_back({family.name, all.size(), family.help});
    return all;
  }();
  return words;
}

const Keys<workload::Transformer>& keys_of(const workload::Transformer&) { return transformer_keys(); }
const Keys<workload::Dlrm>& keys_of(const workload::Dlrm&) { return dlrm_keys(); }
const Keys<workload::LayerList>& keys_of(const workload::LayerList&) { return layer_list_keys(); }

/// Returns the workload that is generated, which is there from the first of its keys on.
workload::Description& generated(Configuration& c) {
  auto& description = c.workload.generated;
  return description ? *description : description.emplace();
}

void read_model(const Value& value, const std::string& path, Configuration& target, Reading& reading) {
  workload::Model& model = generated(target).model;
  Sections sections(Section(&value, path, value, reading.faults));
  ModelChoice choice;
  read_keys(model_keys(), sections, choice, reading);
  model = workload::default_model(choice.family);
  std::visit([&](auto& family) { read_keys(keys_of(family), sections, family, reading); }, model);
  sections.refuse_unknown();
}

void write_model(const Configuration& c, std::string_view, Writer& writer) {
  if (!c.workload.generated) return;
  const workload::Model& model = c.workload.generated->model;
  write_keys(model_keys(), ModelChoice{model.index()}, writer);
  std::visit([&](const auto& family) { write_keys(keys_of(family), family, writer); }, model);
}

constexpr Handling<Configuration> parallelisation() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading& reading) {
            Sections sections(Section(&value, path, value, reading.faults));
            read_keys(parallel_keys(), sections, generated(target).parallel, reading);
            sections.refuse_unknown();
          },
          [](const Configuration& c, std::string_view, Writer& writer) {
            if (c.workload.generated) write_keys(parallel_keys(), c.workload.generated->parallel, writer);
          },
          [](const Configuration& a, const Configuration& b) { return a.workload.generated == b.workload.generated; }};
}

/// Reads ranges of NPUs with their traces, which must hold every NPU once.
std::vector<TraceFiles> read_trace_list(const Value& value, const std::string& path, Reading& reading) {
  std::vector<TraceFiles> traces;
  std::uint32_t next = 0;
  read_items(trace_keys(), value.items, path, reading, [&](const TraceEntry& entry, Place place, bool) {
    const NpuRange range = entry.npus.value_or(NpuRange{next, next});
    if (range.first != next) {
      place.key += ".npus";
      reading.faults.add(Error(ErrorCode::bad_input, place,
                               range.first < next ? fmt::format("NPU {} has a trace already", range.first)
                                                  : fmt::format("no trace for NPU {}", next),
                               "ranges in ascending order that hold every NPU once"));
    }
    next = range.last + 1;
    traces.push_back({range.first, range.last, entry.file.string()});
  });
  if (next < reading.num_npus())
    throw Error(ErrorCode::bad_input, value.place(path), fmt::format("no trace for NPU {}", next),
                fmt::format("ranges that hold every one of the {} NPUs once", reading.num_npus()));
  return traces;
}

void read_traces(const Value& value, const std::string& path, Configuration& target, Reading& reading) {
  const std::uint32_t num_npus = reading.num_npus();
  if (num_npus == 0) return;
  auto& traces = target.workload.traces;
  if (value.kind == Value::Kind::scalar) {
    traces = {traces_of_prefix(as_path(value, path).string(), num_npus)};
    target.workload.surplus = SurplusTraces::refused;
  } else if (value.kind == Value::Kind::mapping) {
    Section all(&value, path, value, reading.faults);
    if (const Value* const name = all.need("all", "the name of a trace that all NPUs execute"))
      traces = {{0, num_npus - 1, as_path(*name, all.path("all")).string()}};
    all.refuse_unknown();
  } else {
    as_list(value, path, find_key("workload.traces")->info().expected({}));
    traces = read_trace_list(value, path, reading);
  }
}

constexpr Handling<Configuration> traces() {
  return {read_traces,
          [](const Configuration& c, std::string_view path, Writer& writer) {
            std::vector<std::string> items;
            for (const auto& files : c.workload.traces)
              items.push_back(flow_text(trace_keys(), TraceEntry{NpuRange{files.first, files.last}, files.pattern}));
            if (!items.empty()) writer.put_list(path, items);
          },
          [](const Configuration& a, const Configuration& b) {
            return std::ranges::equal(a.workload.traces, b.workload.traces, [](const auto& x, const auto& y) {
              return x.first == y.first && x.last == y.last && normal_path(x.pattern) == normal_path(y.pattern);
            });
          }};
}

constexpr Handling<Configuration> groups() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading& reading) {
            target.workload.groups = as_path(value, path);
            if (!reading.system_only)
              target.workload.groups_text = {"groups.json", read_text(*target.workload.groups, value.place(path))};
          },
          [](const Configuration& c, std::string_view path, Writer& writer) {
            if (c.workload.groups) writer.put(path, in_quotes(normal_path(*c.workload.groups)));
          },
          [](const Configuration& a, const Configuration& b) {
            const auto file = [](const Configuration& c) {
              return c.workload.groups ? normal_path(*c.workload.groups) : "";
            };
            return file(a) == file(b);
          }};
}

constexpr std::string_view range_expected = "an NPU or a range such as 0-31";
constinit const ValueKind<std::optional<NpuRange>> npu_range = kind_of<std::optional<NpuRange>>(
    [](const Limits&) {
      return TypeInfo{"NPUs", std::string(range_expected), "-", "below the number of NPUs"};
    },
    [](const Limits&, const Value& value, const std::string& path, const Reading& reading) {
      const std::uint32_t num_npus = reading.num_npus();
      const std::string text =
          as_text(value, path, fmt::format("{}, below the number of NPUs, {}", range_expected, num_npus));
      return parse_npu_range(text, num_npus, value.place(path));
    },
    [](const Limits&, const std::optional<NpuRange>& range) {
      return range ? std::optional(fmt::format("{}-{}", range->first, range->last)) : std::nullopt;
    });

constexpr std::string_view step_expected = "last, all, or the number of a step";
constinit const ValueKind<trace::StepChoice> step_kind = kind_of<trace::StepChoice>(
    [](const Limits&) {
      return TypeInfo{"step", std::string(step_expected), "-", std::string(step_expected)};
    },
    [](const Limits&, const Value& value, const std::string& path, const Reading&) {
      const std::string text = as_text(value, path, step_expected);
      if (const auto choice = parse_step(text)) return *choice;
      throw Error(ErrorCode::bad_input, value.place(path), fmt::format("found '{}'", text), step_expected);
    },
    [](const Limits&, const trace::StepChoice& choice) -> std::string {
      using Chosen = trace::StepChoice::Kind;
      if (choice.kind == Chosen::numbered) return fmt::to_string(choice.number);
      return choice.kind == Chosen::last ? "last" : "all";
    });

bool needs_traces(const Configuration& c, const Reading& reading) {
  return !c.workload.generated && !c.places.contains("jobs") && !reading.system_only;
}

/// Refuses a choice of recordings beside a generated workload, which has none. Resolved configurations hold defaults.
template <auto member>
void require_traces(const Configuration& c, const Place& place, const Reading&) {
  if (c.workload.generated && c.workload.recording.*member != trace::RecordingOptions().*member)
    throw Error(ErrorCode::bad_input, place, "the workload is generated from a model, and nothing was recorded",
                "this key beside workload.traces only");
}

/// A generated workload says its precision in workload.parallel.precision.
void require_traced_precision(const Configuration& c, const Place& place, const Reading&) {
  if (c.workload.generated && c.workload.traced_precision != workload::Precision::bf16)
    throw Error(ErrorCode::bad_input, place, "the workload is generated from a model",
                "workload.parallel.precision, or this key beside workload.traces");
}

constexpr Row<ModelChoice> model_rows[] = {
    {"workload.model.kind", "family of the model, which decides its other keys", "dlrm", Default::built_in(),
     word<model_families>(), [](auto& choice) { return &choice.family; }},
    {"workload.model.base", "file whose keys apply where `model` does not set them", "models/llama3-70b.yaml",
     Default::none(), file(), replaced_before<ModelChoice>()},
};

constexpr Row<Configuration> generated_workload_rows[] = {
    {"workload.parallel", "division of the generated step among NPUs; the keys are those of `workload.parallel`",
     "{tp: 8, dp: 16, pp: 4, micro-batches: 16}", Default::none(),
     ValueInfo("mapping", "a mapping of keys to values", "-", "the keys below"), parallelisation()},
    {"workload.model",
     "model whose training step is generated instead of read from traces, or its file",
     "models/llama3-70b.yaml",
     Default::none(),
     ValueInfo("mapping or file", "a model, or the name of a file that holds one", "-", "the keys below"),
     {read_model, write_model,
      [](const Configuration& a, const Configuration& b) { return a.workload.generated == b.workload.generated; }},
     see("workloads.md"),
     needed_if([](const Configuration& c, const Reading&) { return c.workload.generated.has_value(); },
               "workload.parallel is given")},
};

constexpr Row<Configuration> workload_rows[] = {
    {"workload.traces", "traces that the NPUs execute", "traces/workload", Default::none(),
     ValueInfo(
         "files",
         "a prefix (PREFIX.<npu>.et), a name with {npu} in it, {all: FILE}, or a list such as [{npus: 0-31, file: "
         "\"a.{npu}.et\"}]",
         "-", "a prefix, {all: FILE} or a list"),
     traces(), needed_if(needs_traces, "there is no workload.model"), excludes("workload.model")},
    {"workload.groups", "process groups, a JSON file {\"name\": [npu, ...], ...}", "traces/workload.json",
     Default::none(), file(), groups(), excludes("workload.model")},
    {"workload.dependencies", "dependencies of a trace that order its nodes", "data", Default::built_in(),
     word<dependency_policies>(), [](auto& c) { return &c.workload.dependencies; }, see("traces.md"),
     flag("dependencies", Heading::model, "POLICY", {Taker::run, Taker::check, Taker::convert, Taker::show_trace})},
    {"workload.streams",
     "nodes of an NPU that run at a time; `trace` needs `communication.order: lowest-id` and no inSwitch", "trace",
     Default::built_in(), word<stream_policies>(), [](auto& c) { return &c.workload.streams; }, see("traces.md"),
     flag("streams", Heading::model, "POLICY", {Taker::run, Taker::check})},
    {"workload.precision",
     "precision of the arithmetic in traces, whose peak counts where `system.compute.peak` has several", "fp8",
     Default::built_in(), word<precisions>(), [](auto& c) { return &c.workload.traced_precision; }, see("traces.md"),
     check(require_traced_precision), written_unless_default()},
    {"workload.replay-only", "give every node, communication too, its recorded duration", "true", Default::built_in(),
     boolean(), [](auto& c) { return &c.execution.replay_only; }},
    {"workload.iterations",
     "number of times that each NPU executes its trace; it starts again when its own last node is done", "10",
     Default::built_in(), count(), [](auto& c) { return &c.execution.iterations; },
     flag("iterations", Heading::model, "N", {Taker::run, Taker::check})},
    {"workload.step", "step of a profiler's recording that the NPUs execute; `all` is all that was recorded", "12",
     Default::built_in(), Type(step_kind), [](auto& c) { return &c.workload.recording.step; }, see("inputs.md"),
     flag("step", Heading::model, "N", {Taker::run, Taker::check, Taker::convert, Taker::show_trace}),
     check(require_traces<&trace::RecordingOptions::step>)},
    {"workload.replicate",
     "ranks 0 to N - 1 have a recording, and each other rank r is a copy of rank r modulo N; 0: all have one", "8",
     Default::built_in(), count(0), [](auto& c) { return &c.workload.recording.replicate; }, see("inputs.md"),
     flag("replicate", Heading::model, "N", {Taker::run, Taker::check, Taker::convert}),
     check(require_traces<&trace::RecordingOptions::replicate>)},
    {"workload.execution-traces",
     "name of the PyTorch execution traces that belong to the recordings, in which {npu} stands for the "
     "rank; otherwise t.et.json beside t.json does",
     "\"et_{npu}.json\"", Default::none(), file(), [](auto& c) { return &c.workload.recording.execution_traces; },
     see("inputs.md"), flag("execution-traces", Heading::model, "NAME", {Taker::run, Taker::check, Taker::convert}),
     check(require_traces<&trace::RecordingOptions::execution_traces>), written_unless_default()},
};

constexpr Row<TraceEntry> trace_rows[] = {
    {"workload.traces.npus", "NPUs that read these traces; ranges ascend and hold every NPU once", "0-31",
     Default::needed(), Type(npu_range), [](auto& entry) { return &entry.npus; }},
    {"workload.traces.file", "name of the trace, in which {npu} stands for the number of the NPU", "\"a.{npu}.et\"",
     Default::needed(), file(), [](auto& entry) { return &entry.file; }},
};

}  // namespace

const Keys<ModelChoice>& model_keys() {
  static const Keys<ModelChoice> all("workload.model", model_rows, "workload.model");
  return all;
}

const Keys<Configuration>& generated_workload_keys() {
  static const Keys<Configuration> all("workload", generated_workload_rows);
  return all;
}

const Keys<Configuration>& workload_keys() {
  static const Keys<Configuration> all("workload", workload_rows);
  return all;
}

const Keys<TraceEntry>& trace_keys() {
  static const Keys<TraceEntry> all("workload.traces", trace_rows, "workload.traces");
  return all;
}

std::optional<trace::StepChoice> parse_step(std::string_view text) {
  using Kind = trace::StepChoice::Kind;
  if (text == "last") return trace::StepChoice{};
  if (text == "all") return trace::StepChoice{Kind::all, 0};
  trace::StepChoice choice{Kind::numbered, 0};
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), choice.number);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return choice;
}

TraceFiles traces_of_prefix(const std::string& prefix, std::uint32_t num_npus) {
  const bool is_whole = prefix.find(npu_placeholder) != std::string::npos || std::filesystem::is_regular_file(prefix);
  return {0, num_npus == 0 ? 0 : num_npus - 1, is_whole ? prefix : prefix + ".{npu}.et"};
}

/// Recorded durations leave nothing to the links, to rounds of a generated workload, and to a replay.
void Validation::validate_recorded_communication() {
  if (!c_.execution.recorded_communication) return;
  const std::string_view key = "system.communication.durations";
  require(!c_.execution.network.model->simulates_links(), key,
          "found recorded, but the congestion-aware network simulates every message",
          "network, or system.network.model: congestion-unaware");
  require(!workload_->generated, key, "found recorded, but a generated workload has no recorded durations", "network");
  require(!c_.execution.replay_only, key,
          "found recorded, but workload.replay-only takes node by node what was recorded",
          "network, or workload.replay-only: false");
}

void Validation::validate_streams() {
  const bool by_trace = workload_->streams == trace::Streams::of_trace;
  if (!by_trace && !c_.execution.dimension_streams) return;
  require(c_.execution.comm_order == npu::CommOrder::lowest_id, "system.communication.order",
          "found an order of the nodes that wait for the communication resource, but without workload.streams: counted "
          "they wait for their streams",
          "lowest-id, or workload.streams: counted");
  require(!by_trace || !workload_->generated, "workload.streams",
          "found trace, but the nodes of a generated workload name no stream", "counted");
  const bool uses_names = by_trace || workload_->streams == trace::Streams::by_name;
  require(!uses_names || !c_.collectives.uses_switch_operations(), "workload.streams",
          "found streams of traces, but what a collective may use of a switch (inSwitch) depends on how many an NPU is "
          "in at a "
          "time, which traces do not limit",
          "counted, with communication.streams; or no inSwitch");
}

void Validation::validate_traces() {
  std::uint64_t next = 0;
  for (const auto& files : workload_->traces) {
    require(files.first == next && files.last >= files.first, "workload.traces",
            fmt::format("no single trace for NPU {}", next), "ascending ranges that hold every NPU once");
    next = std::uint64_t{files.last} + 1;
  }
  require(workload_->traces.empty() || next == num_npus_, "workload.traces",
          fmt::format("traces for {}", counted(next, "NPU")), fmt::format("traces for {}", num_npus_));
}

}  // namespace orrery::config
