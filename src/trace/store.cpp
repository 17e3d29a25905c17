#include "orrery/trace/store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <set>
#include <unordered_map>

#include "dependencies.hpp"
#include "groups.hpp"
#include "interpret.hpp"
#include "mix.hpp"
#include "orrery/base/text.hpp"
#include "parse.hpp"

namespace orrery::trace {
namespace {

/// How many files are remembered, so that a file that several NPUs share is read once.
constexpr std::size_t most_files_remembered = 16;

bool operator==(const Node& a, const Node& b) { return std::memcmp(&a, &b, sizeof(Node)) == 0; }

bool same(const Graph& a, const Graph& b) {
  const auto equal = [](const Node& x, const Node& y) { return x == y; };
  return a.num_group_slots == b.num_group_slots && a.num_peer_slots == b.num_peer_slots &&
         a.num_tag_slots == b.num_tag_slots && a.num_streams == b.num_streams &&
         std::ranges::equal(a.nodes, b.nodes, equal) && a.successors == b.successors && a.durations == b.durations &&
         a.priorities == b.priorities && a.customs == b.customs && a.tensors == b.tensors;
}

bool same(const Labels& a, const Labels& b) { return a.ids == b.ids && a.names == b.names && a.tensors == b.tensors; }

std::uint64_t hash_of(const Graph& graph) {
  std::uint64_t hash = mix(mix(graph.num_group_slots, graph.num_peer_slots), graph.num_tag_slots);
  hash = mix_all(hash, std::span(graph.nodes));
  hash = mix_all(hash, std::span(graph.successors));
  hash = mix_all(mix_all(hash, std::span(graph.durations)), std::span(graph.priorities));
  hash = mix_all(hash, std::span(graph.customs));
  hash = mix_all(hash, std::span(graph.tensors.sizes));
  return mix_all(mix_all(hash, std::span(graph.tensors.first)), std::span(graph.tensors.listings));
}

std::uint64_t hash_of(const Labels& labels) {
  return mix_all(mix_all(mix_all(0, std::span(labels.ids)), std::span(labels.names)), std::span(labels.tensors));
}

/// Values that are kept once each.
template <class T>
class Interned {
 public:
  std::shared_ptr<const T> intern(T&& value) {
    const std::uint64_t hash = hash_of(value);
    const auto [begin, end] = values_.equal_range(hash);
    for (auto at = begin; at != end; ++at)
      if (same(*at->second, value)) return at->second;
    return values_.emplace(hash, std::make_shared<const T>(std::move(value)))->second;
  }
  /// Frees the values that nobody else holds. Returns where they were.
  std::set<const T*> free_unused() {
    std::set<const T*> freed;
    std::erase_if(values_, [&](const auto& entry) {
      return entry.second.use_count() == 1 && freed.insert(entry.second.get()).second;
    });
    return freed;
  }
  std::size_t size() const { return values_.size(); }
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }

 private:
  std::unordered_multimap<std::uint64_t, std::shared_ptr<const T>> values_;
};

/// A file that was read: its shared parts interned, the rest as `interpret` found it.
struct Remembered {
  std::filesystem::path path;
  std::uint32_t file = 0;
  std::shared_ptr<const Graph> graph;
  std::shared_ptr<const Labels> labels;
  Meaning meaning;  ///< its graph and labels moved away
  Faults faults;    ///< with any, there is nothing else
};

}  // namespace

struct Store::State {
  State(ReadOptions read_options, NamedGroups named)
      : options(std::move(read_options)), groups(std::move(named), options) {}

  const Remembered& load(const std::filesystem::path& path, NpuId npu);
  Meaning understand(const std::filesystem::path& path, const Source& source, Faults& faults);
  bool check_npu(const Remembered& file, NpuId npu, Faults& faults) const;

  ReadOptions options;
  Groups groups;
  NamePool names;
  TensorLists tensors;
  Interned<Graph> graphs;
  Interned<Labels> labels;
  std::set<std::pair<const Graph*, const Labels*>> structures;
  std::vector<std::string> files;
  std::deque<Remembered> remembered;  ///< the latest last
  Notices notices;
};

/// With faults, what is returned has no use.
Meaning Store::State::understand(const std::filesystem::path& path, const Source& source, Faults& faults) {
  Meaning meaning;
  faults.attempt([&] {
    const RawTrace raw = parse_file(path, source, names);
    const NodeOrder order(raw, source, names, faults);
    Edges edges(order.size());
    if (faults.empty())  // else ids do not tell nodes apart
      faults.attempt([&] { edges = order_nodes(raw, order, options.dependencies, source, names); });
    meaning = interpret(raw, order, std::move(edges), source, names, groups, options, tensors, faults);
  });
  return meaning;
}

const Remembered& Store::State::load(const std::filesystem::path& path, NpuId npu) {
  const auto known = std::ranges::find(remembered, path, &Remembered::path);
  if (known != remembered.end()) return *known;
  if (remembered.size() == most_files_remembered) remembered.pop_front();
  Remembered& file = remembered.emplace_back();
  file.path = path;
  const Source source{path.string(), npu.value()};
  file.meaning = understand(path, source, file.faults);
  if (!file.faults.empty()) return file;
  file.file = static_cast<std::uint32_t>(files.size());
  file.graph = graphs.intern(std::move(file.meaning.graph));
  file.labels = labels.intern(std::move(file.meaning.labels));
  structures.emplace(file.graph.get(), file.labels.get());
  file.meaning.graph = {};
  file.meaning.labels = {};
  files.push_back(source.file);
  return file;
}

