#include "orrery/trace/writer.hpp"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "orrery/base/error.hpp"
#include "orrery/base/job_context.hpp"
#include "orrery/base/output_file.hpp"
#include "orrery/base/time.hpp"
#include "orrery/trace/store.hpp"
#include "wire.hpp"

namespace orrery::trace {
namespace {

using Output = google::protobuf::io::CodedOutputStream;

// Chakra's numbering of node types.
constexpr std::uint64_t type_metadata = 1, type_load = 2, type_store = 3, type_compute = 4, type_send = 5,
                        type_receive = 6, type_collective = 7;

/// Builds one message.
class Message {
 public:
  Message() : stream_(&text_), output_(std::make_unique<Output>(&stream_)) {}

  void number(int field, std::uint64_t value) {
    output_->WriteTag(make_tag(field, WireType::varint));
    output_->WriteVarint64(value);
  }
  void bytes(int field, std::string_view value) {
    output_->WriteTag(make_tag(field, WireType::bytes));
    output_->WriteVarint64(value.size());
    output_->WriteRaw(value.data(), static_cast<int>(value.size()));
  }
  std::string take() {
    output_.reset();  // flushes
    return std::move(text_);
  }

 private:
  std::string text_;
  google::protobuf::io::StringOutputStream stream_;
  std::unique_ptr<Output> output_;
};

// Fields of Attribute by type of value.
constexpr int int64_field = 9, uint32_field = 11, uint64_field = 13, bool_field = 27, bool_list_field = 28,
              string_field = 29, string_list_field = 30;

std::string attribute(std::string_view name, int field, std::uint64_t value) {
  Message message;
  message.bytes(1, name);
  message.number(field, value);
  return message.take();
}

std::string attribute(std::string_view name, std::string_view value) {
  Message message;
  message.bytes(1, name);
  message.bytes(string_field, value);
  return message.take();
}

/// Returns a list of tensors in the form that STAGE writes: texts, the name and the bytes of each tensor in turn. An
/// empty list has no value.
std::string attribute(std::string_view name, std::span<const Writer::Tensor> tensors) {
  Message list;
  for (const Writer::Tensor& tensor : tensors) {
    list.bytes(1, tensor.name);
    list.bytes(1, std::to_string(tensor.size.count()));
  }
  Message message;
  message.bytes(1, name);
  if (!tensors.empty()) message.bytes(string_list_field, list.take());
  return message.take();
}

/// Returns the dimensions that take part as a list of bools. It ends with one that does not, as a list in which all do
/// stands for all dimensions of whichever system, or with dimension 63, which stands for all further ones.
std::string dimensions_attribute(std::uint64_t dimensions) {
  const int listed = std::min(64, 65 - std::countl_zero(dimensions));
  std::string flags;
  for (int d = 0; d < listed; ++d) flags.push_back(static_cast<char>(dimensions >> d & 1));
  Message list;
  list.bytes(1, flags);
  Message message;
  message.bytes(1, "involved_dim");
  message.bytes(bool_list_field, list.take());
  return message.take();
}

}  // namespace

struct Writer::State {
  std::filesystem::path path;
  std::ofstream file;
  std::vector<std::string> attributes;  ///< attributes of the node that is being written

  void frame(const std::string& message) {
    std::string length;
    {
      google::protobuf::io::StringOutputStream stream(&length);
      Output(&stream).WriteVarint64(message.size());
    }
    file << length << message;
    if (!file) throw Error(ErrorCode::output, {.file = path.string()}, std::strerror(errno));
  }

