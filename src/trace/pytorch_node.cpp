#include "pytorch_node.hpp"

#include <array>

#include "orrery/base/quantity.hpp"

namespace orrery::trace {
namespace {

using Json = simdjson::dom::element;

/// Returns the bytes of a tensor, [tensor, storage, offset, elements, bytes of an element, device]; nothing for any
/// other list.
std::optional<std::uint64_t> bytes_of_tensor(const simdjson::dom::array& list) {
  constexpr std::size_t size = 6;
  if (list.size() != size || !list.at(size - 1).value().is_string()) return std::nullopt;
  std::array<std::uint64_t, size - 1> numbers{};
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (list.at(i).get(numbers[i]) != simdjson::SUCCESS) return std::nullopt;
  const std::uint64_t elements = numbers[3], bytes = numbers[4];
  if (bytes != 0 && elements > Bytes::most().count() / bytes) return std::nullopt;
  return elements * bytes;
}

/// Returns the bytes of all tensors within a value.
std::uint64_t bytes_within(const Json& value) {
  simdjson::dom::array list;
  if (value.get(list) != simdjson::SUCCESS) return 0;
  if (const auto bytes = bytes_of_tensor(list)) return *bytes;
  std::uint64_t sum = 0;
  for (const Json item : list) sum += bytes_within(item);
  return sum;
}

}  // namespace

std::optional<simdjson::dom::array> values_of(const simdjson::dom::object& node, std::string_view key) {
  Json value, values;
  simdjson::dom::array list;
  if (node[key].get(value) != simdjson::SUCCESS) return std::nullopt;
  if (value.is_object() && value["values"].get(values) == simdjson::SUCCESS) value = values;
  if (value.get(list) != simdjson::SUCCESS) return std::nullopt;
  return list;
}

std::uint64_t tensor_bytes(const simdjson::dom::object& node, std::string_view key) {
  std::uint64_t sum = 0;
  if (const auto values = values_of(node, key))
    for (const Json value : *values) sum += bytes_within(value);
  return sum;
}

}  // namespace orrery::trace