/// False if the trace cannot be that of this NPU.
bool Store::State::check_npu(const Remembered& file, NpuId npu, Faults& faults) const {
  bool good = true;
  const auto fail = [&](const Meaning::Use& use, std::string_view found, std::string_view expected) {
    Place place = use.place;
    place.npu = npu.value();
    faults.add(Error(ErrorCode::bad_input, place, found, expected));
    good = false;
  };
  for (const Meaning::Use& use : file.meaning.groups) {
    const Group& group = groups[GroupId(use.value)];
    if (group.members.empty() || std::ranges::find(group.members, npu) != group.members.end()) continue;
    fail(use,
         fmt::format("NPU {} is not in the node's process group '{}' of {}: {}", npu.value(), shown(group.name),
                     counted(group.members.size(), "member"), list(group.members)),
         fmt::format("a group with member {}", npu.value()));
  }
  for (const Meaning::Use& use : file.meaning.peers)
    if (use.value == npu.value()) fail(use, "the peer is the NPU itself", "another NPU");
  const auto& own_end = file.meaning.own_end;
  if (own_end && own_end->value != npu.value())
    fail(*own_end,
         fmt::format("the node's own end is NPU {}, but this is the trace of NPU {}", own_end->value, npu.value()),
         "the NPU itself, or nothing");
  return good;
}

Store::Store(ReadOptions options, NamedGroups groups)
    : state_(std::make_unique<State>(std::move(options), std::move(groups))) {}
Store::~Store() = default;
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;

std::optional<NpuTrace> Store::read(const std::filesystem::path& path, NpuId npu, Faults& faults) {
  ensure(npu.value() < state_->options.npu_limit(), "a trace is read for an NPU that is not there");
  const Remembered& file = state_->load(path, npu);
  file.faults.for_each([&](const Error& fault) { faults.add(fault); });
  if (!file.faults.empty() || (!state_->options.alone && !state_->check_npu(file, npu, faults))) return {};
  state_->notices.merge_for(npu.value(), file.meaning.notices);
  NpuTrace trace;
  trace.graph = file.graph;
  trace.labels = file.labels;
  trace.first_id = file.meaning.first_id;
  trace.tags = file.meaning.tags;
  trace.file = file.file;
  trace.groups.reserve(file.meaning.groups.size());
  for (const Meaning::Use& use : file.meaning.groups) trace.groups.emplace_back(use.value);
  trace.peers.reserve(file.meaning.peers.size());
  for (const Meaning::Use& use : file.meaning.peers) trace.peers.emplace_back(use.value);
  return trace;
}

NpuTrace Store::read(const std::filesystem::path& path, NpuId npu) {
  Faults faults;
  auto trace = read(path, npu, faults);
  if (!trace) std::erase_if(state_->remembered, [&](const Remembered& file) { return file.path == path; });
  faults.raise();
  return std::move(*trace);
}

NpuTrace Store::keep(Structure structure, std::string source) {
  Labels labels;
  for (std::uint32_t i = 0; i < structure.graph.num_nodes(); ++i) {
    labels.ids.push_back(i);
    labels.names.push_back(state_->names.intern(structure.names[i]));
  }
  for (const std::string& tensor : structure.tensor_names) labels.tensors.push_back(state_->names.intern(tensor));
  NpuTrace trace;
  trace.graph = state_->graphs.intern(std::move(structure.graph));
  trace.labels = state_->labels.intern(std::move(labels));
  trace.tags = std::move(structure.tags);
  trace.file = static_cast<std::uint32_t>(state_->files.size());
  state_->files.push_back(std::move(source));
  state_->structures.emplace(trace.graph.get(), trace.labels.get());
  return trace;
}

GroupId Store::keep_group(std::string_view name, std::vector<NpuId> members) {
  return state_->groups.intern(name, std::move(members));
}

void Store::free_unused() {
  state_->remembered.clear();
  const auto graphs = state_->graphs.free_unused();
  const auto labels = state_->labels.free_unused();
  std::erase_if(state_->structures,
                [&](const auto& pair) { return graphs.contains(pair.first) || labels.contains(pair.second); });
}

const std::vector<Group>& Store::groups() const { return state_->groups.all(); }

std::string_view Store::name(std::uint32_t index) const { return state_->names[index]; }

const std::string& Store::file(const NpuTrace& trace) const { return state_->files[trace.file]; }

Place Store::place(const NpuTrace& trace, NpuId npu, NodeId node) const {
  return {.file = file(trace), .npu = npu.value(), .node = trace.id_of(node), .node_name = shown(name_of(trace, node))};
}

std::size_t Store::num_structures() const { return state_->structures.size(); }

std::size_t Store::num_graphs() const { return state_->graphs.size(); }

std::size_t Store::bytes() const {
  std::size_t total = state_->names.bytes();
  for (const auto& [hash, graph] : state_->graphs) total += graph->bytes();
  for (const auto& [hash, labels] : state_->labels)
    total += labels->ids.capacity() * sizeof(std::uint64_t) +
             (labels->names.capacity() + labels->tensors.capacity()) * sizeof(std::uint32_t);
  return total;
}

const Notices& Store::notices() const { return state_->notices; }

}  // namespace orrery::trace
