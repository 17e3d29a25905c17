#include "orrery/check/excess.hpp"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "orrery/base/text.hpp"

namespace orrery::check {
namespace {

constexpr std::string_view no_room = "but the local memory has room for";

std::string describe(const memory::Residents& tensors, const npu::NpuSpec& npu, Bytes size, const trace::Store& store) {
  std::vector<std::string> parts;
  for (const std::uint32_t tensor : tensors.largest)
    parts.push_back(fmt::format("'{}' ({})", store.name(npu.trace->labels->tensors[tensor]),
                                size_text(npu.trace->graph->tensors.sizes[tensor], size.count())));
  if (const auto more = tensors.count - tensors.largest.size(); more > 0) parts.push_back(fmt::format("{} more", more));
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

Error excess(const npu::NpuSpec& npu, std::string_view which, Bytes usage, Bytes size, const memory::Residents& tensors,
             const trace::Store& store) {
  return {
      ErrorCode::bad_input,
      Place{.file = store.file(*npu.trace), .npu = npu.id.value()},
      fmt::format("{} take {} ({} bytes), {} {} ({}): {}", which, size_text(usage.count(), size.count()), usage.count(),
                  no_room, size_text(size.count(), size.count()), size.count(), describe(tensors, npu, size, store)),
      {},
      "Raise system.compute.local-memory.size, or have an NPU keep less; with --memory=report the run goes on and "
      "tells."};
}

bool is_excess(const Error& error) {
  return error.code() == ErrorCode::bad_input && error.text().find(no_room) != std::string::npos;
}

}  // namespace orrery::check