  void node(const Common& common, std::uint64_t type, bool is_cpu_op = false) {
    Message message;
    message.number(1, common.id);
    message.bytes(2, common.name);
    message.number(3, type);
    for (const auto id : common.data_deps) message.number(5, id);
    const std::int64_t ps = common.recorded.ps(), rest = ps % ps_per_us;
    if (const std::int64_t micros = ps / ps_per_us + (2 * rest >= ps_per_us ? 1 : 0); micros > 0)
      message.number(7, static_cast<std::uint64_t>(micros));
    message.bytes(10, attribute("is_cpu_op", bool_field, is_cpu_op ? 1 : 0));
    if (rest > 0) message.bytes(10, attribute("duration_ps", int64_field, static_cast<std::uint64_t>(ps)));
    if (common.stream) message.bytes(10, attribute("stream", int64_field, *common.stream));
    if (common.priority != 0)
      message.bytes(10,
                    attribute("comm_priority", int64_field, static_cast<std::uint64_t>(std::int64_t{common.priority})));
    if (common.tensors) {
      message.bytes(10, attribute("inputs", common.tensors->inputs));
      message.bytes(10, attribute("outputs", common.tensors->outputs));
    }
    for (const auto& text : attributes) message.bytes(10, text);
    attributes.clear();
    frame(message.take());
  }
};

Writer::Writer(const std::filesystem::path& path, std::string_view precision) : state_(std::make_unique<State>()) {
  state_->path = path;
  state_->file.open(path, std::ios::binary | std::ios::trunc);
  if (!state_->file)
    throw Error(ErrorCode::output, {.file = path.string()}, std::strerror(errno), "a folder that can be written to");
  Message metadata;
  metadata.bytes(1, "0.0.4");
  if (!precision.empty()) metadata.bytes(2, attribute("precision", precision));
  state_->frame(metadata.take());
}

Writer::~Writer() {
  if (!state_->file.is_open()) return;
  state_->file.close();
  std::error_code ignored;
  std::filesystem::remove(state_->path, ignored);
}

void Writer::compute(const Common& node, std::uint64_t num_ops, Bytes tensor_size) {
  state_->attributes = {attribute("num_ops", int64_field, num_ops),
                        attribute("tensor_size", int64_field, tensor_size.count())};
  state_->node(node, type_compute);
}

void Writer::cpu(const Common& node) { state_->node(node, type_compute, true); }

void Writer::instant(const Common& node) { state_->node(node, type_metadata); }

void Writer::members(CollectiveKind collective, const Members& members) {
  state_->attributes.push_back(attribute("comm_type", int64_field, static_cast<std::uint64_t>(collective)));
  if (!members.group.empty()) state_->attributes.push_back(attribute("pg_name", members.group));
  if (members.dimensions != all_dimensions) state_->attributes.push_back(dimensions_attribute(members.dimensions));
}

void Writer::collective(const Common& node, CollectiveKind kind, Bytes size, const Members& members) {
  this->members(kind, members);
  state_->attributes.push_back(attribute("comm_size", int64_field, size.count()));
  state_->node(node, type_collective);
}

void Writer::access(const Common& node, NodeKind kind, Bytes size) {
  state_->attributes.push_back(attribute("tensor_size", int64_field, size.count()));
  state_->node(node, kind == NodeKind::mem_load ? type_load : type_store);
}

void Writer::access(const Common& node, NodeKind kind, Bytes size, CollectiveKind collective, const Members& members) {
  this->members(collective, members);
  access(node, kind, size);
}

void Writer::message(NpuId from, NpuId to, std::uint64_t tag, Bytes size) {
  const bool is_narrow = tag <= std::numeric_limits<std::uint32_t>::max();
  state_->attributes = {attribute("comm_src", uint32_field, from.value()),
                        attribute("comm_dst", uint32_field, to.value()),
                        attribute("comm_tag", is_narrow ? uint32_field : uint64_field, tag),
                        attribute("comm_size", int64_field, size.count())};
}

void Writer::send(const Common& node, NpuId from, NpuId to, std::uint64_t tag, Bytes size) {
  message(from, to, tag, size);
  state_->node(node, type_send);
}

void Writer::receive(const Common& node, NpuId from, NpuId to, std::uint64_t tag, Bytes size) {
  message(from, to, tag, size);
  state_->node(node, type_receive);
}

void Writer::close() {
  state_->file.close();
  if (!state_->file) throw Error(ErrorCode::output, {.file = state_->path.string()}, std::strerror(errno));
}

namespace {

void list_tensors(const Store& store, const NpuTrace& trace, NodeId node, std::vector<Writer::Tensor>& inputs,
                  std::vector<Writer::Tensor>& outputs) {
  inputs.clear();
  outputs.clear();
  const Tensors& tensors = trace.graph->tensors;
  for (const Listing listing : tensors.of(node)) {
    const Writer::Tensor tensor{store.name(trace.labels->tensors[listing.tensor]),
                                Bytes(tensors.sizes[listing.tensor])};
    if (listing.needs) inputs.push_back(tensor);
    if (listing.makes) outputs.push_back(tensor);
  }
}

/// Writes a node by its kind.
void write_node(Writer& writer, const Writer::Common& common, const Node& node, const NpuTrace& trace, NpuId npu,
                std::span<const std::string> group_names) {
  const Bytes size(node.size);
  const auto members = [&]() -> Writer::Members { return {group_names[trace.groups[node.slot].index()], node.detail}; };
  switch (node.kind) {
    case NodeKind::instant:
      return writer.instant(common);
    case NodeKind::cpu:
    case NodeKind::host:
      return writer.cpu(common);
    case NodeKind::compute:
      return writer.compute(common, node.detail, size);
    case NodeKind::collective:
      return writer.collective(common, node.collective, size, members());
    case NodeKind::send:
      return writer.send(common, npu, trace.peers[node.slot], trace.tags[node.detail], size);
    case NodeKind::receive:
      return writer.receive(common, trace.peers[node.slot], npu, trace.tags[node.detail], size);
    case NodeKind::mem_load:
    case NodeKind::mem_store:
      if (node.is_of_group()) return writer.access(common, node.kind, size, node.collective, members());
      return writer.access(common, node.kind, size);
  }
}

/// Returns the communicator file of these groups. Their names are distinct.
std::string groups_text(const Store& store, std::span<const std::string> names, std::uint32_t num_npus) {
  nlohmann::ordered_json text = nlohmann::ordered_json::object();
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty()) continue;
    auto& members = text[names[i]] = nlohmann::ordered_json::array();
    for (const NpuId member : store.groups()[i].members) members.push_back(member.value());
    for (std::uint32_t npu = 0; store.groups()[i].members.empty() && npu < num_npus; ++npu) members.push_back(npu);
  }
  return text.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

}  // namespace

