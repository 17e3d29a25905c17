#include "orrery/results/columns_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <string_view>
#include <vector>

#include "hdf5_file.hpp"
#include "orrery/base/error.hpp"
#include "source.hpp"

namespace orrery::results {
namespace {

constexpr hssize_t most_rows = 10'000'000;

/// The columns of a file.
class ColumnsFile {
 public:
  explicit ColumnsFile(const std::filesystem::path& path)
      : path_(path), file_(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose) {
    if (file_.id() < 0) fail({}, "it cannot be read");
    H5G_info_t group{};
    H5Gget_info(file_.id(), &group);
    for (hsize_t i = 0; i < group.nlinks; ++i) add(name_of(i));
    if (names_.empty()) fail({}, "there is no dataset at the root");
  }

  std::string csv() const {
    std::string text = fmt::format("{}\n", fmt::join(names_, ","));
    for (std::size_t row = 0; row < columns_.front().size(); ++row)
      for (std::size_t i = 0; i < columns_.size(); ++i)
        text += columns_[i][row] + (i + 1 == columns_.size() ? '\n' : ',');
    return text;
  }

 private:
  [[noreturn]] void fail(const std::string& dataset, std::string_view found) const {
    throw Error(ErrorCode::bad_input, {.file = path_.string(), .key = dataset}, found,
                "one-dimensional datasets of one length at the root, numbers or texts");
  }
  std::string name_of(hsize_t i) const {
    std::array<char, 256> name{};
    H5Lget_name_by_idx(file_.id(), ".", H5_INDEX_NAME, H5_ITER_INC, i, name.data(), name.size(), H5P_DEFAULT);
    return name.data();
  }

  void add(const std::string& name) {
    const Handle dataset(H5Dopen2(file_.id(), name.c_str(), H5P_DEFAULT), H5Dclose);
    if (dataset.id() < 0) fail(name, "it is no dataset");
    const Handle space(H5Dget_space(dataset.id()), H5Sclose), type(H5Dget_type(dataset.id()), H5Tclose);
    const hssize_t rows = H5Sget_simple_extent_npoints(space.id());
    if (H5Sget_simple_extent_ndims(space.id()) != 1 || rows < 0 || rows > most_rows)
      fail(name, "it has more than one dimension, or more than 10,000,000 rows");
    auto values =
        H5Tget_class(type.id()) == H5T_STRING ? texts(name, dataset, type, space) : numbers(name, dataset, rows);
    if (!columns_.empty() && values.size() != columns_.front().size())
      fail(name,
           fmt::format("it has {} rows, and '{}' has {}", values.size(), names_.front(), columns_.front().size()));
    names_.push_back(name);
    columns_.push_back(std::move(values));
  }
  std::vector<std::string> numbers(const std::string& name, const Handle& dataset, hssize_t rows) const {
    std::vector<double> values(static_cast<std::size_t>(rows));
    if (H5Dread(dataset.id(), H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) < 0)
      fail(name, "its values are neither numbers nor texts");
    std::vector<std::string> result;
    for (const double value : values) result.push_back(std::isnan(value) ? "" : fmt::format("{}", value));
    return result;
  }
  std::vector<std::string> texts(const std::string& name, const Handle& dataset, const Handle& type,
                                 const Handle& space) const {
    const auto rows = static_cast<std::size_t>(H5Sget_simple_extent_npoints(space.id()));
    std::vector<std::string> result;
    if (H5Tis_variable_str(type.id()) > 0) {
      std::vector<char*> pointers(rows);
      if (H5Dread(dataset.id(), type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, pointers.data()) < 0)
        fail(name, "its texts cannot be read");
      for (const char* characters : pointers) result.emplace_back(characters == nullptr ? "" : characters);
      H5Dvlen_reclaim(type.id(), space.id(), H5P_DEFAULT, pointers.data());
      return result;
    }
    const std::size_t size = H5Tget_size(type.id());
    std::vector<char> bytes(rows * size);
    if (H5Dread(dataset.id(), type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()) < 0)
      fail(name, "its texts cannot be read");
    for (std::size_t row = 0; row < rows; ++row) {
      const std::string_view field(bytes.data() + row * size, size);
      result.emplace_back(field.substr(0, field.find('\0')));
    }
    return result;
  }

  std::filesystem::path path_;
  Handle file_;
  std::vector<std::string> names_;
  std::vector<std::vector<std::string>> columns_;
};

}  // namespace

bool is_hdf5(const std::filesystem::path& path) {
  constexpr std::string_view signature = "\x89HDF\r\n\x1a\n";
  std::array<char, signature.size()> beginning{};
  if (std::error_code failure; !std::filesystem::is_regular_file(path, failure)) return false;
  std::ifstream file(path, std::ios::binary);
  file.read(beginning.data(), beginning.size());
  return file && std::ranges::equal(beginning, signature);
}

std::string columns_as_csv(const std::filesystem::path& path) {
  const Silence silence;
  return ColumnsFile(path).csv();
}

}  // namespace orrery::results
