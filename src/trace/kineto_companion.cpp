#include "kineto_companion.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <string>
#include <system_error>

#include "group_definitions.hpp"
#include "json_elements.hpp"
#include "kineto_arguments.hpp"
#include "orrery/base/text.hpp"
#include "pytorch_node.hpp"
#include "registry.hpp"

namespace orrery::trace {
namespace {

std::optional<std::filesystem::path> execution_trace_beside(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  for (const std::string_view ending : {".json.gz", ".json"}) {
    if (!name.ends_with(ending)) continue;
    const std::string stem = name.substr(0, name.size() - ending.size());
    for (const std::string_view other : {".et.json", ".et.json.gz"}) {
      const auto beside = path.parent_path() / fmt::format("{}{}", stem, other);
      std::error_code error;
      if (std::filesystem::is_regular_file(beside, error)) return beside;
    }
    break;
  }
  return std::nullopt;
}

/// Reads what the nodes of an execution trace say of communication.
class CompanionReader {
 public:
  CompanionReader(const std::filesystem::path& path, const Source& recording)
      : file_(path, {.file = path.string(), .npu = recording.npu}), groups_(file_.source(), names_) {}

  void read() {
    const std::string_view format = find_reader(file_, readers()).name;
    if (format != "pytorch")
      throw Error(ErrorCode::bad_input, file_.place(), fmt::format("this is a file of the format {}", format),
                  "the PyTorch execution trace of the recording beside it",
                  "workload.execution-traces or the name says so: t.et.json belongs to t.json.");
    constexpr std::array<std::string_view, 1> arrays = {"nodes"};
    read_json(
        file_, arrays, [this](auto, const simdjson::dom::element& value, auto) { read_node(value); },
        [](auto, const auto&, auto) {});
  }

  void complete(Recording& recording) const {
    for (const CommunicationOperator& op : recording.operators)
      if (const auto found = records_.find(op.function); found != records_.end())
        recording.records[op.record].complete_with(found->second);
    for (const auto& [name, definition] : groups_.definitions)
      if (!definition.conflicting) recording.groups.try_emplace(name, definition.members);
  }

 private:
  void read_node(const simdjson::dom::element& value) {
    simdjson::dom::object node;
    std::string_view name;
    if (value.get(node) != simdjson::SUCCESS || node["name"].get(name) != simdjson::SUCCESS) return;
    if (is_group_definition(name)) return read_groups(node);
    if (!name.starts_with("nccl:") && name != "record_param_comms") return;
    if (const auto function = function_of(node)) records_.try_emplace(*function, record_of(node, name));
  }

  void read_groups(const simdjson::dom::object& node) {
    const auto values = values_of(node, "inputs");
    if (!values) return;
    for (const simdjson::dom::element value : *values)
      if (const auto text = text_in(value)) read_group_list(*text, groups_);
  }

  /// Returns the record function id: a member of the node or, in newer files, one of its attributes.
  static std::optional<std::uint64_t> function_of(const simdjson::dom::object& node) {
    simdjson::dom::element value;
    simdjson::dom::array attributes;
    if (node["rf_id"].get(value) == simdjson::SUCCESS) return whole_in(value);
    if (node["attrs"].get(attributes) != simdjson::SUCCESS) return std::nullopt;
    for (const simdjson::dom::element attribute : attributes) {
      std::string_view name;
      if (attribute["name"].get(name) == simdjson::SUCCESS && name == "rf_id" &&
          attribute["value"].get(value) == simdjson::SUCCESS)
        return whole_in(value);
    }
    return std::nullopt;
  }

  static CommunicationRecord record_of(const simdjson::dom::object& node, std::string_view name) {
    CommunicationRecord record;
    if (const auto bytes = tensor_bytes(node, "inputs"); bytes > 0) record.in_bytes = bytes;
    if (const auto bytes = tensor_bytes(node, "outputs"); bytes > 0) record.out_bytes = bytes;
    if (name.starts_with("nccl:")) {
      record.name = name;
      return record;
    }
    // The inputs of record_param_comms: [tensors, number, [group, description], rank, name, ..., size of the group].
    const auto values = values_of(node, "inputs");
    if (!values || values->size() < 8) return record;
    const auto at = [&](std::size_t index) { return values->at(index).value(); };
    simdjson::dom::array group;
    if (at(2).get(group) == simdjson::SUCCESS && group.size() > 0)
      if (const auto text = text_in(group.at(0).value())) record.group = *text;
    record.peer = whole_in(at(3));
    record.name = text_in(at(4)).value_or("");
    record.group_size = whole_in(at(values->size() - 1));
    return record;
  }

  TraceFile file_;
  NamePool names_;
  ParsedTrace groups_;  ///< whose definitions alone are used
  std::unordered_map<std::uint64_t, CommunicationRecord> records_;
};

}  // namespace

void complete_from_execution_trace(const TraceFile& file, const std::filesystem::path& name, Recording& recording) {
  std::optional<std::filesystem::path> path;
  if (name.empty())
    path = execution_trace_beside(file.path());
  else
    path = name_for_npu(name.string(), recording.rank.value_or(file.source().npu.value_or(0)));
  if (!path) return;
  CompanionReader reader(*path, file.source());
  reader.read();
  reader.complete(recording);
}

}  // namespace orrery::trace
