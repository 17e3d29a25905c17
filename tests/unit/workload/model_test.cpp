#include "orrery/workload/model.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "orrery/base/error.hpp"

namespace orrery::workload {
namespace {

TEST(ModelFamilies, HavePlainNamesAndOneLineOfHelp) {
  // All families of the registry: names must be different and made of lower-case letters; help must be one line.
  std::set<std::string_view> names;
  for (const ModelFamily& family : model_families()) {
    EXPECT_TRUE(names.insert(family.name).second) << family.name;
    EXPECT_EQ(family.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz-"), std::string_view::npos) << family.name;
    EXPECT_FALSE(family.help.empty()) << family.name;
    EXPECT_EQ(family.help.find('\n'), std::string_view::npos) << family.name;
  }
}

TEST(ModelFamilies, AreListedInTheDocument) {
  // docs/workloads.md has a table of families: it must have one row for each family, with its name and help.
  std::ifstream in(std::filesystem::path(ORRERY_SOURCE_DIR) / "docs" / "workloads.md");
  std::vector<std::string> listed, expected;
  bool is_table = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("| family |")) is_table = true;
    if (!line.starts_with("|")) is_table = false;
    if (is_table && line.starts_with("| `")) listed.push_back(line);
  }
  for (const ModelFamily& family : model_families())
    expected.push_back(fmt::format("| `{}` | {} |", family.name, family.help));
  EXPECT_EQ(listed, expected);
}

TEST(ModelFamilies, GiveModelsOfTheirOwn) {
  // The default model of each family must be of that family; a number without a family is a broken invariant.
  for (std::size_t number = 0; number < model_families().size(); ++number)
    EXPECT_EQ(default_model(number).index(), number);
  EXPECT_THROW(default_model(model_families().size()), Error);
}

}  // namespace
}  // namespace orrery::workload
