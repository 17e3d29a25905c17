#include "orrery/results/table_file.hpp"

#include <span>

#include "orrery/base/version.hpp"
#include "output.hpp"

namespace orrery::results {
namespace {

void write_column(File& file, const std::string& path, const TableColumn& column) {
  const Label label{column.units, column.name, column.description};
  if (const auto* const numbers = std::get_if<std::vector<double>>(&column.values))
    file.column<double>(path, *numbers, label);
  else if (const auto* const counts = std::get_if<std::vector<std::int64_t>>(&column.values))
    file.column<std::int64_t>(path, *counts, label);
  else
    file.strings(path, std::get<std::vector<std::string>>(column.values), label);
}

}  // namespace

std::filesystem::path write_tables(const std::filesystem::path& path, const TableFile& content, bool force,
                                   parallel::Communicator& world) {
  Output output(path, world);
  output.on_root([&](File& file) {
    file.attribute("/", "format", content.format);
    file.attribute("/", "format_version", std::int64_t{1});
    file.attribute("/", "orrery_version", version());
    for (const auto& [name, text] : content.attributes) file.attribute("/", name.c_str(), text);
    file.group("/inputs", "texts of the inputs");
    for (const auto& [name, text] : content.inputs) file.text("/inputs/" + name, text, {"1", name, "verbatim"});
    for (const auto& [group, description] : content.groups) file.group(group, description);
    for (const FileTable& table : content.tables) {
      file.group(table.path, table.description);
      for (const TableColumn& column : table.columns) write_column(file, table.path + "/" + column.name, column);
    }
  });
  return output.commit(force);
}

}  // namespace orrery::results
