#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "number.hpp"
#include "parsed_trace.hpp"
#include "wire.hpp"

namespace orrery::trace {

/// An attribute as it stands in the file, of either layout that has attributes. The value of a name that is not in
/// `attribute_names` and is not pg_name, involved_dim, inputs, outputs or runtime is left unread: it has no meaning
/// here.
struct ChakraAttribute {
  enum class Name : std::uint8_t { ignored, numeric, pg_name, involved_dim, inputs, outputs, runtime };

  Name name = Name::ignored;
  Attribute numeric = Attribute::is_cpu_op;
  Number number;  ///< value of a numeric or bool scalar
  std::optional<std::string_view> text;
  std::optional<std::string_view> texts;  ///< the message of a list of texts
  std::uint64_t flags = 0;                ///< flags of a list: bit i says that entry i is not 0
  unsigned num_flags = 0;

  /// Appends an entry to `flags`.
  void add_flag(bool flag);
};

/// Reads an Attribute message of the current layout: a (scalar, list) pair of fields for each type.
bool read_attribute(Input& input, ChakraAttribute& value);
/// Reads an attribute of 0.0.2 or 0.0.3: its values stand at numbers that moved, so the wire type tells them.
bool read_attribute_of_v003(Input& input, ChakraAttribute& value);

/// Stores an attribute in its node, unless it is a list of tensors or a run time, which the layouts store differently.
void store_attribute(const ChakraAttribute& value, ParsedNode& node, NamePool& names);

/// Returns the dimensions that a list of flags names, as bits. Flags that are all set mean every dimension, however
/// many the topology has.
std::uint64_t dimensions_of(std::uint64_t flags, unsigned num_flags);

}  // namespace orrery::trace