std::vector<std::string> distinct_names(const Store& store) {
  std::vector<std::string> names;
  std::set<std::string, std::less<>> taken;
  for (const Group& group : store.groups()) taken.insert(group.name);
  std::set<std::string, std::less<>> given;
  for (const Group& group : store.groups()) {
    std::string name = group.name;
    if (name.empty() && !group.members.empty()) name = "group";
    const std::string stem = name;
    for (std::size_t number = 2;
         !name.empty() && (given.contains(name) || (name != group.name && taken.contains(name))); ++number)
      name = fmt::format("{}.{}", stem, number);
    given.insert(name);
    names.push_back(std::move(name));
  }
  return names;
}

void write_trace(const Store& store, std::span<const std::string> group_names, const NpuTrace& trace, NpuId npu,
                 const std::filesystem::path& path) {
  const Graph& graph = *trace.graph;
  std::vector<std::vector<std::uint64_t>> dependencies(graph.num_nodes());
  for (std::uint32_t i = 0; i < graph.num_nodes(); ++i)
    for (const auto successor : graph.successors_of(NodeId(i)))
      dependencies[successor].push_back(trace.id_of(NodeId(i)));
  std::vector<Writer::Tensor> inputs, outputs;
  Writer writer(path, store.precision());
  for (std::uint32_t i = 0; i < graph.num_nodes(); ++i) {
    const Node& node = graph.nodes[i];
    Writer::Common common{trace.id_of(NodeId(i)), store.name_of(trace, NodeId(i)), dependencies[i]};
    common.recorded = graph.duration_of(NodeId(i));
    common.priority = graph.priority_of(NodeId(i));
    if (node.stream > 0) common.stream = node.stream;
    if (!graph.tensors.sizes.empty()) {
      list_tensors(store, trace, NodeId(i), inputs, outputs);
      common.tensors = {inputs, outputs};
    }
    write_node(writer, common, node, trace, npu, group_names);
  }
  writer.close();
}

void write_traces(const Store& store, std::span<const NpuTrace> traces, const std::filesystem::path& prefix,
                  bool force) {
  const auto num_npus = static_cast<std::uint32_t>(traces.size());
  std::vector<std::filesystem::path> paths{std::filesystem::path(prefix).concat(".json")};
  for (std::uint32_t npu = 0; npu < num_npus; ++npu)
    paths.push_back(std::filesystem::path(prefix).concat(fmt::format(".{}.et", npu)));
  check_outputs(paths, force);
  const std::vector<std::string> names = distinct_names(store);
  std::vector<PartialFile> files(paths.begin(), paths.end());
  files[0].write(groups_text(store, names, num_npus));
  for (std::uint32_t npu = 0; npu < num_npus; ++npu) {
    end_if_stopped("all traces were written");
    write_trace(store, names, traces[npu], NpuId(npu), files[1 + npu].partial());
  }
  for (auto& file : files) file.commit();
}

}  // namespace orrery::trace
