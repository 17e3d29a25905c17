#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/trace/graph.hpp"

namespace orrery::trace {

/// How a file lays out its nodes.
enum class Layout : std::uint8_t {
  today,  ///< versions 0.0.4 and 1.0.0
  v0_0_1,
  v0_0_2,  ///< as 0.0.3, but without METADATA among the node types
  v0_0_3,
};

/// What a value of an attribute is as a whole number.
enum class Form : std::uint8_t {
  absent,
  whole,
  negative,      ///< the magnitude is given
  fraction,      ///< the whole part is given
  out_of_range,  ///< a floating-point number beyond 64 bits, or no number
  no_number,     ///< a text or a list
};

struct Number {
  std::uint64_t magnitude = 0;
  Form form = Form::absent;
};

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
};
constexpr std::size_t num_attributes = 13;
constexpr std::array<std::string_view, num_attributes> attribute_names = {
    "is_cpu_op", "comm_type",   "comm_size", "comm_src",      "comm_dst",      "comm_tag",       "comm_priority",
    "num_ops",   "tensor_size", "stream",    "msg_chunk_cnt", "msg_chunk_idx", "total_chunk_cnt"};

constexpr std::uint32_t no_name = std::numeric_limits<std::uint32_t>::max();

/// A node as the file has it; types are in the numbering of the file's layout.
struct RawNode {
  std::uint64_t id = 0;
  std::uint64_t offset = 0;  ///< of the message in the file
  std::uint64_t duration_micros = 0;
  std::uint64_t dimensions = all_dimensions;
  std::uint64_t first_ctrl = 0;  ///< index into RawTrace::ctrl; the last is before the next node's first
  std::uint64_t first_data = 0;
  std::uint64_t first_tensor = 0;
  std::array<std::uint64_t, num_attributes> magnitudes{};
  std::array<Form, num_attributes> forms{};
  std::uint32_t name = no_name;   ///< in the pool of names
  std::uint32_t group = no_name;  ///< pg_name, in the pool of names
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

/// An entry of the inputs or outputs of a node. Without a name: they are no list of texts.
struct RawTensor {
  std::uint64_t magnitude = 0;  ///< of the size, with `form`; absent: the list ends with the name
  std::uint32_t name = no_name;
  Form form = Form::absent;
  bool is_output = false;
};

/// A process group as a trace defines it. It is checked when a node uses it.
struct GroupDefinition {
  std::vector<std::uint64_t> members;  ///< empty = the world
  bool conflicting = false;            ///< the file defines the name twice with other members
};

/// What one file holds, whatever its layout.
struct RawTrace {
  Layout layout = Layout::today;
  std::vector<RawNode> nodes;       ///< in the order of the file
  std::vector<std::uint64_t> ctrl;  ///< dependencies: ids
  std::vector<std::uint64_t> data;
  std::vector<RawTensor> tensors;
  std::map<std::string, GroupDefinition, std::less<>> definitions;
  std::uint64_t unreadable_definitions = 0;  ///< process_group:init nodes whose text is not understood

  /// What of `all` belongs to the node at `index`.
  template <class T>
  std::span<const T> part(const std::vector<T>& all, std::size_t index, std::uint64_t RawNode::*first) const {
    const std::uint64_t begin = nodes[index].*first;
    const std::uint64_t end = index + 1 < nodes.size() ? nodes[index + 1].*first : all.size();
    return std::span(all).subspan(begin, end - begin);
  }
};

}  // namespace orrery::trace
