#include <charconv>
#include <functional>

#include "keys.hpp"
#include "orrery/base/text.hpp"

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

void write_model(const Configuration& c, Writer& writer) {
  if (!c.workload.generated) return;
  const workload::Model& model = c.workload.generated->model;
  write_keys(model_keys(), ModelChoice{model.index()}, writer);
  std::visit([&](const auto& family) { write_keys(keys_of(family), family, writer); }, model);
}

Handling<Configuration> parallelisation() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading& reading) {
            Sections sections(Section(&value, path, value, reading.faults));
            read_keys(parallel_keys(), sections, generated(target).parallel, reading);
            sections.refuse_unknown();
          },
          [](const Configuration& c, Writer& writer) {
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

Handling<Configuration> traces() {
  return {read_traces,
          [](const Configuration& c, Writer& writer) {
            std::vector<std::string> items;
            for (const auto& files : c.workload.traces)
              items.push_back(flow_text(trace_keys(), TraceEntry{NpuRange{files.first, files.last}, files.pattern}));
            if (!items.empty()) writer.put_list("workload.traces", items);
          },
          [](const Configuration& a, const Configuration& b) {
            return std::ranges::equal(a.workload.traces, b.workload.traces, [](const auto& x, const auto& y) {
              return x.first == y.first && x.last == y.last && normal_path(x.pattern) == normal_path(y.pattern);
            });
          }};
}

Handling<Configuration> groups() {
  return {[](const Value& value, const std::string& path, Configuration& target, Reading& reading) {
            target.workload.groups = as_path(value, path);
            if (!reading.system_only)
              target.workload.groups_text = {"groups.json", read_text(*target.workload.groups, value.place(path))};
          },
          [](const Configuration& c, Writer& writer) {
            if (c.workload.groups) writer.put("workload.groups", in_quotes(normal_path(*c.workload.groups)));
          },
          [](const Configuration& a, const Configuration& b) {
            const auto file = [](const Configuration& c) {
              return c.workload.groups ? normal_path(*c.workload.groups) : "";
            };
            return file(a) == file(b);
          }};
}

Type<std::optional<NpuRange>> npu_range() {
  constexpr std::string_view expected = "an NPU or a range such as 0-31";
  return {{"NPUs", std::string(expected), "-", "below the number of NPUs"},
          [=](const Value& value, const std::string& path, const Reading& reading) {
            const std::uint32_t num_npus = reading.num_npus();
            const std::string text =
                as_text(value, path, fmt::format("{}, below the number of NPUs, {}", expected, num_npus));
            return std::optional(parse_npu_range(text, num_npus, value.place(path)));
          },
          [](const std::optional<NpuRange>& range) {
            return range ? std::optional(fmt::format("{}-{}", range->first, range->last)) : std::nullopt;
          }};
}

Type<trace::StepChoice> step() {
  constexpr std::string_view expected = "last, all, or the number of a step";
  return {{"step", std::string(expected), "-", std::string(expected)},
          [=](const Value& value, const std::string& path, const Reading&) {
            const std::string text = as_text(value, path, expected);
            if (const auto choice = parse_step(text)) return *choice;
            throw Error(ErrorCode::bad_input, value.place(path), fmt::format("found '{}'", text), expected);
          },
          [](const trace::StepChoice& choice) -> std::optional<std::string> {
            using Kind = trace::StepChoice::Kind;
            if (choice.kind == Kind::numbered) return fmt::to_string(choice.number);
            return choice.kind == Kind::last ? "last" : "all";
          }};
}

bool needs_traces(const Configuration& c, const Reading& reading) {
  return !c.workload.generated && !c.places.contains("jobs") && !reading.system_only;
}

/// Refuses a choice of recordings beside a generated workload, which has none. Resolved configurations hold defaults.
template <class Member>
Key<Configuration>::Check only_with_traces(Member member) {
  return [member](const Configuration& c, const Place& place, const Reading&) {
    const trace::RecordingOptions none;
    if (c.workload.generated && std::invoke(member, c.workload.recording) != std::invoke(member, none))
      throw Error(ErrorCode::bad_input, place, "the workload is generated from a model, and nothing was recorded",
                  "this key beside workload.traces only");
  };
}

void add_recording(Keys<Configuration>& keys) {
  using trace::RecordingOptions;
  keys.add(
          {.path = "workload.step",
           .help = "step of a profiler's recording that the NPUs execute; `all` is all that was recorded",
           .example = "12",
           .otherwise = Default::built_in(),
           .see = "inputs.md",
           .flag = Flag{.name = "step",
                        .heading = Heading::model,
                        .argument = "N",
                        .commands = {Taker::run, Taker::check, Taker::convert, Taker::show_trace}}},
          step(), [](auto& c) -> auto& { return c.workload.recording.step; })
      .check(only_with_traces(&RecordingOptions::step));
  keys.add(
          {.path = "workload.replicate",
           .help =
               "ranks 0 to N - 1 have a recording, and each other rank r is a copy of rank r modulo N; 0: all have one",
           .example = "8",
           .otherwise = Default::built_in(),
           .see = "inputs.md",
           .flag = Flag{.name = "replicate",
                        .heading = Heading::model,
                        .argument = "N",
                        .commands = {Taker::run, Taker::check, Taker::convert}}},
          count(0), [](auto& c) -> auto& { return c.workload.recording.replicate; })
      .check(only_with_traces(&RecordingOptions::replicate));
  keys.add(
          {.path = "workload.execution-traces",
           .help = "name of the PyTorch execution traces that belong to the recordings, in which {npu} stands for the "
                   "rank; otherwise t.et.json beside t.json does",
           .example = "\"et_{npu}.json\"",
           .otherwise = Default::none(),
           .see = "inputs.md",
           .flag = Flag{.name = "execution-traces",
                        .heading = Heading::model,
                        .argument = "NAME",
                        .commands = {Taker::run, Taker::check, Taker::convert}}},
          file(), [](auto& c) -> auto& { return c.workload.recording.execution_traces; })
      .check(only_with_traces(&RecordingOptions::execution_traces))
      .written_unless_default();
}

void add_policies(Keys<Configuration>& keys) {
  keys.add(
      {.path = "workload.dependencies",
       .help = "dependencies of a trace that order its nodes",
       .example = "data",
       .otherwise = Default::built_in(),
       .see = "traces.md",
       .flag = Flag{.name = "dependencies",
                    .heading = Heading::model,
                    .argument = "POLICY",
                    .commands = {Taker::run, Taker::check, Taker::convert, Taker::show_trace}}},
      word(dependency_policies()), [](auto& c) -> auto& { return c.workload.dependencies; });
  keys.add(
      {.path = "workload.streams",
       .help = "nodes of an NPU that run at a time; `trace` needs `communication.order: lowest-id` and no inSwitch",
       .example = "trace",
       .otherwise = Default::built_in(),
       .see = "traces.md",
       .flag = Flag{.name = "streams",
                    .heading = Heading::model,
                    .argument = "POLICY",
                    .commands = {Taker::run, Taker::check}}},
      word(stream_policies()), [](auto& c) -> auto& { return c.workload.streams; });
  keys.add(
      {.path = "workload.replay-only",
       .help = "give every node, communication too, its recorded duration",
       .example = "true",
       .otherwise = Default::built_in()},
      boolean(), [](auto& c) -> auto& { return c.execution.replay_only; });
  keys.add(
      {.path = "workload.iterations",
       .help = "number of times that each NPU executes its trace; it starts again when its own last node is done",
       .example = "10",
       .otherwise = Default::built_in(),
       .flag = Flag{.name = "iterations",
                    .heading = Heading::model,
                    .argument = "N",
                    .commands = {Taker::run, Taker::check}}},
      count(), [](auto& c) -> auto& { return c.execution.iterations; });
}

}  // namespace

