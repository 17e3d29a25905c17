#include "source.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>

#include "format.hpp"
#include "orrery/base/error.hpp"
#include "seal.hpp"

namespace orrery::results {
namespace {

constexpr std::uint64_t most_chunks = std::uint64_t{1} << 24U;  // of which results have one for 32,768 rows or more

/// Returns how many rows a chunk of a dataset has; of a dataset without chunks all.
std::uint64_t rows_of_chunk(const Handle& dataset) {
  const Handle properties(H5Dget_create_plist(dataset.id()), H5Pclose);
  hsize_t rows = 0;
  const bool has_chunks = H5Pget_layout(properties.id()) == H5D_CHUNKED && H5Pget_chunk(properties.id(), 1, &rows) >= 0;
  return has_chunks && rows > 0 ? rows : ~std::uint64_t{0};
}

/// Says whether another process holds the lock of an HDF5 file for writing.
bool is_open_elsewhere(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool is_locked = ::flock(file, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(file);
  return is_locked;
}

}  // namespace

Silence::Silence() {
  start_library();
  H5Eget_auto2(H5E_DEFAULT, &report_, &report_data_);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

Silence::~Silence() { H5Eset_auto2(H5E_DEFAULT, report_, report_data_); }

Source::Source(const std::filesystem::path& path) : path_(path) {
  std::error_code failure;
  if (!std::filesystem::exists(path, failure)) fail("no such file");
  if (!std::filesystem::is_regular_file(path, failure)) fail("this is not a regular file");
  if (is_open_elsewhere(path)) fail("cannot be opened now: is another program writing it?");
  if (has_broken_seal(path)) fail("has been damaged: its checksum is not that of its contents");
  file_ = Handle(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
  if (file_.id() < 0) fail("is no HDF5 file that can be read");
}

void Source::fail(std::string_view found) const {
  throw Error(ErrorCode::bad_input, {.file = path_.string()}, found, "results of a run",
              "Give the HDF5 file of --output.");
}

void Source::require_format() const {
  if (text("format") != format::name) fail("was not written by Orrery");
}

void Source::require_version() const {
  require_format();
  if (const auto version = number<std::int64_t>("format_version"); version != format::version)
    fail(fmt::format("has version {} of the format, where {} is known", version, format::version));
}

std::string Source::text_of(const char* object, const char* name) const {
  const Handle attribute(H5Aopen_by_name(file_.id(), object, name, H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
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

std::vector<std::string> Source::texts(const std::string& path) const {
  const Handle dataset = open(path);
  const Handle type(H5Dget_type(dataset.id()), H5Tclose);
  const Handle space(H5Dget_space(dataset.id()), H5Sclose);
  std::vector<char*> pointers(num_rows(dataset, path));
  if (H5Tis_variable_str(type.id()) <= 0 ||
      H5Dread(dataset.id(), type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, pointers.data()) < 0)
    fail(fmt::format("{} cannot be read", path));
  std::vector<std::string> values;
  for (const char* characters : pointers) values.emplace_back(characters == nullptr ? "" : characters);
  if (!pointers.empty()) H5Dvlen_reclaim(type.id(), space.id(), H5P_DEFAULT, pointers.data());
  return values;
}

Handle Source::open(const std::string& path) const {
  Handle dataset(H5Dopen2(file_.id(), path.c_str(), H5P_DEFAULT), H5Dclose);
  if (dataset.id() < 0) fail(fmt::format("{} is missing", path));
  return dataset;
}

std::uint64_t Source::num_rows(const Handle& dataset, std::string_view path) const {
  constexpr std::uint64_t most_rows_of_byte = 65536;  // gzip makes a byte of 1032 at most, other filters of more
  const auto rows =
      static_cast<std::uint64_t>(std::max<hssize_t>(size_of(Handle(H5Dget_space(dataset.id()), H5Sclose)), 0));
  // HDF5 asks each chunk for its size, also if it is not there.
  if (rows / rows_of_chunk(dataset) > most_chunks)
    fail(fmt::format("{} has {} rows in chunks of {}", path, rows, rows_of_chunk(dataset)));
  const std::uint64_t bytes = H5Dget_storage_size(dataset.id());
  if (rows / most_rows_of_byte > bytes || (rows > 0 && bytes == 0))
    fail(fmt::format("{} has {} rows in {} bytes", path, rows, bytes));
  return rows;
}

void NpuTable::add(const char* column) {
  const std::string path = fmt::format("{}/{}", group_, column);
  const auto [entry, added] = datasets_.emplace(column, source_.open(path));
  if (offsets_.empty() || source_.num_rows(entry->second, path) != offsets_.back())
    source_.fail(fmt::format("{} is not whole", group_));
}

void NpuTable::require_ascending() const {
  if (offsets_.front() != 0 || !std::ranges::is_sorted(offsets_))
    source_.fail(fmt::format("{}/offsets do not ascend", group_));
}

void NpuTable::read(const char* column, NpuId npu, hid_t type, void* values) const {
  const hsize_t first_row = first(npu), num_rows = count(npu);
  if (num_rows == 0) return;
  const Handle& dataset = datasets_.at(column);
  const Handle there(H5Dget_space(dataset.id()), H5Sclose);
  const Handle here(H5Screate_simple(1, &num_rows, nullptr), H5Sclose);
  if (H5Sselect_hyperslab(there.id(), H5S_SELECT_SET, &first_row, nullptr, &num_rows, nullptr) < 0 ||
      H5Dread(dataset.id(), type, here.id(), there.id(), H5P_DEFAULT, values) < 0)
    source_.fail(fmt::format("{}/{} cannot be read", group_, column));
}

}  // namespace orrery::results
