#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "orrery/parallel/communicator.hpp"

namespace orrery::results {

/// A column of a table, with its unit as UDUNITS writes it.
struct TableColumn {
  std::string name, units, description;
  std::variant<std::vector<double>, std::vector<std::int64_t>, std::vector<std::string>> values;
};

/// Columns of one length under a group of the file, such as "/campaign/replications".
struct FileTable {
  std::string path, description;
  std::vector<TableColumn> columns;
};

/// A file of tables that is no run: campaigns and clusters over time.
struct TableFile {
  std::string format;                                           ///< attribute of the file: "orrery-campaign"
  std::vector<std::pair<std::string, std::string>> inputs;      ///< names and texts, verbatim
  std::vector<std::pair<std::string, std::string>> attributes;  ///< attributes of the file
  std::vector<std::pair<std::string, std::string>> groups;      ///< paths above the tables, and descriptions
  std::vector<FileTable> tables;
};

/// Writes the file on rank 0, as `write` does. Returns the name that it has got there. Collective. Throws Error
/// (output) on all ranks if rank 0 cannot write.
std::filesystem::path write_tables(const std::filesystem::path& path, const TableFile& content, bool force,
                                   parallel::Communicator& world);

}  // namespace orrery::results
