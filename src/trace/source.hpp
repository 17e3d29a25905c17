#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "orrery/base/error.hpp"

namespace orrery::trace {

/// The file that is read and the NPU for which it is read, for messages.
struct Source {
  std::string file;
  std::optional<std::uint32_t> npu;

  Place place() const { return {.file = file, .npu = npu}; }
};

/// Returns a name as messages show it: at most 80 bytes, with a question mark for each control character.
std::string shown(std::string_view name);

}  // namespace orrery::trace