const Keys<ModelChoice>& model_keys() {
  static const Keys<ModelChoice> all = [] {
    Keys<ModelChoice> keys("workload.model", "workload.model");
    keys.add(
        {.path = "workload.model.kind",
         .help = "family of the model, which decides its other keys",
         .example = "dlrm",
         .otherwise = Default::built_in()},
        word(model_families()), [](auto& choice) -> auto& { return choice.family; });
    keys.add({.path = "workload.model.base",
              .help = "file whose keys hold where `model` has none of its own",
              .example = "models/llama3-70b.yaml",
              .otherwise = Default::none()},
             file().info,
             {[](const Value&, const std::string&, ModelChoice&, Reading&) {}, [](const ModelChoice&, Writer&) {},
              [](const ModelChoice&, const ModelChoice&) { return true; }});
    return keys;
  }();
  return all;
}

const Keys<Configuration>& generated_workload_keys() {
  static const Keys<Configuration> all = [] {
    Keys<Configuration> keys("workload");
    keys.add({.path = "workload.parallel",
              .help = "division of the generated step among NPUs; the keys are those of `workload.parallel`",
              .example = "{tp: 8, dp: 16, pp: 4, micro-batches: 16}",
              .otherwise = Default::none()},
             {"mapping", "a mapping of keys to values", "-", "the keys below"}, parallelisation());
    keys.add({.path = "workload.model",
              .help = "model whose training step is generated instead of read from traces, or its file",
              .example = "models/llama3-70b.yaml",
              .otherwise = Default::none(),
              .see = "workloads.md"},
             {"mapping or file", "a model, or the name of a file that holds one", "-", "the keys below"},
             {read_model, write_model,
              [](const Configuration& a, const Configuration& b) {
                return a.workload.generated == b.workload.generated;
              }})
        .needed_if([](const Configuration& c, const Reading&) { return c.workload.generated.has_value(); },
                   "workload.parallel is given");
    return keys;
  }();
  return all;
}

