#include "interpret.hpp"

#include <fmt/format.h>

#include <limits>
#include <unordered_map>
#include <utility>

#include "orrery/base/text.hpp"
#include "orrery/base/time.hpp"
#include "types.hpp"

namespace orrery::trace {
namespace {

constexpr std::uint64_t longest_duration_micros =
    static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max() / ps_per_us);

std::string_view what_is_missing(Attribute which) {
  if (which == Attribute::comm_size || which == Attribute::tensor_size) return "the size is missing: ";
  return which == Attribute::comm_type ? "the collective type is missing: " : "the peer is missing: ";
}

/// Of what takes the communication resource.
bool is_communication(NodeKind kind) {
  return kind == NodeKind::collective || kind == NodeKind::send || kind == NodeKind::mem_load ||
         kind == NodeKind::mem_store;
}

/// What switches on the path to the memory do.
bool goes_with(NodeKind access, CollectiveKind collective) {
  if (access == NodeKind::mem_load) return collective == CollectiveKind::all_gather;
  return collective == CollectiveKind::all_reduce || collective == CollectiveKind::reduce_scatter;
}

/// Numbers values in the order of their first use.
class Slots {
 public:
  /// The slot of `value` and whether it is new.
  std::pair<std::uint32_t, bool> of(std::uint64_t value, std::uint32_t next) {
    const auto [entry, added] = slots_.try_emplace(value, next);
    return {entry->second, added};
  }

 private:
  std::unordered_map<std::uint64_t, std::uint32_t> slots_;
};

class Interpreter {
 public:
  Interpreter(const RawTrace& raw, const Source& source, const NamePool& names, Groups& groups,
              const ReadOptions& options, TensorLists& tensors)
      : raw_(raw),
        source_(source),
        names_(names),
        groups_(groups),
        num_npus_(options.npu_limit()),
        streams_(options.streams),
        custom_nodes_(options.custom_nodes),
        tensors_(tensors) {}

  Meaning run(const NodeOrder& order, Edges edges, Faults& faults);

 private:
  Node judge(const RawNode& raw);
  void collective(const RawNode& raw, Node& node);
  void message(const RawNode& raw, Node& node, bool sends);
  void memory(const RawNode& raw, Node& node, NodeKind kind);
  CollectiveKind collective_type(const RawNode& raw) const;
  void set_group(const RawNode& raw, Node& node, CollectiveKind collective);
  Time duration(const RawNode& raw) const;
  std::uint64_t size(const RawNode& raw, Attribute which) const;
  std::uint64_t whole(const RawNode& raw, Attribute which) const;
  [[noreturn]] void fail_as_number(const RawNode& raw, std::string_view what, Number value) const;
  void tensors(std::uint32_t at, std::size_t raw_index);
  void tensor(std::uint32_t at, const RawNode& raw, const RawTensor& entry);
  std::uint32_t npu(const RawNode& raw, Attribute which) const;
  std::uint32_t group_slot(const RawNode& raw);
  std::int32_t priority(const RawNode& raw);
  std::uint16_t stream(const RawNode& raw);
  void set_own_end(const RawNode& raw, Attribute which);
  void note(const Edges& edges, const NodeOrder& order);
  [[noreturn]] void fail(const RawNode& raw, std::string_view found, std::string_view expected = {}) const;

