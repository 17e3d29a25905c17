// PyTorch execution traces (ExecutionTraceObserver, and ExecutionGraphObserver before it): JSON, the operators of one
// rank with their tensors, without times. They can be looked at; a run needs the profiler's recording.
#include <fmt/format.h>

#include <algorithm>

#include "json_elements.hpp"
#include "kineto_communication.hpp"
#include "pytorch_node.hpp"
#include "reader.hpp"

namespace orrery::trace {
namespace {

using Json = simdjson::dom::element;

bool recognises_pytorch(std::string_view beginning) {
  const auto start = beginning.find_first_not_of(" \t\r\n");
  const auto has = [&](std::string_view part) { return beginning.find(part) != std::string_view::npos; };
  return start != std::string_view::npos && beginning[start] == '{' && has("\"schema\"") && has("\"nodes\"") &&
         (has("[pytorch|profiler|execution_") || has("\"rf_id\""));
}

class PytorchReader {
 public:
  PytorchReader(TraceFile& file, TraceSink& sink) : file_(file), sink_(sink) {}

  void read() {
    if (!sink_.options().alone)
      throw Error(ErrorCode::bad_input, file_.place(),
                  "this is a PyTorch execution trace, which says nothing about times and streams",
                  "the trace of PyTorch's profiler (Kineto) of the same step",
                  "torch.profiler's export_chrome_trace writes it.");
    trace_ = &sink_.begin();
    constexpr std::string_view arrays[] = {"nodes"};
    read_json(
        file_, arrays, [this](auto, const Json& value, std::uint64_t position) { read_node(value, position); },
        [](auto, const Json&, std::uint64_t) {});
  }

 private:
  void read_node(const Json& value, std::uint64_t position) {
    simdjson::dom::object object;
    std::uint64_t id = 0;
    std::string_view name;
    if (value.get(object) != simdjson::SUCCESS || object["id"].get(id) != simdjson::SUCCESS ||
        object["name"].get(name) != simdjson::SUCCESS) {
      Place place = file_.place();
      place.byte_offset = position;
      throw Error(ErrorCode::bad_input, place, "a node has no id or no name", "an object with id and name");
    }
    ParsedNode& node = trace_->add_node(position);
    node.id = id;
    node.name = trace_->names.intern(name);
    node.type = static_cast<std::uint32_t>(NodeType::metadata);
    if (!name.starts_with("nccl:")) return;
    const auto kind = collective_named(name);
    if (!kind) return;
    node.type = static_cast<std::uint32_t>(NodeType::comm_coll);
    node.set(Attribute::comm_type, whole_number(static_cast<std::uint64_t>(*kind)));
    const std::uint64_t bytes = std::max(tensor_bytes(object, "inputs"), tensor_bytes(object, "outputs"));
    node.set(Attribute::comm_size, whole_number(bytes));
  }

  TraceFile& file_;
  TraceSink& sink_;
  ParsedTrace* trace_ = nullptr;
};

void read_pytorch(TraceFile& file, TraceSink& sink) { PytorchReader(file, sink).read(); }

}  // namespace

extern constinit const Reader pytorch_reader{
    .name = "pytorch",
    .help = "PyTorch execution trace: JSON, the operators of a rank without times; `show trace` alone takes it",
    .recognises = recognises_pytorch,
    .read = read_pytorch,
};

}  // namespace orrery::trace
