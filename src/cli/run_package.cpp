#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include "orrery/base/suggestion.hpp"
#include "package.hpp"

namespace orrery::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view formats[] = {"text", "json", "csv"};

/// Returns the folder that holds the Python package: a folder above the program in a wheel, or one below such a folder
/// in the repository or in the installed prefix. Empty if there is none.
fs::path folder_of_package() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  for (fs::path folder = program.parent_path(); folder.has_relative_path(); folder = folder.parent_path())
    for (const char* below : {"scripts/python", ORRERY_PYTHON_DIR, "."})
      if (fs::is_regular_file(folder / below / "orrery/report/__main__.py", error)) return folder / below;
  return {};
}

/// Returns the Python to run: that of the environment variable ORRERY_PYTHON, else the system's own, for which Debian
/// has the packages that are needed.
std::string python() {
  if (const char* chosen = std::getenv("ORRERY_PYTHON"); chosen && *chosen) return chosen;
  std::error_code error;
  return fs::exists("/usr/bin/python3", error) ? "/usr/bin/python3" : "python3";
}

/// Puts the folder before those in which Python looks for packages. The current folder is none of them.
void set_path(const fs::path& folder) {
  std::string path = folder.string();
  if (const char* others = std::getenv("PYTHONPATH"); others && *others) path.append(":").append(others);
  ::setenv("PYTHONPATH", path.c_str(), 1);
  ::setenv("PYTHONSAFEPATH", "1", 1);
}

}  // namespace

Option format_option() {
  Option option{"format", "FORMAT", "text, json or csv (default: text)"};
  option.words = {std::begin(formats), std::end(formats)};
  return option;
}

std::string format_argument(const Arguments& arguments) {
  const std::string format = arguments.text("format").value_or("text");
  if (std::ranges::find(formats, format) == std::end(formats))
    arguments.refuse("format", fmt::format("one of {}", list(formats)));
  return fmt::format("--format={}", format);
}

PackageCommand with_files(PackageCommand command, const Arguments& arguments) {
  command.arguments.emplace_back("--");
  command.arguments.insert(command.arguments.end(), arguments.positionals().begin(), arguments.positionals().end());
  return command;
}

int run_package(const PackageCommand& command) {
  const fs::path folder = folder_of_package();
  if (folder.empty()) {
    spdlog::error(
        "found no Python package 'orrery' in scripts/python or {} of a folder above the program. Run the program "
        "where it was built or installed.",
        ORRERY_PYTHON_DIR);
    return not_installed;
  }
  set_path(folder);
  std::error_code error;
  ::setenv("ORRERY_PROGRAM", fs::read_symlink("/proc/self/exe", error).c_str(), 1);
  // The file and not `-m orrery.report`, so that it can say which package is missing.
  std::vector<std::string> words = {python(), folder / "orrery" / command.module / "__main__.py"};
  words.insert(words.end(), command.arguments.begin(), command.arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execvp(argv[0], argv.data());
  spdlog::error(
      "{}: found no Python that can be run ({}). On Debian run: apt-get install python3 python3-h5py python3-numpy "
      "python3-pandas python3-yaml. The environment variable ORRERY_PYTHON names another Python.",
      words.front(), std::strerror(errno));
  return not_installed;
}

}  // namespace orrery::cli
