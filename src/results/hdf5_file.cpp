#include "hdf5_file.hpp"

#include <fmt/format.h>
#include <hdf5_hl.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <numeric>

#include "orrery/base/error.hpp"
#include "orrery/base/job_context.hpp"
#include "orrery/base/utf8.hpp"
#include "orrery/results/results.hpp"
#include "seal.hpp"

namespace orrery::results {
namespace {

constexpr hsize_t chunk_rows = 1 << 16;

/// Returns the type in the file for a type in memory: the same, little-endian. `memory` is one of `memory_type`, or a
/// type of texts.
hid_t file_type(hid_t memory) {
  if (memory == H5T_NATIVE_INT8) return H5T_STD_I8LE;
  if (memory == H5T_NATIVE_INT32) return H5T_STD_I32LE;
  if (memory == H5T_NATIVE_INT64) return H5T_STD_I64LE;
  if (memory == H5T_NATIVE_UINT32) return H5T_STD_U32LE;
  if (memory == H5T_NATIVE_UINT64) return H5T_STD_U64LE;
  if (memory == H5T_NATIVE_DOUBLE) return H5T_IEEE_F64LE;
  return memory;
}

/// The innermost entry quotes the system's error as "errno = 28, error message = '...', buf = ...".
herr_t read_entry(unsigned depth, const H5E_error2_t* entry, void* result) {
  auto& reason = *static_cast<Reason*>(result);
  if (depth > 0 || !entry->desc) return 0;
  reason.text = entry->desc;
  constexpr std::string_view mark = "errno = ";
  if (const auto at = reason.text.find(mark); at != std::string::npos)
    reason.text = std::strerror(std::atoi(reason.text.c_str() + at + mark.size()));
  else
    reason.out_of_memory = entry->maj_num == H5E_RESOURCE && entry->min_num == H5E_NOSPACE;
  return 0;
}

constexpr std::size_t bytes_to_add_in_memory = 1 << 20;  // by which a file in memory grows
constexpr const char* name_in_memory = ".orrery-results-in-memory";

constexpr std::size_t most_strings = 1 << 16;  // that are written at a time
constexpr hsize_t most_small_bytes = 1024;     // of a dataset that is kept with what HDF5 knows of the object
constexpr std::size_t bytes_of_text = 16;      // that a column has for each text: its place in the file
constexpr std::size_t bytes_to_convert = 1 << 15;

/// Returns the texts as HDF5 takes them. `valid` keeps them.
std::vector<const char*> pointers_to(std::span<const std::string> texts, std::vector<std::string>& valid) {
  std::vector<const char*> pointers;
  for (const std::string& text : texts) valid.push_back(valid_utf8(text));
  for (const std::string& text : valid) pointers.push_back(text.c_str());
  return pointers;
}

}  // namespace

void start_library() {
  H5dont_atexit();  // a negative answer means that the library has started already
}

Handle make_transfer() {
  Handle transfer(H5Pcreate(H5P_DATASET_XFER), H5Pclose);
  H5Pset_buffer(transfer.id(), bytes_to_convert, nullptr, nullptr);
  return transfer;
}

File::File(const std::filesystem::path& path, std::filesystem::path target) : path_(path), target_(std::move(target)) {
  start_library();
  H5Eget_auto2(H5E_DEFAULT, &old_report_, &old_report_data_);
  H5Eset_auto2(H5E_DEFAULT, note_failure, this);
  string_type_ = Handle(checked(H5Tcopy(H5T_C_S1), "making a type"), H5Tclose);
  checked(H5Tset_size(string_type_.id(), H5T_VARIABLE), "making a type");
  checked(H5Tset_cset(string_type_.id(), H5T_CSET_UTF8), "making a type");
  constexpr unsigned in_order = H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED;
  group_creation_ = Handle(checked(H5Pcreate(H5P_GROUP_CREATE), "making a property list"), H5Pclose);
  checked(H5Pset_link_creation_order(group_creation_.id(), in_order), "making a property list");
  checked(H5Pset_obj_track_times(group_creation_.id(), false), "making a property list");
  small_creation_ = Handle(checked(H5Pcreate(H5P_DATASET_CREATE), "making a property list"), H5Pclose);
  checked(H5Pset_obj_track_times(small_creation_.id(), false), "making a property list");
  checked(H5Pset_layout(small_creation_.id(), H5D_COMPACT), "making a property list");
  transfer_ = make_transfer();
  const Handle creation(checked(H5Pcreate(H5P_FILE_CREATE), "making a property list"), H5Pclose);
  checked(H5Pset_link_creation_order(creation.id(), in_order), "making a property list");
  checked(H5Pset_obj_track_times(creation.id(), false), "making a property list");
  const Handle access(checked(H5Pcreate(H5P_FILE_ACCESS), "making a property list"), H5Pclose);
  // This format has checksums of what HDF5 keeps about objects.
  checked(H5Pset_libver_bounds(access.id(), H5F_LIBVER_V110, H5F_LIBVER_V110), "making a property list");
  if (path.empty()) checked(H5Pset_fapl_core(access.id(), bytes_to_add_in_memory, false), "making a property list");
  const char* const name = path.empty() ? name_in_memory : path.c_str();
  file_ = Handle(checked(H5Fcreate(name, H5F_ACC_EXCL, creation.id(), access.id()), "creating it"), H5Fclose);
}

File::~File() {
  object_.handle.reset();
  file_.reset();
  H5Eset_auto2(H5E_DEFAULT, old_report_, old_report_data_);
}

herr_t File::note_failure(hid_t stack, void* file) {
  auto& failure = static_cast<File*>(file)->failure_;
  if (!failure) H5Ewalk2(stack, H5E_WALK_UPWARD, read_entry, &failure.emplace());
  return 0;
}

void File::fail(std::string_view doing) const {
  Reason reason = failure_.value_or(Reason());
  if (reason.out_of_memory) throw std::bad_alloc();
  if (reason.text.empty()) reason.text = "HDF5 gives no reason";
  throw Error(ErrorCode::output, {.file = target_.string()},
              fmt::format("cannot be written ({}): {}", doing, reason.text), {},
              "Free space there or give another --output, and run again.");
}

hid_t File::open(const std::string& object) {
  if (object_.path != object)
    object_ = {object,
               Handle(checked(H5Oopen(file_.id(), object.c_str(), H5P_DEFAULT), "opening " + object), H5Oclose)};
  return object_.handle.id();
}

void File::group(const std::string& path, std::string_view description) {
  object_ = {path, Handle(checked(H5Gcreate2(file_.id(), path.c_str(), H5P_DEFAULT, group_creation_.id(), H5P_DEFAULT),
                                  "group " + path),
                          H5Gclose)};
  attribute(path, "description", description);
}

/// Makes the property list of a dataset that is too large, or too empty, to be small.
Handle File::make_creation(hsize_t rows, bool is_text, Layout layout, const std::string& path) const {
  Handle creation(checked(H5Pcreate(H5P_DATASET_CREATE), "dataset " + path), H5Pclose);
  checked(H5Pset_obj_track_times(creation.id(), false), "dataset " + path);
  if (rows == 0 || is_text) return creation;
  const hsize_t num_chunks = (rows + chunk_rows - 1) / chunk_rows;
  const hsize_t chunk = (rows + num_chunks - 1) / num_chunks;  // the last one is almost full, too
  checked(H5Pset_chunk(creation.id(), 1, &chunk), "dataset " + path);
  if (layout == Layout::compressed) {
    checked(H5Pset_shuffle(creation.id()), "dataset " + path);
    checked(H5Pset_deflate(creation.id(), 1), "dataset " + path);
  }
  checked(H5Pset_fletcher32(creation.id()), "dataset " + path);
  return creation;
}

void File::create(const std::string& path, hid_t type, std::uint64_t size, const Label& label_of, Layout layout) {
  const hsize_t rows = size;
  const bool is_text = H5Tis_variable_str(type) > 0;
  const Handle space(checked(H5Screate_simple(1, &rows, nullptr), "dataset " + path), H5Sclose);
  const bool is_small = rows > 0 && rows <= most_small_bytes / (is_text ? bytes_of_text : H5Tget_size(type));
  Handle large;
  if (!is_small) large = make_creation(rows, is_text, layout, path);
  object_ = {path, Handle(checked(H5Dcreate2(file_.id(), path.c_str(), file_type(type), space.id(), H5P_DEFAULT,
                                             is_small ? small_creation_.id() : large.id(), H5P_DEFAULT),
                                  "dataset " + path),
                          H5Dclose)};
  label(path, label_of);
}

void File::write(const std::string& path, hid_t type, std::uint64_t first, std::uint64_t count, const void* values) {
  if (count == 0) return;
  const hid_t dataset = open(path);
  const hsize_t start = first;
  const hsize_t rows = count;
  const Handle there(checked(H5Dget_space(dataset), "writing " + path), H5Sclose);
  checked(H5Sselect_hyperslab(there.id(), H5S_SELECT_SET, &start, nullptr, &rows, nullptr), "writing " + path);
  const Handle here(checked(H5Screate_simple(1, &rows, nullptr), "writing " + path), H5Sclose);
  checked(H5Dwrite(dataset, type, here.id(), there.id(), transfer_.id(), values), "writing " + path);
  beat();
  for (std::uint64_t done = 0; done < count; done += Written::most_rows)
    written_.add(path, "", type, first + done, std::min(Written::most_rows, count - done),
                 static_cast<const std::byte*>(values) + done * H5Tget_size(type));
}

void File::strings(const std::string& path, std::span<const std::string> values, const Label& label_of) {
  strings(
      path, values.size(), [&](std::size_t i) -> std::string_view { return values[i]; }, label_of);
}

void File::strings(const std::string& path, std::size_t count,
                   const std::function<std::string_view(std::size_t)>& text_of, const Label& label_of) {
  create(path, string_type_.id(), count, label_of, Layout::plain);
  for (std::size_t first = 0; first < count; first += most_strings) {
    std::vector<std::string> texts;
    for (std::size_t i = first; i < std::min(count, first + most_strings); ++i) texts.emplace_back(text_of(i));
    std::vector<std::string> valid;
    const auto pointers = pointers_to(texts, valid);
    write(path, string_type_.id(), first, pointers.size(), pointers.data());
  }
}

void File::strings(const std::string& path, std::span<const std::string> texts, std::span<const std::uint32_t> rows,
                   const Label& label_of) {
  std::vector<std::string> valid;
  const auto pointers = pointers_to(texts, valid);
  create(path, string_type_.id(), rows.size(), label_of, Layout::plain);
  std::vector<const char*> piece;
  for (std::size_t first = 0; first < rows.size(); first += piece.size()) {
    piece.clear();
    for (std::size_t i = first; i < std::min(rows.size(), first + most_strings); ++i)
      piece.push_back(pointers[rows[i]]);
    write(path, string_type_.id(), first, piece.size(), piece.data());
  }
}

void File::scalar(const std::string& path, hid_t type, const void* value, const Label& label_of) {
  const Handle space(checked(H5Screate(H5S_SCALAR), "dataset " + path), H5Sclose);
  object_ = {path, Handle(checked(H5Dcreate2(file_.id(), path.c_str(), file_type(type), space.id(), H5P_DEFAULT,
                                             small_creation_.id(), H5P_DEFAULT),
                                  "dataset " + path),
                          H5Dclose)};
  checked(H5Dwrite(object_.handle.id(), type, H5S_ALL, H5S_ALL, transfer_.id(), value), "writing " + path);
  written_.add(path, "", type, 0, 1, value);
  label(path, label_of);
}

void File::text(const std::string& path, const std::string& value, const Label& label_of) {
  const std::string valid = valid_utf8(value);
  const char* pointer = valid.c_str();
  scalar(path, string_type_.id(), static_cast<const void*>(&pointer), label_of);
}

void File::label(const std::string& path, const Label& label) {
  attribute(path, "units", label.units);
  attribute(path, "long_name", label.long_name);
  attribute(path, "description", label.description);
}

void File::scale(const std::string& path, std::uint64_t size, const Label& label_of) {
  // Coordinates take almost no space when compressed.
  create<std::uint64_t>(path, size, label_of, Layout::compressed);
  std::vector<std::uint64_t> values(std::min<std::uint64_t>(size, 16 * chunk_rows));
  for (std::uint64_t first = 0; first < size; first += values.size()) {
    values.resize(std::min<std::uint64_t>(values.size(), size - first));
    std::iota(values.begin(), values.end(), first);
    write<std::uint64_t>(path, first, values);
  }
  checked(H5DSset_scale(open(path), path.c_str() + path.find_last_of('/') + 1), "scale " + path);
}

hobj_ref_t File::place_of(const std::string& object) {
  hobj_ref_t place{};
  checked(H5Rcreate(&place, open(object), ".", H5R_OBJECT, H5I_INVALID_HID), "place of " + object);
  return place;
}

// H5DSattach_scale would write the list of a scale's datasets anew for each of them. The names and types of the
// attributes are those of the HDF5 Dimension Scale Specification.
void File::attach(const std::string& dataset, const std::string& scale) {
  auto [used, is_new] = scales_.try_emplace(scale);
  if (is_new) used->second.place = place_of(scale);
  used->second.uses.push_back({place_of(dataset), 0});
  const hsize_t num_dimensions = 1;
  const Handle space(checked(H5Screate_simple(1, &num_dimensions, nullptr), "scale of " + dataset), H5Sclose);
  const Handle type(checked(H5Tvlen_create(H5T_STD_REF_OBJ), "scale of " + dataset), H5Tclose);
  const Handle list(
      checked(H5Acreate2(open(dataset), "DIMENSION_LIST", type.id(), space.id(), H5P_DEFAULT, H5P_DEFAULT),
              "scale of " + dataset),
      H5Aclose);
  const hvl_t scales{1, &used->second.place};
  checked(H5Awrite(list.id(), type.id(), &scales), "scale of " + dataset);
}

void File::list_uses_of_scales() {
  const Handle type(checked(H5Tcreate(H5T_COMPOUND, sizeof(ScaleUse)), "making a type"), H5Tclose);
  checked(H5Tinsert(type.id(), "dataset", HOFFSET(ScaleUse, dataset), H5T_STD_REF_OBJ), "making a type");
  checked(H5Tinsert(type.id(), "dimension", HOFFSET(ScaleUse, dimension), H5T_NATIVE_INT), "making a type");
  for (const auto& [path, scale] : scales_) {
    const hsize_t size = scale.uses.size();
    const Handle space(checked(H5Screate_simple(1, &size, nullptr), "scale " + path), H5Sclose);
    const Handle list(checked(H5Acreate2(open(path), "REFERENCE_LIST", type.id(), space.id(), H5P_DEFAULT, H5P_DEFAULT),
                              "scale " + path),
                      H5Aclose);
    checked(H5Awrite(list.id(), type.id(), scale.uses.data()), "scale " + path);
  }
}

void File::write_attribute(const std::string& object, const char* name, hid_t type, const Handle& space,
                           const void* value) {
  const Handle attribute(checked(H5Acreate2(open(object), name, file_type(type), space.id(), H5P_DEFAULT, H5P_DEFAULT),
                                 fmt::format("attribute {} of {}", name, object)),
                         H5Aclose);
  checked(H5Awrite(attribute.id(), type, value), fmt::format("attribute {} of {}", name, object));
  written_.add(object, name, type, 0, static_cast<std::uint64_t>(H5Sget_simple_extent_npoints(space.id())), value);
}

void File::attribute(const std::string& object, const char* name, std::string_view value) {
  const std::string text = valid_utf8(value);
  const char* pointer = text.c_str();
  const Handle space(checked(H5Screate(H5S_SCALAR), "attribute"), H5Sclose);
  write_attribute(object, name, string_type_.id(), space, &pointer);
}

void File::attribute(const std::string& object, const char* name, std::int64_t value) {
  const Handle space(checked(H5Screate(H5S_SCALAR), "attribute"), H5Sclose);
  write_attribute(object, name, H5T_NATIVE_INT64, space, &value);
}

void File::attribute(const std::string& object, const char* name, double value) {
  const Handle space(checked(H5Screate(H5S_SCALAR), "attribute"), H5Sclose);
  write_attribute(object, name, H5T_NATIVE_DOUBLE, space, &value);
}

void File::attribute(const std::string& object, const char* name, std::span<const std::string> values) {
  std::vector<std::string> valid;
  const auto pointers = pointers_to(values, valid);
  const hsize_t size = values.size();
  const Handle space(checked(H5Screate_simple(1, &size, nullptr), "attribute"), H5Sclose);
  write_attribute(object, name, string_type_.id(), space, pointers.data());
}

std::string hdf5_version() {
  start_library();
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  H5get_libversion(&major, &minor, &release);
  return fmt::format("{}.{}.{}", major, minor, release);
}

void File::close(const parallel::GivesSigns& give_sign) {
  list_uses_of_scales();
  attribute("/", "whole", std::int64_t{1});
  checked(object_.handle.reset() ? 0 : -1, "closing its objects");
  checked(H5Fflush(file_.id(), H5F_SCOPE_LOCAL), "flushing it");
  checked(file_.reset() ? 0 : -1, "closing it");
  if (const std::string lost = written_.first_difference(path_, give_sign); !lost.empty())
    fail(fmt::format("reading it back, where {} is not what was written", lost));
  std::error_code failure;
  const std::uintmax_t size = std::filesystem::file_size(path_, failure);
  give_sign(failure ? 0 : seconds_for(size));
  if (const auto error = seal(path_)) {
    failure_ = Reason{error.message()};
    fail("appending its checksum");
  }
}

}  // namespace orrery::results