const Keys<Configuration>& workload_keys() {
  static const Keys<Configuration> all = [] {
    Keys<Configuration> keys("workload");
    keys.add({.path = "workload.traces",
              .help = "traces that the NPUs execute",
              .example = "traces/workload",
              .otherwise = Default::none()},
             {"files",
              "a prefix (PREFIX.<npu>.et), a name with {npu} in it, {all: FILE}, or a list such as [{npus: 0-31, file: "
              "\"a.{npu}.et\"}]",
              "-", "a prefix, {all: FILE} or a list"},
             traces())
        .needed_if(needs_traces, "there is no workload.model")
        .excludes("workload.model");
    keys.add({.path = "workload.groups",
              .help = "process groups, a JSON file {\"name\": [npu, ...], ...}",
              .example = "traces/workload.json",
              .otherwise = Default::none()},
             file().info, groups())
        .excludes("workload.model");
    add_policies(keys);
    add_recording(keys);
    return keys;
  }();
  return all;
}

const Keys<TraceEntry>& trace_keys() {
  static const Keys<TraceEntry> all = [] {
    Keys<TraceEntry> keys("workload.traces", "workload.traces");
    keys.add(
        {.path = "workload.traces.npus",
         .help = "NPUs that read these traces; ranges ascend and hold every NPU once",
         .example = "0-31",
         .otherwise = Default::needed()},
        npu_range(), [](auto& entry) -> auto& { return entry.npus; });
    keys.add(
        {.path = "workload.traces.file",
         .help = "name of the trace, in which {npu} stands for the number of the NPU",
         .example = "\"a.{npu}.et\"",
         .otherwise = Default::needed()},
        file(), [](auto& entry) -> auto& { return entry.file; });
    return keys;
  }();
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

}  // namespace orrery::config
