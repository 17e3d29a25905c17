#include "orrery/results/read.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "format.hpp"
#include "hdf5_file.hpp"
#include "orrery/base/error.hpp"

namespace orrery::results {
namespace {

/// HDF5 prints nothing while this lives.
class Silence {
 public:
  Silence() {
    start_library();
    H5Eget_auto2(H5E_DEFAULT, &report_, &report_data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  ~Silence() { H5Eset_auto2(H5E_DEFAULT, report_, report_data_); }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

 private:
  H5E_auto2_t report_ = nullptr;
  void* report_data_ = nullptr;
};

/// One file of results that is only read.
class Source {
 public:
  explicit Source(const std::filesystem::path& path) : path_(path) {
    std::error_code failure;
    if (!std::filesystem::exists(path, failure)) fail("no such file");
    file_ = Handle(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
    if (file_.id() < 0) fail("is no HDF5 file that can be read");
  }

  [[noreturn]] void fail(std::string_view found) const {
    throw Error(ErrorCode::bad_input, {.file = path_.string()}, found, "results of a run",
                "Give the HDF5 file of --output.");
  }

  void require_format() const {
    if (text("format") != format::name) fail("was not written by Orrery");
  }

  /// An attribute of the root that is one number.
  template <class T>
  T number(const char* name) const {
    const Handle attribute(H5Aopen(file_.id(), name, H5P_DEFAULT), H5Aclose);
    T value{};
    if (attribute.id() < 0 || size_of(Handle(H5Aget_space(attribute.id()), H5Sclose)) != 1 ||
        H5Aread(attribute.id(), memory_type<T>(), &value) < 0)
      fail(fmt::format("the attribute {} is missing", name));
    return value;
  }

  /// An attribute of the root that is one text of variable length.
  std::string text(const char* name) const {
    const Handle attribute(H5Aopen(file_.id(), name, H5P_DEFAULT), H5Aclose);
    const Handle type(attribute.id() < 0 ? H5I_INVALID_HID : H5Aget_type(attribute.id()), H5Tclose);
    char* characters = nullptr;
    if (type.id() < 0 || H5Tis_variable_str(type.id()) <= 0 ||
        size_of(Handle(H5Aget_space(attribute.id()), H5Sclose)) != 1 ||
        H5Aread(attribute.id(), type.id(), static_cast<void*>(&characters)) < 0)
      fail(fmt::format("the attribute {} is missing", name));
    std::string value(characters == nullptr ? "" : characters);
    H5free_memory(characters);
    return value;
  }

  template <class T>
  std::vector<T> column(const std::string& path) const {
    const Handle dataset(H5Dopen2(file_.id(), path.c_str(), H5P_DEFAULT), H5Dclose);
    if (dataset.id() < 0) fail(fmt::format("{} is missing", path));
    const hssize_t size = size_of(Handle(H5Dget_space(dataset.id()), H5Sclose));
    std::vector<T> values(static_cast<std::size_t>(std::max<hssize_t>(size, 0)));
    if (size < 0 || H5Dread(dataset.id(), memory_type<T>(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) < 0)
      fail(fmt::format("{} cannot be read", path));
    return values;
  }

 private:
  static hssize_t size_of(const Handle& space) {
    return space.id() < 0 ? -1 : H5Sget_simple_extent_npoints(space.id());
  }

  std::filesystem::path path_;
  Silence silence_;  // before the file, which is closed in silence
  Handle file_;
};

}  // namespace

KernelTable read_kernel(const std::filesystem::path& path) {
  const Source source(path);
  source.require_format();
  if (const auto version = source.number<std::int64_t>("format_version"); version != format::version)
    source.fail(fmt::format("has version {} of the format, where {} is known", version, format::version));
  KernelTable table{source.text("status"), source.number<double>("wall_time"), {}};
  const auto num_ranks = source.number<std::int64_t>("num_ranks");
  if (num_ranks < 1) source.fail(fmt::format("is of {} ranks", num_ranks));
  const auto fill = [&]<class T>(const std::string& column, T KernelRecord::*member) {
    const auto values = source.column<T>(column);
    if (values.size() != static_cast<std::size_t>(num_ranks))
      source.fail(fmt::format("{} has {} rows for {} ranks", column, values.size(), num_ranks));
    table.ranks.resize(values.size());
    for (std::size_t rank = 0; rank < values.size(); ++rank) table.ranks[rank].*member = values[rank];
  };
  for (const auto& quantity : format::kernel_quantities) {
    const std::string column = fmt::format("/kernel/{}", quantity.name);
    if (quantity.count != nullptr)
      fill(column, quantity.count);
    else
      fill(column, quantity.seconds);
  }
  return table;
}

bool is_interrupted(const std::filesystem::path& path) {
  try {
    const Source source(path);
    source.require_format();
    return source.text("status") == format::status_name(Status::interrupted);
  } catch (const Error&) {
    return false;
  }
}

}  // namespace orrery::results
