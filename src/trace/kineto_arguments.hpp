#pragma once

#include <simdjson.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "kineto_recording.hpp"

namespace orrery::trace {

/// The ranks of a message.
struct MessageEnds {
  std::optional<std::uint64_t> source, destination;
};

/// The ranks of a group that lie regularly.
struct RegularRanks {
  std::optional<std::uint64_t> first, stride;
};

/// The arguments of an event that have a meaning here.
struct KinetoArguments {
  std::optional<std::uint64_t> correlation, stream, device, waited_stream, event_record;
  CommunicationRecord record;
  std::optional<std::uint64_t> in_elements, out_elements, element_size;
  RegularRanks ranks;
  MessageEnds ends;
  std::optional<simdjson::dom::element> dimensions, types, values;
  std::optional<std::string_view> members;
};

/// Reads the arguments of an event. Those of unknown names or with unexpected values are left out.
KinetoArguments read_arguments(const simdjson::dom::element& args);
/// Makes the record of a communication from the arguments of its kernel or operator. Operators of older recordings list
/// the sizes of their tensors and other inputs instead: [tensors, number, group, rank, ..., size of the group].
CommunicationRecord make_record(KinetoArguments& all, bool is_operator);

/// Returns the bytes of the first input that is a tensor, by the sizes and types of an operator's inputs; nothing if
/// the recording does not list them.
std::optional<std::uint64_t> first_tensor_bytes(const KinetoArguments& all);

/// Returns a whole number of 0 or more, or the text of one.
std::optional<std::uint64_t> whole_in(const simdjson::dom::element& value);
std::optional<std::uint64_t> whole_in(std::string_view text);
std::optional<std::string_view> text_in(const simdjson::dom::element& value);

}  // namespace orrery::trace
