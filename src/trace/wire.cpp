#include "wire.hpp"

#include <google/protobuf/wire_format_lite.h>

namespace orrery::trace {

bool skip_field(Input& input, std::uint32_t tag) {
  std::uint64_t bits = 0;
  std::string_view view;
  switch (wire_type(tag)) {
    case WireType::varint:
      return input.ReadVarint64(&bits);
    case WireType::bytes:
      return read_view(input, view);
    default:
      return google::protobuf::internal::WireFormatLite::SkipField(&input, tag);
  }
}

bool read_integers(Input& input, std::uint32_t tag, std::vector<std::uint64_t>& to) {
  std::uint64_t value = 0;
  if (wire_type(tag) == WireType::varint) {
    if (!input.ReadVarint64(&value)) return false;
    to.push_back(value);
    return true;
  }
  std::string_view packed;
  if (wire_type(tag) != WireType::bytes || !read_view(input, packed)) return false;
  Input list = input_over(packed);
  while (!list.ExpectAtEnd()) {
    if (!list.ReadVarint64(&value)) return false;
    to.push_back(value);
  }
  return true;
}

}  // namespace orrery::trace
