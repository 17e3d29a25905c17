#include "orrery/base/output_file.hpp"
#include "orrery/results/read.hpp"
#include "orrery/results/results.hpp"

namespace orrery::results {

void check_output(const std::filesystem::path& path, bool force) {
  std::error_code ignored;
  const bool replaceable = force || (std::filesystem::is_regular_file(path, ignored) && is_interrupted(path));
  orrery::check_output(path, replaceable);
}

}  // namespace orrery::results
