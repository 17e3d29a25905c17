#include "orrery/trace/writer.hpp"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "orrery/base/error.hpp"
#include "orrery/base/time.hpp"
#include "orrery/trace/store.hpp"
#include "wire.hpp"

namespace orrery::trace {
namespace {

using Output = google::protobuf::io::CodedOutputStream;

// Chakra's numbering of node types.
constexpr std::uint64_t type_load = 2, type_store = 3, type_compute = 4, type_send = 5, type_receive = 6,
                        type_collective = 7;

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
constexpr int int64_field = 9, uint32_field = 11, bool_field = 27, string_field = 29, string_list_field = 30;

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

}  // namespace

struct Writer::State {
  std::filesystem::path path;
  std::ofstream file;
  std::vector<std::string> attributes;  ///< of the node that is being written

  void frame(const std::string& message) {
    std::string length;
    {
      google::protobuf::io::StringOutputStream stream(&length);
      Output(&stream).WriteVarint64(message.size());
    }
    file << length << message;
    if (!file) throw Error(ErrorCode::output, {.file = path.string()}, std::strerror(errno));
  }

  void node(const Common& common, std::uint64_t type, std::uint64_t duration_micros = 0) {
    Message message;
    message.number(1, common.id);
    message.bytes(2, common.name);
    message.number(3, type);
    for (const auto id : common.data_deps) message.number(5, id);
    if (duration_micros > 0) message.number(7, duration_micros);
    message.bytes(10, attribute("is_cpu_op", bool_field, 0));
    if (common.tensors) {
      message.bytes(10, attribute("inputs", common.tensors->inputs));
      message.bytes(10, attribute("outputs", common.tensors->outputs));
    }
    for (const auto& text : attributes) message.bytes(10, text);
    attributes.clear();
    frame(message.take());
  }
};

Writer::Writer(const std::filesystem::path& path) : state_(std::make_unique<State>()) {
  state_->path = path;
  state_->file.open(path, std::ios::binary | std::ios::trunc);
  if (!state_->file)
    throw Error(ErrorCode::output, {.file = path.string()}, std::strerror(errno), "a folder that can be written to");
  Message metadata;
  metadata.bytes(1, "0.0.4");
  state_->frame(metadata.take());
}

Writer::~Writer() {
  if (!state_->file.is_open()) return;
  state_->file.close();
  std::error_code ignored;
  std::filesystem::remove(state_->path, ignored);
}

void Writer::compute(const Common& node, std::uint64_t num_ops, Bytes tensor_size, Time recorded) {
  state_->attributes = {attribute("num_ops", int64_field, num_ops),
                        attribute("tensor_size", int64_field, tensor_size.count())};
  state_->node(node, type_compute, static_cast<std::uint64_t>(recorded.ps() / ps_per_us));
}

void Writer::collective(const Common& node, CollectiveKind kind, Bytes size, std::string_view group) {
  state_->attributes = {attribute("comm_type", int64_field, static_cast<std::uint64_t>(kind)),
                        attribute("comm_size", int64_field, size.count()), attribute("pg_name", group)};
  state_->node(node, type_collective);
}

void Writer::access(const Common& node, NodeKind kind, Bytes size) {
  state_->attributes.push_back(attribute("tensor_size", int64_field, size.count()));
  state_->node(node, kind == NodeKind::mem_load ? type_load : type_store);
}

void Writer::access(const Common& node, NodeKind kind, Bytes size, CollectiveKind collective, std::string_view group) {
  state_->attributes = {attribute("comm_type", int64_field, static_cast<std::uint64_t>(collective)),
                        attribute("pg_name", group)};
  access(node, kind, size);
}

void Writer::message(NpuId from, NpuId to, std::uint32_t tag, Bytes size) {
  state_->attributes = {attribute("comm_src", uint32_field, from.value()),
                        attribute("comm_dst", uint32_field, to.value()), attribute("comm_tag", uint32_field, tag),
                        attribute("comm_size", int64_field, size.count())};
}

void Writer::send(const Common& node, NpuId from, NpuId to, std::uint32_t tag, Bytes size) {
  message(from, to, tag, size);
  state_->node(node, type_send);
}

void Writer::receive(const Common& node, NpuId from, NpuId to, std::uint32_t tag, Bytes size) {
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

}  // namespace

void write_trace(const Store& store, const NpuTrace& trace, NpuId npu, const std::filesystem::path& path) {
  const Graph& graph = *trace.graph;
  std::vector<std::vector<std::uint64_t>> dependencies(graph.num_nodes());
  for (std::uint32_t i = 0; i < graph.num_nodes(); ++i)
    for (const auto successor : graph.successors_of(NodeId(i)))
      dependencies[successor].push_back(trace.id_of(NodeId(i)));
  std::vector<Writer::Tensor> inputs, outputs;
  Writer writer(path);
  for (std::uint32_t i = 0; i < graph.num_nodes(); ++i) {
    const Node& node = graph.nodes[i];
    Writer::Common common{trace.id_of(NodeId(i)), store.name_of(trace, NodeId(i)), dependencies[i]};
    if (!graph.tensors.sizes.empty()) {
      list_tensors(store, trace, NodeId(i), inputs, outputs);
      common.tensors = {inputs, outputs};
    }
    const auto group = [&]() -> std::string_view { return store.groups()[trace.groups[node.slot].index()].name; };
    const auto tag = [&] { return static_cast<std::uint32_t>(trace.tags[node.detail]); };
    if (node.kind == NodeKind::compute)
      writer.compute(common, node.detail, Bytes(node.size), graph.duration_of(NodeId(i)));
    else if (node.kind == NodeKind::collective)
      writer.collective(common, node.collective, Bytes(node.size), group());
    else if (node.is_access() && node.is_of_group())
      writer.access(common, node.kind, Bytes(node.size), node.collective, group());
    else if (node.is_access())
      writer.access(common, node.kind, Bytes(node.size));
    else if (node.kind == NodeKind::send)
      writer.send(common, npu, trace.peers[node.slot], tag(), Bytes(node.size));
    else if (node.kind == NodeKind::receive)
      writer.receive(common, trace.peers[node.slot], npu, tag(), Bytes(node.size));
    else
      ensure(false, "a kind of node that is not written");
  }
  writer.close();
}

}  // namespace orrery::trace
