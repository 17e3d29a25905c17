#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "name_pool.hpp"
#include "number.hpp"
#include "orrery/base/error.hpp"
#include "orrery/base/notices.hpp"
#include "orrery/base/time.hpp"
#include "orrery/trace/graph.hpp"
#include "source.hpp"

namespace orrery::trace {

// What a reader hands over, whatever the format of its file: nodes in the words of Chakra's schema. A reader
// translates; it does not check whether peers exist, sizes make sense or dependencies have cycles. That is done once
// for all formats (graph_maker.hpp, dependencies.hpp, groups.hpp).

/// The node types of Chakra's current schema and those that are proposed for the next one, in their numbering.
enum class NodeType : std::uint8_t {
  invalid,
  metadata,
  mem_load,
  mem_store,
  comp,
  comm_send,
  comm_recv,
  comm_coll,
  storage,     ///< proposed: an access to storage
  batch,       ///< proposed: the next batch of data is read from storage
  checkpoint,  ///< proposed: a checkpoint is written to storage
};

/// Says what the numbers of a file's node types and collective types mean. Both functions return nothing for a number
/// that the format does not define.
struct TypeNumbering {
  std::optional<NodeType> (*node_type)(std::uint32_t number);
  std::optional<CollectiveKind> (*collective_kind)(std::uint64_t number);
};
/// Chakra's current schema.
std::optional<NodeType> current_node_type(std::uint32_t number);
std::optional<CollectiveKind> current_collective_kind(std::uint64_t number);
constexpr TypeNumbering current_numbering{current_node_type, current_collective_kind};

/// The numeric attributes that have a meaning here.
enum class Attribute : std::uint8_t {
  is_cpu_op,
  comm_type,
  comm_size,
  comm_src,
  comm_dst,
  comm_tag,
  comm_priority,
  num_ops,
  tensor_size,
  stream,
  msg_chunk_cnt,
  msg_chunk_idx,
  total_chunk_cnt,
  duration_ps,  ///< the recorded duration, if it is no whole number of the trace's unit
};
constexpr std::size_t num_attributes = 14;
constexpr std::array<std::string_view, num_attributes> attribute_names = {
    "is_cpu_op", "comm_type",   "comm_size", "comm_src",      "comm_dst",      "comm_tag",        "comm_priority",
    "num_ops",   "tensor_size", "stream",    "msg_chunk_cnt", "msg_chunk_idx", "total_chunk_cnt", "duration_ps"};
constexpr std::string_view name(Attribute which) { return attribute_names[static_cast<std::size_t>(which)]; }

constexpr std::uint32_t no_name = std::numeric_limits<std::uint32_t>::max();

/// A node as the file has it. `type` is in the numbering of the trace.
struct ParsedNode {
  std::uint64_t id = 0;
  std::uint64_t position = 0;  ///< position in the file, in the trace's unit
  std::uint64_t duration = 0;  ///< recorded, in the trace's unit
  std::uint64_t dimensions = all_dimensions;
  std::uint64_t first_ctrl = 0;  ///< index into ParsedTrace::ctrl; the last is before the next node's first
  std::uint64_t first_data = 0;
  std::uint64_t first_tensor = 0;
  std::array<std::uint64_t, num_attributes> magnitudes{};
  std::array<NumberForm, num_attributes> forms{};
  std::uint32_t name = no_name;   ///< index in the pool of names
  std::uint32_t group = no_name;  ///< process group, in the pool of names; no_name: all NPUs
  std::uint32_t type = 0;

  Number operator[](Attribute which) const {
    const auto at = static_cast<std::size_t>(which);
    return {magnitudes[at], forms[at]};
  }
  void set(Attribute which, Number value) {
    const auto at = static_cast<std::size_t>(which);
    magnitudes[at] = value.magnitude;
    forms[at] = value.form;
  }
};

/// An entry of the inputs or outputs of a node. Without a name, the attribute is not a list of texts.
struct ParsedTensor {
  std::uint64_t magnitude = 0;  ///< magnitude of the size, with `form`; absent: the list ends with the name
  std::uint32_t name = no_name;
  NumberForm form = NumberForm::absent;
  bool is_output = false;
};

/// The group of an NPU where the groups of all NPUs have the same form: `size` members that are `stride` apart. The
/// groups divide the NPUs of the system into blocks of size * stride neighbours.
struct RegularGroup {
  std::uint64_t size = 1;
  std::uint64_t stride = 1;
};

/// A process group as a trace defines it. It is checked when a node uses it.
struct GroupDefinition {
  std::vector<std::uint64_t> members = {};   ///< empty: all NPUs
  bool conflicting = false;                  ///< the trace defines the name twice with different members
  std::optional<RegularGroup> regular = {};  ///< instead of members: of a trace that several NPUs execute
};

/// Where a node stands in its file: a byte, counted from 0, or a line, counted from 1.
enum class PositionUnit : std::uint8_t { byte, line };

/// The unit of recorded durations.
struct DurationUnit {
  std::int64_t ps = ps_per_us;
  std::string_view name = "microsecond";
};

/// One NPU's trace as its file has it. Nodes may stand in any order and may depend on later ones.
struct ParsedTrace {
  ParsedTrace(Source from, NamePool& pool) : source(std::move(from)), names(pool) {}

  Source source;
  NamePool& names;
  NameBatch batch;  ///< names that a reader has not interned yet, if it interns those of several nodes together
  PositionUnit position_unit = PositionUnit::byte;
  DurationUnit duration_unit;
  const TypeNumbering* numbering = &current_numbering;
  std::vector<ParsedNode> nodes;    ///< nodes in the order of the file
  std::vector<std::uint64_t> ctrl;  ///< dependencies: ids of nodes
  std::vector<std::uint64_t> data;
  std::vector<ParsedTensor> tensors;
  std::map<std::string, GroupDefinition, std::less<>> definitions;  ///< process groups by name
  std::string precision;                         ///< precision of the arithmetic, from the metadata; empty: not said
  Notices notices;                               ///< notices of the reader
  std::shared_ptr<const RecordedTime> recorded;  ///< recorded times of a recording, whose first node Store::delay sets
  std::uint64_t unreadable_definitions = 0;      ///< process_group:init nodes whose text is not understood

  /// Adds a node at a position of the file and returns it; it stays valid until the next call. What is appended to
  /// `ctrl`, `data` and `tensors` until then belongs to this node.
  ParsedNode& add_node(std::uint64_t position) {
    ParsedNode& node = nodes.emplace_back();
    node.position = position;
    node.first_ctrl = ctrl.size();
    node.first_data = data.size();
    node.first_tensor = tensors.size();
    return node;
  }

  /// Returns the entries of `all` that belong to the node at `index`.
  template <class T>
  std::span<const T> entries_of(const std::vector<T>& all, std::size_t index, std::uint64_t ParsedNode::*first) const {
    const std::uint64_t begin = nodes[index].*first;
    const std::uint64_t end = index + 1 < nodes.size() ? nodes[index + 1].*first : all.size();
    return std::span(all).subspan(begin, end - begin);
  }

  /// Returns the name of a node as messages show it.
  std::string shown_name(const ParsedNode& node) const { return shown(names[node.name]); }
  /// Returns where a node is, for messages.
  Place place(const ParsedNode& node) const;
};

}  // namespace orrery::trace
