#include "columns.hpp"

namespace orrery::results {

std::uint64_t create_offsets(File& file, const std::string& group, std::span<const std::int64_t> rows) {
  std::vector<std::uint64_t> offsets{0};
  for (const auto count : rows) offsets.push_back(offsets.back() + static_cast<std::uint64_t>(count));
  file.scale(group + "/bound", offsets.size(), {"1", "bound", "index of an offset"});
  file.column<std::uint64_t>(group + "/offsets", offsets,
                             {"1", "offset", "first row of the NPU; the last value is the number of rows"});
  file.attach(group + "/offsets", group + "/bound");
  file.scale(group + "/row", offsets.back(), {"1", "row", "row of the columns"});
  return offsets.back();
}

}  // namespace orrery::results
