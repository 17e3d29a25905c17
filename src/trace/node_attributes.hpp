#pragma once

#include <cstdint>
#include <string_view>

#include "orrery/base/time.hpp"
#include "parsed_trace.hpp"

namespace orrery::trace {

/// The attributes of one node as values that have a meaning. Every function throws Error (bad_input) at the node's
/// place for a value that has none.
class NodeAttributes {
 public:
  NodeAttributes(const ParsedTrace& trace, const ParsedNode& node) : trace_(trace), node_(node) {}

  /// Returns an attribute that must be there: a whole number of 0 or more; of sizes, Bytes::most() at most. A fraction
  /// of num_ops is dropped.
  std::uint64_t required(Attribute which) const;
  /// Returns the same, or 0 for an attribute that is absent.
  std::uint64_t optional(Attribute which) const;
  /// Returns the type of a collective.
  CollectiveKind collective_kind() const;
  /// Returns the number of an NPU, which must be below `num_npus`.
  std::uint32_t npu(Attribute which, std::uint32_t num_npus) const;
  /// Returns the tag of a message; a negative one is taken as its two's complement, an absent one as 0.
  std::uint64_t tag() const;
  /// Returns the priority of communication, 0 if it is absent.
  std::int32_t priority() const;
  /// Returns the recorded duration.
  Time duration() const;

  /// Throws what is wrong with `value`, called `what`, which is given but is not a whole number of 0 or more.
  [[noreturn]] void fail_as_number(std::string_view what, Number value) const;
  [[noreturn]] void fail(std::string_view found, std::string_view expected = {}) const;

 private:
  const ParsedTrace& trace_;
  const ParsedNode& node_;
};

}  // namespace orrery::trace
