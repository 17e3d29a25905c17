#include "graph_maker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "dependencies.hpp"
#include "node_attributes.hpp"
#include "orrery/base/text.hpp"

namespace orrery::trace {
namespace {

/// Says whether nodes of a kind take the communication resource.
bool is_communication(NodeKind kind) {
  return kind == NodeKind::collective || kind == NodeKind::send || kind == NodeKind::mem_load ||
         kind == NodeKind::mem_store;
}

/// Says whether switches on the path to the memory carry out this collective with this access.
bool goes_with(NodeKind access, CollectiveKind collective) {
  if (access == NodeKind::mem_load) return collective == CollectiveKind::all_gather;
  return collective == CollectiveKind::all_reduce || collective == CollectiveKind::reduce_scatter;
}

/// Numbers values in the order of their first use.
class Slots {
 public:
  /// Returns the slot of `value`, which is `next` if it is new, and whether it is new.
  std::pair<std::uint32_t, bool> of(std::uint64_t value, std::uint32_t next) {
    if (value < most_small) {
      if (value >= small_.size()) small_.resize(std::max<std::size_t>(value + 1, 2 * small_.size()));
      const bool is_new = small_[value] == 0;
      if (is_new) small_[value] = next + 1;
      return {small_[value] - 1, is_new};
    }
    const auto [entry, added] = slots_.try_emplace(value, next);
    return {entry->second, added};
  }

 private:
  static constexpr std::uint64_t most_small = 1 << 16;

  std::vector<std::uint32_t> small_;  ///< slots of the values below `most_small`, plus 1; 0: it has none
  std::unordered_map<std::uint64_t, std::uint32_t> slots_;
};

/// Reads the nodes of one parsed trace and packs them into a graph.
class GraphMaker {
 public:
  GraphMaker(const ParsedTrace& parsed, const NodeOrder& order, Groups& groups, const ReadOptions& options,
             TensorLists& tensors)
      : parsed_(parsed), order_(order), groups_(groups), options_(options), tensors_(tensors) {}

  TraceContents make(Edges edges, Faults& faults);

 private:
  void add_node(std::uint32_t at, const Edges& edges, Faults& faults);
  Node read_node(const ParsedNode& parsed);
  void read_compute(const ParsedNode& parsed, Node& node) const;
  void read_collective(const ParsedNode& parsed, Node& node);
  void read_message(const ParsedNode& parsed, Node& node, bool sends);
  void read_access(const ParsedNode& parsed, Node& node, NodeKind kind);
  void read_storage(const ParsedNode& parsed, Node& node, NodeKind kind);
  void read_tensors(std::uint32_t at);
  void read_tensor(std::uint32_t at, const ParsedNode& parsed, const ParsedTensor& entry);
  std::int32_t read_priority(const ParsedNode& parsed);
  std::uint16_t read_stream(const ParsedNode& parsed);
  void set_group(const ParsedNode& parsed, Node& node, CollectiveKind collective);
  std::uint32_t group_slot(const ParsedNode& parsed);
  void set_own_end(const ParsedNode& parsed, Attribute which);
  void set_duration(std::uint32_t at, const ParsedNode& parsed);
  void note(const Edges& edges);
  NodeAttributes attributes(const ParsedNode& parsed) const { return {parsed_, parsed}; }

