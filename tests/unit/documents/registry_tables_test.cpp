// The tables of the documents that list the entries of a registry.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/compute/model.hpp"
#include "orrery/memory/options.hpp"
#include "orrery/network/options.hpp"
#include "orrery/topology/shape.hpp"

namespace orrery {
namespace {

/// Returns the first cells of the table whose first head is `head`, without backticks, in order. Empty if the document
/// has no such table.
std::vector<std::string> first_cells(std::string_view document, std::string_view head) {
  std::ifstream in(std::filesystem::path(ORRERY_SOURCE_DIR) / "docs" / document);
  std::vector<std::string> cells;
  bool is_in_table = false;
  for (std::string line; std::getline(in, line);) {
    const bool is_row = line.starts_with("| ");
    if (is_in_table && !line.starts_with("|")) break;
    if (!is_row) continue;
    std::string cell = line.substr(2, line.find(" |") - 2);
    std::erase(cell, '`');
    if (is_in_table) cells.push_back(cell);
    if (cell == head) is_in_table = true;
  }
  return cells;
}

/// Returns the names of a registry in its order.
template <class Entry>
std::vector<std::string> names() {
  std::vector<std::string> names;
  for (const Entry* const entry : Entry::registry()) names.emplace_back(entry->name);
  return names;
}

// docs/network.md says the links and routes of every shape, docs/model.md its hops.
TEST(RegistryTables, HaveEveryShape) {
  EXPECT_EQ(first_cells("network.md", "shape"), names<topology::ShapeType>());
  EXPECT_EQ(first_cells("model.md", "shape"), names<topology::ShapeType>());
}

// docs/network.md, docs/model.md and docs/memory.md list the models that can be chosen.
TEST(RegistryTables, HaveEveryModel) {
  EXPECT_EQ(first_cells("network.md", "model"), names<network::ModelType>());
  EXPECT_EQ(first_cells("model.md", "compute model"), names<compute::ModelType>());
  EXPECT_EQ(first_cells("memory.md", "kind"), names<memory::RemoteMemoryType>());
}

}  // namespace
}  // namespace orrery
