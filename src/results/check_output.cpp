#include <system_error>

#include "orrery/base/error.hpp"
#include "orrery/results/results.hpp"
#include "partial_file.hpp"

namespace orrery::results {

void check_output(const std::filesystem::path& path, bool force) {
  Place place;
  place.file = path.string();
  std::error_code ignored;
  if (!path.has_filename()) throw Error(ErrorCode::output, place, "is not the name of a file");
  const auto folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  if (!std::filesystem::is_directory(folder, ignored)) {
    throw Error(ErrorCode::output, place, "cannot be written: there is no folder '" + folder.string() + "'", {},
                "Create it first");
  }
  if (std::filesystem::is_directory(path, ignored))
    throw Error(ErrorCode::output, place, "cannot be written: it is a folder");
  if (std::filesystem::exists(path, ignored) && !force) {
    throw Error(ErrorCode::output, place, "exists already", {}, "--force replaces it");
  }
  PartialFile(path).probe();
}

}  // namespace orrery::results
