#pragma once

#include <simdjson.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace orrery::trace {

/// Returns the values of "inputs" or "outputs" of a node of a PyTorch execution trace, which are a list or, in newer
/// files, an object with the list "values".
std::optional<simdjson::dom::array> values_of(const simdjson::dom::object& node, std::string_view key);

/// Returns the bytes of the tensors among these values.
std::uint64_t tensor_bytes(const simdjson::dom::object& node, std::string_view key);

}  // namespace orrery::trace
