#include "orrery/trace/store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "file_cache.hpp"
#include "orrery/base/error.hpp"
#include "orrery/base/text.hpp"
#include "read_file.hpp"
#include "shared_parts.hpp"
#include "source.hpp"

namespace orrery::trace {

struct Store::State {
  State(ReadOptions options, NamedGroups named) : context(std::move(options), std::move(named)) {}

  bool check_npu(const TraceContents& contents, NpuId npu, Faults& faults) const;

  ReadContext context;
  SharedParts parts;
  std::vector<KnownFile> files;
  FileCache cache{context, parts, files};
  Notices notices;
};

/// Says whether the trace can be that of this NPU; what rules it out are faults.
bool Store::State::check_npu(const TraceContents& contents, NpuId npu, Faults& faults) const {
  bool is_good = true;
  const auto fail = [&](const TraceContents::FirstUse& use, std::string_view found, std::string_view expected) {
    Place place = use.place;
    place.npu = npu.value();
    faults.add(Error(ErrorCode::bad_input, place, found, expected));
    is_good = false;
  };
  for (const auto& use : contents.groups) {
    if (use.regular) continue;
    const Group& group = context.groups[GroupId(use.value)];
    if (group.members.empty() || std::ranges::find(group.members, npu) != group.members.end()) continue;
    fail(use,
         fmt::format("NPU {} is not in the node's process group '{}' of {}: {}", npu.value(), shown(group.name),
                     counted(group.members.size(), "member"), list(group.members)),
         fmt::format("a group with member {}", npu.value()));
  }
  for (const auto& use : contents.peers)
    if (use.value == npu.value()) fail(use, "the peer is the NPU itself", "another NPU");
  const auto& own_end = contents.own_end;
  if (own_end && own_end->value != npu.value())
    fail(*own_end,
         fmt::format("the node's own end is NPU {}, but this is the trace of NPU {}", own_end->value, npu.value()),
         "the NPU itself, or nothing");
  return is_good;
}

Store::Store(ReadOptions options, NamedGroups groups)
    : state_(std::make_unique<State>(std::move(options), std::move(groups))) {}
Store::~Store() = default;
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;

namespace {

/// Returns the keys that differ from their defaults.
std::string keys_of(const RecordingOptions& options) {
  const RecordingOptions none;
  std::vector<std::string_view> keys;
  if (options.step != none.step) keys.emplace_back("workload.step");
  if (options.replicate != none.replicate) keys.emplace_back("workload.replicate");
  if (options.execution_traces != none.execution_traces) keys.emplace_back("workload.execution-traces");
  return fmt::format("{}", fmt::join(keys, ", "));
}

}  // namespace

std::optional<NpuTrace> Store::read(const std::filesystem::path& path, NpuId npu, Faults& faults,
                                    WhileReading while_reading) {
  const ReadOptions& options = state_->context.options;
  state_->context.while_reading = std::move(while_reading);
  ensure(npu.value() < options.npu_limit(), "a trace is read for an NPU that is not there");
  const LoadedTrace* const loaded = state_->cache.load(path, npu, faults);
  if (loaded == nullptr) return {};
  const TraceContents& contents = loaded->contents;
  if (!options.alone && !state_->check_npu(contents, npu, faults)) return {};
  state_->notices.merge_for(npu.value(), contents.notices);
  if (contents.recorded == nullptr && options.recording != RecordingOptions())
    state_->notices.add("recording-keys", npu.value(),
                        fmt::format("no effect of {}: {} is a trace of the format {}, which no profiler recorded",
                                    keys_of(options.recording), path.string(), state_->files[loaded->file].format));
  NpuTrace trace;
  trace.graph = loaded->parts.graph;
  trace.labels = loaded->parts.labels;
  trace.first_id = contents.first_id;
  trace.tags = *contents.tags;
  trace.file = loaded->file;
  trace.recorded = contents.recorded;
  trace.groups.reserve(contents.groups.size());
  Groups& groups = state_->context.groups;
  for (const auto& use : contents.groups)
    trace.groups.push_back(use.regular ? groups.intern(state_->context.names[use.value], *use.regular, npu)
                                       : GroupId(use.value));
  trace.peers.reserve(contents.peers.size());
  for (const auto& use : contents.peers) trace.peers.emplace_back(use.value);
  return trace;
}

NpuTrace Store::read(const std::filesystem::path& path, NpuId npu) {
  Faults faults;
  auto trace = read(path, npu, faults);
  if (!trace) state_->cache.forget(path);
  faults.raise();
  return std::move(*trace);
}

void Store::delay(NpuTrace& trace, Time by) {
  Graph graph = *trace.graph;
  graph.durations.resize(graph.num_nodes());
  graph.durations.front() = by;
  auto parts = state_->parts.keep(std::move(graph), Labels(*trace.labels));
  trace.graph = std::move(parts.graph);
  trace.labels = std::move(parts.labels);
}

NpuTrace Store::keep(Structure structure, std::string source) {
  NamePool& names = state_->context.names;
  Labels labels;
  for (std::uint32_t i = 0; i < structure.graph.num_nodes(); ++i) {
    labels.ids.push_back(i);
    labels.names.push_back(names.intern(structure.names[i]));
  }
  for (const std::string& tensor : structure.tensor_names) labels.tensors.push_back(names.intern(tensor));
  auto parts = state_->parts.keep(std::move(structure.graph), std::move(labels));
  NpuTrace trace;
  trace.graph = std::move(parts.graph);
  trace.labels = std::move(parts.labels);
  trace.tags = std::move(structure.tags);
  trace.file = static_cast<std::uint32_t>(state_->files.size());
  state_->files.push_back({std::move(source), {}, 0});
  return trace;
}

GroupId Store::keep_group(std::string_view name, std::vector<NpuId> members) {
  return state_->context.groups.intern(name, std::move(members));
}

GroupId keep_unlisted_group(Store& store, std::string_view name) {
  return store.state_->context.groups.intern_unlisted(name);
}

NpuTrace adopt(Store& store, NpuTrace trace, const Store& other, Adopted& known) {
  auto& [graph, labels] = known.parts[{trace.graph.get(), trace.labels.get()}];
  if (graph == nullptr) {
    NamePool& names = store.state_->context.names;
    Labels renamed = *trace.labels;
    for (std::uint32_t& name : renamed.names) name = names.intern(other.name(name));
    for (std::uint32_t& name : renamed.tensors) name = names.intern(other.name(name));
    auto parts = store.state_->parts.keep(Graph(*trace.graph), std::move(renamed));
    graph = std::move(parts.graph);
    labels = std::move(parts.labels);
  }
  trace.graph = graph;
  trace.labels = labels;
  const auto [file, is_new] =
      known.files.try_emplace(trace.file, static_cast<std::uint32_t>(store.state_->files.size()));
  if (is_new) store.state_->files.push_back(other.state_->files[trace.file]);
  trace.file = file->second;
  return trace;
}

void Store::host_instead(std::function<bool(NpuId)> hosts) {
  state_->context.options.hosts = std::move(hosts);
  state_->cache.clear();
  state_->parts.free_unused();
}

const std::vector<Group>& Store::groups() const { return state_->context.groups.all(); }

std::span<const GroupId> Store::unlisted_groups() const { return state_->context.groups.unlisted(); }

void Store::list_group(GroupId group, std::vector<NpuId> members) {
  state_->context.groups.list(group, std::move(members));
}

std::string_view Store::name(std::uint32_t index) const { return state_->context.names[index]; }

const std::string& Store::file(const NpuTrace& trace) const { return state_->files[trace.file].name; }

std::vector<ReadFile> Store::files_read() const {
  std::vector<ReadFile> files;
  for (const KnownFile& file : state_->files)
    if (!file.format.empty()) files.push_back({file.name, file.digest});
  return files;
}

std::string_view Store::format(const NpuTrace& trace) const { return state_->files[trace.file].format; }

Place Store::place(const NpuTrace& trace, NpuId npu, NodeId node) const {
  return {.file = file(trace), .npu = npu.value(), .node = trace.id_of(node), .node_name = shown(name_of(trace, node))};
}

std::size_t Store::num_structures() const { return state_->parts.num_structures(); }

std::size_t Store::num_graphs() const { return state_->parts.num_graphs(); }

std::size_t Store::bytes() const { return state_->context.names.bytes() + state_->parts.bytes(); }

const Notices& Store::notices() const { return state_->notices; }

std::string Store::precision() const {
  const ReadContext& context = state_->context;
  if (!context.options.precision.empty()) return context.options.precision;
  if (context.precisions.size() > 1)
    throw Error(ErrorCode::bad_input, {},
                fmt::format("one trace computes in {}, another one in {}", shown(*context.precisions.begin()),
                            shown(*context.precisions.rbegin())),
                "traces of one precision");
  return context.precisions.empty() ? std::string() : *context.precisions.begin();
}

}  // namespace orrery::trace
