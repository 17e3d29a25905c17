#pragma once

#include <hdf5.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "hdf5_file.hpp"
#include "orrery/base/ids.hpp"

namespace orrery::results {

/// HDF5 prints nothing while an object of this class lives.
class Silence {
 public:
  Silence();
  ~Silence();
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

 private:
  H5E_auto2_t report_ = nullptr;
  void* report_data_ = nullptr;
};

/// A file of results that is read. All functions throw Error (bad_input) that names the file if what they look for is
/// missing or cannot be read.
class Source {
 public:
  /// Throws if there is no such file, or if it is no HDF5 file.
  explicit Source(const std::filesystem::path& path);

  [[noreturn]] void fail(std::string_view found) const;
  /// Throws unless Orrery wrote the file.
  void require_format() const;
  /// Throws unless Orrery wrote the file in the version of the format that this program knows.
  void require_version() const;

  bool has(const char* path) const { return H5Lexists(file_.id(), path, H5P_DEFAULT) > 0; }
  /// Returns an attribute of the root that is one number.
  template <class T>
  T number(const char* name) const {
    return number_of<T>("/", name);
  }
  /// The same of another object.
  template <class T>
  T number_of(const char* object, const char* name) const {
    const Handle attribute(H5Aopen_by_name(file_.id(), object, name, H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
    T value{};
    if (attribute.id() < 0 || size_of(Handle(H5Aget_space(attribute.id()), H5Sclose)) != 1 ||
        H5Aread(attribute.id(), memory_type<T>(), &value) < 0)
      fail(fmt::format("the attribute {} is missing", name));
    return value;
  }
  /// Returns an attribute of the root that is one text of variable length.
  std::string text(const char* name) const { return text_of("/", name); }
  /// The same of another object.
  std::string text_of(const char* object, const char* name) const;
  /// Returns all rows of a dataset of texts.
  std::vector<std::string> texts(const std::string& path) const;
  /// Returns all rows of a dataset of numbers.
  template <class T>
  std::vector<T> column(const std::string& path) const {
    const Handle dataset = open(path);
    std::vector<T> values(num_rows(dataset, path));
    if (H5Dread(dataset.id(), memory_type<T>(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) < 0)
      fail(fmt::format("{} cannot be read", path));
    return values;
  }
  Handle open(const std::string& path) const;
  /// Returns the number of rows of a dataset. Throws if it claims more than what the file holds of it can be.
  std::uint64_t num_rows(const Handle& dataset, std::string_view path) const;

 private:
  static hssize_t size_of(const Handle& space) {
    return space.id() < 0 ? -1 : H5Sget_simple_extent_npoints(space.id());
  }

  std::filesystem::path path_;
  Silence silence_;  // before the file, which is closed in silence
  Handle file_;
};

/// A table whose rows belong to one NPU after the other. Datasets stay open, so that HDF5 unpacks each chunk once where
/// NPUs are read in their order. The source outlives the table.
class NpuTable {
 public:
  /// Throws Error (bad_input) if columns are missing or the offsets do not fit them.
  template <class Columns>
  NpuTable(const Source& source, std::string group, const Columns& columns)
      : source_(source), group_(std::move(group)), offsets_(source.column<std::uint64_t>(group_ + "/offsets")) {
    for (const auto& column : columns) add(column.name);
    require_ascending();
  }

  std::size_t num_npus() const { return offsets_.size() - 1; }
  hsize_t first(NpuId npu) const { return offsets_[npu.index()]; }
  hsize_t count(NpuId npu) const { return offsets_[npu.index() + 1] - first(npu); }

  /// Returns the rows of an NPU in one column. O(rows).
  template <class T>
  std::vector<T> read(const char* column, NpuId npu) const {
    std::vector<T> values(count(npu));
    read(column, npu, memory_type<T>(), values.data());
    return values;
  }

 private:
  void add(const char* column);
  void require_ascending() const;
  void read(const char* column, NpuId npu, hid_t type, void* values) const;

  const Source& source_;
  std::string group_;
  std::vector<std::uint64_t> offsets_;
  std::map<std::string, Handle, std::less<>> datasets_;
};

}  // namespace orrery::results
