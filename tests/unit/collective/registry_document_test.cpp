// The list of algorithms in docs/collectives.md is that of the registry.
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <string_view>

#include "orrery/collective/registry.hpp"

namespace orrery::collective {
namespace {

/// Returns the section "Algorithms" of the document up to its first subsection, with one space in place of line ends.
std::string listed_algorithms() {
  std::ifstream file(std::string(ORRERY_SOURCE_DIR) + "/docs/collectives.md");
  std::string line, text;
  while (std::getline(file, line) && line != "## Algorithms") continue;
  while (std::getline(file, line) && !line.starts_with("#")) text += line.substr(line.starts_with("  ") ? 1 : 0) + " ";
  std::string joined;
  for (const char c : text)
    if (c != ' ' || !joined.ends_with(' ')) joined += c;
  return joined;
}

/// Returns the entry of an algorithm as the document has it.
std::string item_of(const AlgorithmEntry& entry) {
  std::string names;
  for (const std::string_view name : {entry.name, entry.whole_name}) {
    if (name.empty()) continue;
    names += (names.empty() ? "`" : ", `") + std::string(name) + "`";
    if (entry.takes_window) names += ", `" + std::string(name) + "<w>`";
  }
  return "- " + names + ": " + std::string(entry.summary) + ". It carries out " + scope(entry) + ". ";
}

// docs/collectives.md has a list of algorithms. It has one entry for each algorithm of the registry, with its text.
TEST(Registry, DocumentListsItsAlgorithms) {
  const std::string listed = listed_algorithms();
  std::size_t num_items = 0;
  for (std::size_t at = listed.find("- `"); at != std::string::npos; at = listed.find("- `", at + 1)) ++num_items;
  EXPECT_EQ(num_items, algorithms().size());
  for (const AlgorithmEntry& entry : algorithms())
    EXPECT_NE(listed.find(item_of(entry)), std::string::npos)
        << "docs/collectives.md, Algorithms, lacks: " << item_of(entry);
}

}  // namespace
}  // namespace orrery::collective
