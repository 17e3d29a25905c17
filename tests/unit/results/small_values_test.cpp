// Where the values of a file of results are kept: few of them beside what HDF5 knows of the dataset, many in chunks.
#include <gtest/gtest.h>
#include <hdf5.h>
#include <hdf5_hl.h>

#include <numeric>

#include "hdf5_file.hpp"
#include "temporary_folder.hpp"

namespace orrery::results {
namespace {

constexpr Label label{"1", "value", "a value"};

H5D_layout_t layout_of(hid_t file, const char* path) {
  const Handle dataset(H5Dopen2(file, path, H5P_DEFAULT), H5Dclose);
  const Handle creation(H5Dget_create_plist(dataset.id()), H5Pclose);
  return H5Pget_layout(creation.id());
}

// 128 numbers of 8 bytes are the most that are kept beside the dataset; 129 have a chunk with a checksum.
TEST(SmallValues, FewAreKeptBesideTheirDataset) {
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "r.h5";
  std::vector<std::int64_t> most(128), more(129);
  std::iota(most.begin(), most.end(), 7);
  std::iota(more.begin(), more.end(), 11);
  {
    File file(path, path);
    file.group("/g", "a group");
    file.scale("/g/row", most.size(), label);
    file.column<std::int64_t>("/g/most", most, label);
    file.attach("/g/most", "/g/row");
    file.column<std::int64_t>("/g/more", more, label);
    file.column<double>("/g/none", {}, label);
    file.scalar("/g/scalar", 0.5, label);
    file.strings("/g/texts", std::vector<std::string>{"a", "bb"}, label);
    file.close([](std::uint32_t) {});
  }
  const Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
  for (const char* small : {"/g/row", "/g/most", "/g/scalar", "/g/texts"})
    EXPECT_EQ(layout_of(file.id(), small), H5D_COMPACT) << small;
  EXPECT_EQ(layout_of(file.id(), "/g/more"), H5D_CHUNKED);
  EXPECT_EQ(layout_of(file.id(), "/g/none"), H5D_CONTIGUOUS);
  const Handle dataset(H5Dopen2(file.id(), "/g/most", H5P_DEFAULT), H5Dclose);
  const Handle row(H5Dopen2(file.id(), "/g/row", H5P_DEFAULT), H5Dclose);
  std::vector<std::int64_t> found(most.size());
  H5Dread(dataset.id(), H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, found.data());
  EXPECT_EQ(found, most);
  EXPECT_EQ(H5DSis_scale(row.id()), 1);
  EXPECT_EQ(H5DSis_attached(dataset.id(), row.id(), 0), 1);
}

// Texts are converted piece by piece: more of them than the buffer holds come back in order.
TEST(SmallValues, ManyTextsPassASmallBuffer) {
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "r.h5";
  std::vector<std::string> texts;
  for (int i = 0; i < 5000; ++i)
    texts.push_back(std::string(static_cast<std::size_t>(i % 40), 'x') + std::to_string(i));
  {
    File file(path, path);
    file.strings("/texts", texts, label);
    file.close([](std::uint32_t) {});  // it reads them again
  }
  const Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
  const Handle dataset(H5Dopen2(file.id(), "/texts", H5P_DEFAULT), H5Dclose);
  const Handle type(H5Dget_type(dataset.id()), H5Tclose);
  const Handle space(H5Dget_space(dataset.id()), H5Sclose);
  std::vector<char*> found(texts.size());
  ASSERT_GE(H5Dread(dataset.id(), type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, found.data()), 0);
  for (std::size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(texts[i], found[i]);
  H5Dvlen_reclaim(type.id(), space.id(), H5P_DEFAULT, found.data());
}

}  // namespace
}  // namespace orrery::results