  const ParsedTrace& parsed_;
  const NodeOrder& order_;
  Groups& groups_;
  const ReadOptions& options_;
  TensorLists& tensors_;
  TraceContents contents_;
  std::vector<std::uint64_t> tags_;
  std::unordered_map<std::uint64_t, std::uint16_t> number_of_stream_;
  std::unordered_map<std::uint32_t, std::uint32_t> slot_of_group_name_;
  Slots group_slots_;
  Slots peer_slots_;  ///< sends and receives apart, so that traces with a peer that does both share structures
  Slots send_tags_;
  Slots receive_tags_;
};

/// Numbers streams in the order of their first use, so that traces that differ only in the numbers of streams share a
/// structure. Returns 0 for a node without a stream.
std::uint16_t GraphMaker::read_stream(const ParsedNode& parsed) {
  const Number value = parsed[Attribute::stream];
  const bool is_optional = options_.streams == Streams::by_name;
  if (options_.streams == Streams::by_count && value.form == NumberForm::whole && !parsed_.recorded)
    contents_.notices.add("streams-unused",
                          "nodes name streams, which have no effect: as many run at a time as the system says "
                          "(workload.streams: named, or --streams named, lets those of a stream take turns)");
  if (!is_optional && options_.streams != Streams::of_trace) return 0;
  if (is_optional && value.form != NumberForm::whole) return 0;
  if (value.form == NumberForm::absent || value.form == NumberForm::negative) {
    contents_.notices.add("stream",
                          "workload.streams is trace, but nodes name no stream: they take the places that "
                          "compute.streams and communication.streams count");
    return 0;
  }
  if (is_optional && !parsed_.recorded)
    contents_.notices.add("streams-of-trace",
                          "nodes name streams: those of a stream take turns, and streams run side by side "
                          "(workload.streams: named; dimension leaves the streams of traces out)");
  if (value.form != NumberForm::whole)
    attributes(parsed).fail("stream is no whole number", "the number of a stream, or no such attribute");
  const std::size_t next = number_of_stream_.size() + 1;
  if (next > std::numeric_limits<std::uint16_t>::max())
    attributes(parsed).fail(fmt::format("{} streams before this one", next - 1), "fewer");
  return number_of_stream_.try_emplace(value.magnitude, static_cast<std::uint16_t>(next)).first->second;
}

std::int32_t GraphMaker::read_priority(const ParsedNode& parsed) {
  const std::int32_t priority = attributes(parsed).priority();
  const bool yields =
      priority < 0 && (options_.streams == Streams::by_name || options_.streams == Streams::by_dimension);
  if (priority != 0 && !yields)
    contents_.notices.add("comm-priority",
                          "comm_priority matters with communication.order priority, and below 0 with "
                          "workload.streams named or dimension");
  return priority;
}

/// Checks the NPU's own end of a message: it need not be given, but if it is, it must be the NPU.
void GraphMaker::set_own_end(const ParsedNode& parsed, Attribute which) {
  if (parsed[which].form == NumberForm::absent || groups_.alone()) return;
  const std::uint32_t end = attributes(parsed).npu(which, options_.npu_limit());
  if (end != parsed_.source.npu)
    attributes(parsed).fail(
        fmt::format("{} is {}, but this is the trace of NPU {}", name(which), end, *parsed_.source.npu),
        "the NPU itself, or nothing");
  if (!contents_.own_end) contents_.own_end = TraceContents::FirstUse{end, parsed_.place(parsed)};
}

void GraphMaker::read_message(const ParsedNode& parsed, Node& node, bool sends) {
  const NodeAttributes values = attributes(parsed);
  node.size = values.required(Attribute::comm_size);
  if (node.size == 0) return;
  const std::uint32_t peer = values.npu(sends ? Attribute::comm_dst : Attribute::comm_src, options_.npu_limit());
  set_own_end(parsed, sends ? Attribute::comm_src : Attribute::comm_dst);
  const std::uint64_t tag = values.tag();
  const auto [peer_slot, is_new_peer] =
      peer_slots_.of(std::uint64_t{peer} * 2 + (sends ? 1 : 0), static_cast<std::uint32_t>(contents_.peers.size()));
  if (is_new_peer) contents_.peers.push_back({peer, parsed_.place(parsed)});
  const auto [tag_slot, is_new_tag] =
      (sends ? send_tags_ : receive_tags_).of(tag, static_cast<std::uint32_t>(tags_.size()));
  if (is_new_tag) tags_.push_back(tag);
  node.kind = sends ? NodeKind::send : NodeKind::receive;
  node.slot = peer_slot;
  node.detail = tag_slot;
}

std::uint32_t GraphMaker::group_slot(const ParsedNode& parsed) {
  const auto known = slot_of_group_name_.find(parsed.group);
  if (known != slot_of_group_name_.end()) return known->second;
  Place place = parsed_.place(parsed);
  if (parsed.group != no_name)
    if (const auto regular = groups_.find_regular(parsed_.names[parsed.group], parsed_, place)) {
      const auto slot = static_cast<std::uint32_t>(contents_.groups.size());
      contents_.groups.push_back({parsed.group, std::move(place), regular});
      slot_of_group_name_.emplace(parsed.group, slot);
      return slot;
    }
  const GroupId group = parsed.group == no_name
                            ? groups_.world()
                            : groups_.resolve(parsed_.names[parsed.group], parsed_, place, contents_.notices);
  const auto [slot, added] = group_slots_.of(group.value(), static_cast<std::uint32_t>(contents_.groups.size()));
  if (added) contents_.groups.push_back({group.value(), std::move(place), {}});
  slot_of_group_name_.emplace(parsed.group, slot);
  return slot;
}

void GraphMaker::set_group(const ParsedNode& parsed, Node& node, CollectiveKind collective) {
  if (parsed.dimensions == 0)
    attributes(parsed).fail("no dimension takes part: involved_dim is false for each",
                            "one or more that take part, or no involved_dim");
  node.collective = collective;
  node.detail = parsed.dimensions;
  node.slot = group_slot(parsed);
}

void GraphMaker::read_collective(const ParsedNode& parsed, Node& node) {
  const CollectiveKind kind = attributes(parsed).collective_kind();
  const bool is_barrier = kind == CollectiveKind::barrier;
  node.size = is_barrier ? 0 : attributes(parsed).required(Attribute::comm_size);
  if (node.size == 0 && !is_barrier) return;
  set_group(parsed, node, kind);
  node.kind = NodeKind::collective;
}

/// Reads an access to remote memory. If the node has a collective type, the members of a group access it together.
void GraphMaker::read_access(const ParsedNode& parsed, Node& node, NodeKind kind) {
  const NodeAttributes values = attributes(parsed);
  node.size = values.required(Attribute::tensor_size);
  const bool is_of_group = parsed[Attribute::comm_type].form != NumberForm::absent;
  const CollectiveKind collective = is_of_group ? values.collective_kind() : CollectiveKind{};
  if (is_of_group && !goes_with(kind, collective))
    values.fail(fmt::format("switches carry out no {}", name(kind, collective)),
                "a load with all-gather (2), a store with all-reduce (0) or reduce-scatter (7), or no comm_type");
  if (node.size == 0) return;
  if (is_of_group) set_group(parsed, node, collective);
  node.kind = kind;
}

/// Reads an access to storage. A recorded one takes its time, as work of the host does; else it is an access to remote
/// memory.
void GraphMaker::read_storage(const ParsedNode& parsed, Node& node, NodeKind kind) {
  if (parsed.duration > 0 || parsed[Attribute::duration_ps].form != NumberForm::absent)
    node.kind = NodeKind::cpu;
  else if (parsed[Attribute::tensor_size].form != NumberForm::absent)
    read_access(parsed, node, kind);
}

void GraphMaker::read_compute(const ParsedNode& parsed, Node& node) const {
  node.kind = NodeKind::compute;
  node.size = attributes(parsed).optional(Attribute::tensor_size);
  node.detail = attributes(parsed).optional(Attribute::num_ops);
}

Node GraphMaker::read_node(const ParsedNode& parsed) {
  const auto type = parsed_.numbering->node_type(parsed.type);
  if (!type)
    attributes(parsed).fail(fmt::format("node type {} is not known", parsed.type),
                            "a node type of Chakra from METADATA to CHECKPOINT");
  Node node{};
  node.kind = NodeKind::instant;
  const bool can_be_cpu = *type == NodeType::comp || *type == NodeType::comm_coll;
  if (can_be_cpu && attributes(parsed).optional(Attribute::is_cpu_op) != 0) {
    node.kind = NodeKind::cpu;
    return node;
  }
  switch (*type) {
    case NodeType::invalid:
    case NodeType::metadata:
      break;
    case NodeType::comp:
      read_compute(parsed, node);
      break;
    case NodeType::mem_load:
      read_access(parsed, node, NodeKind::mem_load);
      break;
    case NodeType::mem_store:
      read_access(parsed, node, NodeKind::mem_store);
      break;
    case NodeType::comm_send:
    case NodeType::comm_recv:
      read_message(parsed, node, *type == NodeType::comm_send);
      break;
    case NodeType::comm_coll:
      read_collective(parsed, node);
      break;
    case NodeType::storage:
    case NodeType::batch:
      read_storage(parsed, node, NodeKind::mem_load);
      break;
    case NodeType::checkpoint:
      read_storage(parsed, node, NodeKind::mem_store);
      break;
  }
  return node;
}

void GraphMaker::read_tensor(std::uint32_t at, const ParsedNode& parsed, const ParsedTensor& entry) {
  const std::string_view list = entry.is_output ? "outputs" : "inputs";
  constexpr std::string_view expected = "a list of texts, the name of a tensor and its bytes in turn";
  const NodeAttributes values = attributes(parsed);
  if (entry.name == no_name) values.fail(fmt::format("{} is no list of texts", list), expected);
  const auto tensor_name = [&] { return shown(parsed_.names[entry.name]); };
  if (entry.form == NumberForm::absent)
    values.fail(fmt::format("{} ends with tensor '{}' without its bytes", list, tensor_name()), expected);
  if (entry.form != NumberForm::whole)
    values.fail_as_number(fmt::format("the size of tensor '{}' in {}", tensor_name(), list),
                          {entry.magnitude, entry.form});
  const bool did_fit = tensors_.size() <= Bytes::most();
  if (const auto other = tensors_.list(at, entry.name, Bytes(entry.magnitude), entry.is_output)) {
    const std::string found = fmt::format("tensor '{}' in {} has {}, but {} where it was listed before", tensor_name(),
                                          list, counted(entry.magnitude, "byte"), other->count());
    if (options_.memory_has_size) values.fail(found, "one size of a tensor");
    contents_.notices.add("tensor-size", fmt::format("node {}: {}: the first size counts", parsed.id, found));
  }
  if (did_fit && tensors_.size() > Bytes::most())
    values.fail(fmt::format("with tensor '{}' in {} the tensors of this trace have more than {} bytes", tensor_name(),
                            list, Bytes::most().count()),
                "fewer");
}

/// Takes inputs first, in whatever order the file has the two lists: the order tells structures apart.
void GraphMaker::read_tensors(std::uint32_t at) {
  const std::size_t index = order_.index_in_file(at);
  const auto entries = parsed_.entries_of(parsed_.tensors, index, &ParsedNode::first_tensor);
  for (const bool outputs : {false, true})
    for (const ParsedTensor& entry : entries)
      if (entry.is_output == outputs) read_tensor(at, parsed_.nodes[index], entry);
}

void GraphMaker::note(const Edges& edges) {
  if (!edges.decision.empty()) contents_.notices.add("dependencies", edges.decision);
  if (edges.num_absent > 0) {
    const ParsedNode& node = parsed_.nodes[order_.index_in_file(edges.absent_of)];
    contents_.notices.add(
        "absent-dependency",
        fmt::format("dependencies on nodes that the trace does not hold are left out (node {} '{}' on {})", node.id,
                    parsed_.shown_name(node), static_cast<std::int64_t>(edges.absent_id)),
        edges.num_absent);
  }
  if (parsed_.unreadable_definitions > 0)
    contents_.notices.add("process-group-init", "the process groups of a process_group:init node are not understood",
                          parsed_.unreadable_definitions);
}

void GraphMaker::set_duration(std::uint32_t at, const ParsedNode& parsed) {
  auto& durations = contents_.graph.durations;
  if (durations.empty()) durations.resize(order_.size());
  durations[at] = attributes(parsed).duration();
}

void GraphMaker::add_node(std::uint32_t at, const Edges& edges, Faults& faults) {
  Graph& graph = contents_.graph;
  const ParsedNode& parsed = parsed_.nodes[order_.index_in_file(at)];
  Node node{};
  std::int32_t priority = 0;
  faults.attempt([&] {
    node = read_node(parsed);
    if (is_communication(node.kind)) priority = read_priority(parsed);
    if (is_communication(node.kind) || node.kind == NodeKind::compute) node.stream = read_stream(parsed);
  });
  faults.attempt([&] { read_tensors(at); });
  node.first_successor = edges.first_successor[at];
  node.num_dependencies = edges.num_dependencies[at];
  if (node.kind == NodeKind::instant) node.size = 0;
  const bool has_duration = parsed.duration > 0 || parsed[Attribute::duration_ps].form != NumberForm::absent;
  if (node.kind != NodeKind::instant && has_duration) faults.attempt([&] { set_duration(at, parsed); });
  if (priority != 0) {
    graph.priorities.resize(order_.size());
    graph.priorities[at] = priority;
  }
  if (node.kind == NodeKind::collective && !options_.custom_nodes.empty())
    if (const auto custom = options_.custom_nodes.find(parsed.id); custom != options_.custom_nodes.end()) {
      graph.customs.resize(order_.size());
      graph.customs[at] = custom->second;
    }
  graph.nodes.push_back(node);
  contents_.labels.ids.push_back(parsed.id - contents_.first_id);
  contents_.labels.names.push_back(parsed.name);
}

TraceContents GraphMaker::make(Edges edges, Faults& faults) {
  Graph& graph = contents_.graph;
  const std::uint32_t num_nodes = order_.size();
  tensors_.start(parsed_.tensors.size());
  graph.nodes.reserve(num_nodes + 1);
  contents_.labels.ids.reserve(num_nodes);
  contents_.labels.names.reserve(num_nodes);
  if (num_nodes > 0) contents_.first_id = parsed_.nodes[order_.index_in_file(0)].id;
  for (std::uint32_t at = 0; at < num_nodes; ++at) add_node(at, edges, faults);
  Node sentinel{};
  sentinel.first_successor = edges.first_successor[num_nodes];
  graph.nodes.push_back(sentinel);
  note(edges);
  contents_.notices.merge(parsed_.notices);
  contents_.recorded = parsed_.recorded;
  contents_.labels.tensors = tensors_.keys();
  graph.tensors = tensors_.finish(num_nodes);
  graph.successors = std::move(edges.successors);
  graph.num_group_slots = static_cast<std::uint32_t>(contents_.groups.size());
  graph.num_peer_slots = static_cast<std::uint32_t>(contents_.peers.size());
  graph.num_tag_slots = static_cast<std::uint32_t>(tags_.size());
  contents_.tags = std::make_shared<const std::vector<std::uint64_t>>(std::move(tags_));
  graph.num_streams = static_cast<std::uint32_t>(number_of_stream_.size());
  const auto is_on_gpu = [](const Node& node) { return is_communication(node.kind) && node.stream > 0; };
  if (std::ranges::any_of(graph.nodes, is_on_gpu))
    for (Node& node : graph.nodes)
      if (node.kind == NodeKind::cpu) node.kind = NodeKind::host;
  return std::move(contents_);
}

}  // namespace

TraceContents make_contents(const ParsedTrace& parsed, Groups& groups, const ReadOptions& options, TensorLists& tensors,
                            Faults& faults) {
  const NodeOrder order(parsed, faults);
  Edges edges(order.size());
  if (order.has_unique_ids()) faults.attempt([&] { edges = order_nodes(parsed, order, options.dependencies); });
  return GraphMaker(parsed, order, groups, options, tensors).make(std::move(edges), faults);
}

}  // namespace orrery::trace
