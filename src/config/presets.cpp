#include "presets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "orrery/base/suggestion.hpp"
#include "orrery/config/preset_files.hpp"
#include "section.hpp"

namespace orrery::config {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view ending = ".yaml";

/// Returns the folder of this program.
fs::path program_folder() {
  std::error_code failure;
  return fs::read_symlink("/proc/self/exe", failure).parent_path();
}

/// Returns the folder of the presets: share/orrery/configs beside the folder of the program, or configs in the
/// repository in which it was built. None if there is neither.
std::optional<fs::path> presets_folder() {
  std::error_code failure;
  for (fs::path folder = program_folder(); folder.has_relative_path(); folder = folder.parent_path())
    for (const char* const place : {"share/orrery/configs", "configs"})
      if (fs::is_directory(folder / place / "systems", failure)) return folder / place;
  return {};
}

/// Returns the preset for which a name is short: the only one, or the one with which all others begin, that continues
/// it with a dash. "dgx-h100" is short for "dgx-h100-superpod".
std::optional<fs::path> longer_preset(const fs::path& folder, const std::string& name) {
  std::vector<std::string> names;
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(folder, failure))
    if (entry.path().extension() == ending && entry.path().stem().string().starts_with(name + "-"))
      names.push_back(entry.path().stem().string());
  if (names.empty()) return {};
  const std::string& shortest = *std::ranges::min_element(names, {}, &std::string::size);
  const bool is_of_all = std::ranges::all_of(
      names, [&](const std::string& other) { return other == shortest || other.starts_with(shortest + "-"); });
  return is_of_all ? std::optional(folder / (shortest + std::string(ending))) : std::nullopt;
}

/// Returns a hint at the preset whose name is nearest.
std::string similar_preset(const fs::path& folder, const std::string& name) {
  std::vector<std::string> names;
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(folder, failure)) names.push_back(entry.path().stem().string());
  std::ranges::sort(names);
  const std::vector<std::string_view> known(names.begin(), names.end());
  const auto near = nearest(fs::path(name).stem().string(), known);
  return near.empty() ? std::string() : fmt::format("Did you mean the preset '{}'? ", near);
}

}  // namespace

fs::path find_preset(const Value& name, const std::string& key, std::string_view subfolder) {
  const fs::path own = as_path(name, key);
  std::vector<fs::path> places = {own};
  std::optional<fs::path> presets;
  if (fs::path(name.text).is_relative()) presets = presets_folder();
  if (presets) places.insert(places.end(), {*presets / name.text, *presets / subfolder / name.text});
  std::vector<std::string> searched;
  for (const fs::path& place : places) {
    std::error_code failure;
    for (const fs::path& path : {place, fs::path(place).concat(ending)})
      if (fs::exists(path, failure) || failure) return path;
    searched.push_back(place.lexically_normal().string());
  }
  if (presets && !name.text.empty())
    if (auto longer = longer_preset(*presets / subfolder, name.text)) return *longer;
  throw Error(
      ErrorCode::bad_input, name.place(key), fmt::format("found '{}', but there is no such file", cited(name.text)),
      "the name of a file or of a preset",
      fmt::format("{}Searched with and without the ending {}: {}.",
                  presets ? similar_preset(*presets / subfolder, name.text) : "", ending, fmt::join(searched, ", ")));
}

std::optional<fs::path> preset_named(std::string_view subfolder, const std::string& name) {
  const auto presets = presets_folder();
  if (!presets || name.empty()) return {};
  const fs::path folder = *presets / subfolder, exact = folder / (name + std::string(ending));
  std::error_code failure;
  return fs::is_regular_file(exact, failure) ? std::optional(exact) : longer_preset(folder, name);
}

std::optional<fs::path> schema_file() {
  constexpr const char* name = "schema.json";
  std::vector<fs::path> places = {program_folder().parent_path() / "made" / name};  // scripts/packaging/CMakeLists.txt
  if (const auto presets = presets_folder()) places.insert(places.begin(), *presets / name);
  std::error_code failure;
  for (const fs::path& place : places)
    if (fs::is_regular_file(place, failure)) return place;
  return {};
}

std::vector<fs::path> preset_files(std::string_view subfolder) {
  std::vector<fs::path> files;
  const auto presets = presets_folder();
  if (!presets) return files;
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(*presets / subfolder, failure))
    if (entry.path().extension() == ending) files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

}  // namespace orrery::config