  const RawTrace& raw_;
  const Source& source_;
  const NamePool& names_;
  Groups& groups_;
  std::uint32_t num_npus_;
  Streams streams_;
  const CustomNodes& custom_nodes_;
  Meaning meaning_;
  std::unordered_map<std::uint64_t, std::uint16_t> number_of_stream_;
  std::unordered_map<std::uint32_t, std::uint32_t> slot_of_group_name_;
  Slots group_slots_;
  Slots peer_slots_;  ///< sends and receives have slots of their own, so that a peer that does both shares structures
  Slots send_tags_;
  Slots receive_tags_;
  TensorLists& tensors_;
};

void Interpreter::fail(const RawNode& raw, std::string_view found, std::string_view expected) const {
  throw Error(ErrorCode::bad_input, place_of(source_, raw, names_), found, expected);
}

/// The value of an attribute that is there and a whole number of 0 or more.
std::uint64_t Interpreter::whole(const RawNode& raw, Attribute which) const {
  const Number value = raw[which];
  const std::string_view its_name = attribute_names[static_cast<std::size_t>(which)];
  switch (value.form) {
    case Form::whole:
      if (value.magnitude > Bytes::most().count() && (which == Attribute::comm_size || which == Attribute::tensor_size))
        fail(raw, fmt::format("{} is {}", its_name, value.magnitude), fmt::format("at most {}", Bytes::most().count()));
      return value.magnitude;
    case Form::fraction:
      if (which == Attribute::num_ops) return value.magnitude;
      break;
    case Form::absent:
      fail(raw, fmt::format("{}there is no {}", what_is_missing(which), its_name),
           fmt::format("the attribute {}", its_name));
    default:
      break;
  }
  fail_as_number(raw, its_name, value);
}

/// `value` is given, but not a whole number of 0 or more.
void Interpreter::fail_as_number(const RawNode& raw, std::string_view what, Number value) const {
  if (value.form == Form::negative) fail(raw, fmt::format("{} is -{}", what, value.magnitude), "a number of 0 or more");
  const std::string_view fault = value.form == Form::fraction       ? "is not a whole number"
                                 : value.form == Form::out_of_range ? "does not fit 64 bits"
                                                                    : "is not a number";
  fail(raw, fmt::format("{} {}", what, fault), "a whole number");
}

std::uint64_t Interpreter::size(const RawNode& raw, Attribute which) const {
  return raw[which].form == Form::absent ? 0 : whole(raw, which);
}

Time Interpreter::duration(const RawNode& raw) const {
  if (raw.duration_micros > longest_duration_micros)
    fail(raw, fmt::format("a duration of {}", counted(raw.duration_micros, "microsecond")),
         fmt::format("at most {}", longest_duration_micros));
  return Time::from_ps(static_cast<std::int64_t>(raw.duration_micros) * ps_per_us);
}

/// Of a node of the communication resource.
std::int32_t Interpreter::priority(const RawNode& raw) {
  const Number value = raw[Attribute::comm_priority];
  constexpr std::uint64_t largest = std::numeric_limits<std::int32_t>::max();
  const bool is_whole = value.form == Form::whole || value.form == Form::negative;
  if (value.form == Form::absent || (is_whole && value.magnitude == 0)) return 0;
  if (!is_whole || value.magnitude > largest)
    fail(raw, "comm_priority is no whole number of 32 bits", fmt::format("-{0} to {0}", largest));
  meaning_.notices.add("comm-priority", "comm_priority matters with communication.order priority only");
  const auto magnitude = static_cast<std::int32_t>(value.magnitude);
  return value.form == Form::negative ? -magnitude : magnitude;
}

/// Of a node that holds a resource: streams are numbered as they come, so that their names do not tell structures
/// apart.
std::uint16_t Interpreter::stream(const RawNode& raw) {
  const Number value = raw[Attribute::stream];
  if (streams_ == Streams::by_count) return 0;
  if (value.form == Form::absent || value.form == Form::negative) {
    meaning_.notices.add(
        "stream",
        "workload.streams is trace, but nodes name no stream: they take the places that compute.streams "
        "and communication.streams count");
    return 0;
  }
  if (value.form != Form::whole) fail(raw, "stream is no whole number", "the number of a stream, or no such attribute");
  const std::size_t next = number_of_stream_.size() + 1;
  if (next > std::numeric_limits<std::uint16_t>::max())
    fail(raw, fmt::format("{} streams before this one", next - 1), "fewer");
  return number_of_stream_.try_emplace(value.magnitude, static_cast<std::uint16_t>(next)).first->second;
}

std::uint32_t Interpreter::npu(const RawNode& raw, Attribute which) const {
  const Number value = raw[which];
  const std::string_view its_name = attribute_names[static_cast<std::size_t>(which)];
  const bool negative = value.form == Form::negative;
  if (negative || (value.form == Form::whole && value.magnitude >= num_npus_))
    fail(raw,
         fmt::format("{} is {}{}, but the system has {}", its_name, negative ? "-" : "", value.magnitude,
                     counted(num_npus_, "NPU")),
         fmt::format("0 to {}", num_npus_ - 1));
  return static_cast<std::uint32_t>(whole(raw, which));
}

void Interpreter::set_own_end(const RawNode& raw, Attribute which) {
  if (raw[which].form == Form::absent || groups_.alone()) return;
  const std::uint32_t end = npu(raw, which);
  if (end != source_.npu)
    fail(raw,
         fmt::format("{} is {}, but this is the trace of NPU {}", attribute_names[static_cast<std::size_t>(which)], end,
                     *source_.npu),
         "the NPU itself, or nothing");
  if (!meaning_.own_end) meaning_.own_end = Meaning::Use{end, place_of(source_, raw, names_)};
}

void Interpreter::message(const RawNode& raw, Node& node, bool sends) {
  node.size = whole(raw, Attribute::comm_size);
  if (node.size == 0) return;
  const std::uint32_t peer = npu(raw, sends ? Attribute::comm_dst : Attribute::comm_src);
  set_own_end(raw, sends ? Attribute::comm_src : Attribute::comm_dst);
  const Number tag_number = raw[Attribute::comm_tag];
  const std::uint64_t tag = tag_number.form == Form::negative ? 0 - tag_number.magnitude : tag_number.magnitude;
  const auto [peer_slot, new_peer] =
      peer_slots_.of(std::uint64_t{peer} * 2 + (sends ? 1 : 0), static_cast<std::uint32_t>(meaning_.peers.size()));
  if (new_peer) meaning_.peers.push_back({peer, place_of(source_, raw, names_)});
  const auto [tag_slot, new_tag] =
      (sends ? send_tags_ : receive_tags_).of(tag, static_cast<std::uint32_t>(meaning_.tags.size()));
  if (new_tag) meaning_.tags.push_back(tag);
  node.kind = sends ? NodeKind::send : NodeKind::receive;
  node.slot = peer_slot;
  node.detail = tag_slot;
}

std::uint32_t Interpreter::group_slot(const RawNode& raw) {
  const auto known = slot_of_group_name_.find(raw.group);
  if (known != slot_of_group_name_.end()) return known->second;
  Place place = place_of(source_, raw, names_);
  const GroupId group =
      raw.group == no_name ? groups_.world() : groups_.resolve(names_[raw.group], raw_, place, meaning_.notices);
  const auto [slot, added] = group_slots_.of(group.value(), static_cast<std::uint32_t>(meaning_.groups.size()));
  if (added) meaning_.groups.push_back({group.value(), std::move(place)});
  slot_of_group_name_.emplace(raw.group, slot);
  return slot;
}

CollectiveKind Interpreter::collective_type(const RawNode& raw) const {
  const std::uint64_t type = whole(raw, Attribute::comm_type);
  const auto kind = collective_kind(raw_.layout, type);
  if (!kind) fail(raw, fmt::format("collective type {} is not known", type), "a collective type of Chakra");
  return *kind;
}

void Interpreter::set_group(const RawNode& raw, Node& node, CollectiveKind collective) {
  if (raw.dimensions == 0)
    fail(raw, "no dimension takes part: involved_dim is false for each",
         "one or more that take part, or no involved_dim");
  node.collective = collective;
  node.detail = raw.dimensions;
  node.slot = group_slot(raw);
}

void Interpreter::collective(const RawNode& raw, Node& node) {
  const CollectiveKind kind = collective_type(raw);
  const bool is_barrier = kind == CollectiveKind::barrier;
  node.size = is_barrier ? 0 : whole(raw, Attribute::comm_size);
  if (node.size == 0 && !is_barrier) return;
  set_group(raw, node, kind);
  node.kind = NodeKind::collective;
}

/// With a collective type: of a group, by the switches on the path.
void Interpreter::memory(const RawNode& raw, Node& node, NodeKind kind) {
  node.size = whole(raw, Attribute::tensor_size);
  const bool is_of_group = raw[Attribute::comm_type].form != Form::absent;
  const CollectiveKind collective = is_of_group ? collective_type(raw) : CollectiveKind{};
  if (is_of_group && !goes_with(kind, collective))
    fail(raw, fmt::format("switches carry out no {}", name(kind, collective)),
         "a load with all-gather (2), a store with all-reduce (0) or reduce-scatter (7), or no comm_type");
  if (node.size == 0) return;
  if (is_of_group) set_group(raw, node, collective);
  node.kind = kind;
}

Node Interpreter::judge(const RawNode& raw) {
  const auto type = node_type(raw_.layout, raw.type);
  if (!type) fail(raw, describe_node_type(raw.type), "a node type of Chakra from METADATA to COMM_COLL");
  Node node{};
  node.kind = NodeKind::instant;
  const bool can_be_cpu = *type == NodeType::comp || *type == NodeType::comm_coll;
  if (can_be_cpu && size(raw, Attribute::is_cpu_op) != 0) {
    node.kind = NodeKind::cpu;
    return node;
  }
  switch (*type) {
    case NodeType::invalid:
    case NodeType::metadata:
      break;
    case NodeType::comp:
      node.kind = NodeKind::compute;
      node.size = size(raw, Attribute::tensor_size);
      node.detail = size(raw, Attribute::num_ops);
      break;
    case NodeType::mem_load:
      memory(raw, node, NodeKind::mem_load);
      break;
    case NodeType::mem_store:
      memory(raw, node, NodeKind::mem_store);
      break;
    case NodeType::comm_send:
    case NodeType::comm_recv:
      message(raw, node, *type == NodeType::comm_send);
      break;
    case NodeType::comm_coll:
      collective(raw, node);
      break;
  }
  return node;
}

void Interpreter::tensor(std::uint32_t at, const RawNode& raw, const RawTensor& entry) {
  const std::string_view list = entry.is_output ? "outputs" : "inputs";
  constexpr std::string_view expected = "a list of texts, the name of a tensor and its bytes in turn";
  if (entry.name == no_name) fail(raw, fmt::format("{} is no list of texts", list), expected);
  const auto name = [&] { return shown(names_[entry.name]); };
  if (entry.form == Form::absent)
    fail(raw, fmt::format("{} ends with tensor '{}' without its bytes", list, name()), expected);
  if (entry.form != Form::whole)
    fail_as_number(raw, fmt::format("the size of tensor '{}' in {}", name(), list), {entry.magnitude, entry.form});
  const bool did_fit = tensors_.size() <= Bytes::most();
  if (const auto other = tensors_.list(at, entry.name, Bytes(entry.magnitude), entry.is_output))
    fail(raw,
         fmt::format("tensor '{}' in {} has {}, but {} where it was listed before", name(), list,
                     counted(entry.magnitude, "byte"), other->count()),
         "one size of a tensor");
  if (did_fit && tensors_.size() > Bytes::most())
    fail(raw,
         fmt::format("with tensor '{}' in {} the tensors of this trace have more than {} bytes", name(), list,
                     Bytes::most().count()),
         "fewer");
}

/// Inputs first, in whatever order the node has them: the order tells structures apart.
void Interpreter::tensors(std::uint32_t at, std::size_t raw_index) {
  const auto entries = raw_.part(raw_.tensors, raw_index, &RawNode::first_tensor);
  for (const bool outputs : {false, true})
    for (const RawTensor& entry : entries)
      if (entry.is_output == outputs) tensor(at, raw_.nodes[raw_index], entry);
}

void Interpreter::note(const Edges& edges, const NodeOrder& order) {
  if (!edges.decision.empty()) meaning_.notices.add("dependencies", edges.decision);
  if (edges.num_absent > 0) {
    const RawNode& node = raw_.nodes[order.raw_index(edges.absent_of)];
    meaning_.notices.add(
        "absent-dependency",
        fmt::format("dependencies on nodes that the trace does not hold are left out (node {} '{}' on {})", node.id,
                    shown(names_[node.name]), static_cast<std::int64_t>(edges.absent_id)),
        edges.num_absent);
  }
  if (raw_.unreadable_definitions > 0)
    meaning_.notices.add("process-group-init", "the process groups of a process_group:init node are not understood",
                         raw_.unreadable_definitions);
}

Meaning Interpreter::run(const NodeOrder& order, Edges edges, Faults& faults) {
  Graph& graph = meaning_.graph;
  Labels& labels = meaning_.labels;
  tensors_.start();
  const std::uint32_t num_nodes = order.size();
  graph.nodes.reserve(num_nodes + 1);
  labels.ids.reserve(num_nodes);
  labels.names.reserve(num_nodes);
  if (num_nodes > 0) meaning_.first_id = raw_.nodes[order.raw_index(0)].id;
  for (std::uint32_t at = 0; at < num_nodes; ++at) {
    const RawNode& raw = raw_.nodes[order.raw_index(at)];
    Node node{};
    std::int32_t priority = 0;
    faults.attempt([&] {
      node = judge(raw);
      if (is_communication(node.kind)) priority = this->priority(raw);
      if (is_communication(node.kind) || node.kind == NodeKind::compute) node.stream = stream(raw);
    });
    faults.attempt([&] { tensors(at, order.raw_index(at)); });
    node.first_successor = edges.first_successor[at];
    node.num_dependencies = edges.num_dependencies[at];
    if (node.kind == NodeKind::instant) node.size = 0;
    if (node.kind != NodeKind::instant && raw.duration_micros > 0) {
      if (graph.durations.empty()) graph.durations.resize(num_nodes);
      faults.attempt([&] { graph.durations[at] = duration(raw); });
    }
    if (priority != 0) {
      graph.priorities.resize(num_nodes);
      graph.priorities[at] = priority;
    }
    if (const auto custom = custom_nodes_.find(raw.id);
        custom != custom_nodes_.end() && node.kind == NodeKind::collective) {
      graph.customs.resize(num_nodes);
      graph.customs[at] = custom->second;
    }
    graph.nodes.push_back(node);
    labels.ids.push_back(raw.id - meaning_.first_id);
    labels.names.push_back(raw.name);
  }
  Node sentinel{};
  sentinel.first_successor = edges.first_successor[num_nodes];
  graph.nodes.push_back(sentinel);
  note(edges, order);
  labels.tensors = tensors_.keys();
  graph.tensors = tensors_.finish(num_nodes);
  graph.successors = std::move(edges.successors);
  graph.num_group_slots = static_cast<std::uint32_t>(meaning_.groups.size());
  graph.num_peer_slots = static_cast<std::uint32_t>(meaning_.peers.size());
  graph.num_tag_slots = static_cast<std::uint32_t>(meaning_.tags.size());
  graph.num_streams = static_cast<std::uint32_t>(number_of_stream_.size());
  return std::move(meaning_);
}

}  // namespace

Meaning interpret(const RawTrace& raw, const NodeOrder& order, Edges edges, const Source& source, const NamePool& names,
                  Groups& groups, const ReadOptions& options, TensorLists& tensors, Faults& faults) {
  return Interpreter(raw, source, names, groups, options, tensors).run(order, std::move(edges), faults);
}

}  // namespace orrery::trace
