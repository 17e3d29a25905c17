#pragma once

#include <hdf5.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "written.hpp"

namespace orrery::results {

/// Owns one HDF5 identifier and closes it with the function that belongs to its kind.
class Handle {
 public:
  using Close = herr_t (*)(hid_t);

  Handle() = default;
  Handle(hid_t id, Close close) : id_(id), close_(close) {}
  ~Handle() { reset(); }
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)), close_(other.close_) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }

  hid_t id() const { return id_; }
  /// Closes the identifier now. Returns false if HDF5 could not.
  bool reset() { return id_ < 0 || close_(std::exchange(id_, H5I_INVALID_HID)) >= 0; }

 private:
  hid_t id_ = H5I_INVALID_HID;
  Close close_ = nullptr;
};

/// The attributes of a dataset.
struct Label {
  std::string_view units;  ///< as UDUNITS writes them; "1" for a plain number
  std::string_view long_name;
  std::string_view description;
};

/// Returns the HDF5 type of a C++ number. Files hold little-endian numbers of the same width.
template <class T>
hid_t memory_type();

/// Starts HDF5 without its handler of exit; must be called before any other function of HDF5. After a file could not be
/// closed (a full disk), that handler would crash when the program ends. Orrery closes all files before that.
void start_library();

/// Returns a property list of transfers whose buffer for the conversion of values, such as texts, is small. HDF5's own
/// buffer has 1 MiB, which it clears for each dataset.
Handle make_transfer();

/// What HDF5's error stack says about a failure.
struct Reason {
  std::string text;
  bool out_of_memory = false;
};

/// One HDF5 file that is being written by this process alone. Every failure is an Error (output) that names the file
/// and the system's reason, or std::bad_alloc: also one of a handle that closes, which may be all that tells of lost
/// data. Columns of numbers carry checksums (Fletcher32), and so does what HDF5 keeps about objects. Objects carry no
/// times, so that equal contents give equal bytes. Texts are stored as UTF-8; a question mark stands for other bytes.
class File {
 public:
  enum class Layout { plain, compressed };

  /// Creates the file `path`, which must not exist; an empty one stands for a file in memory, which `close` does not
  /// take. Errors name `target`.
  File(const std::filesystem::path& path, std::filesystem::path target);
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void group(const std::string& path, std::string_view description);

  /// Creates an empty dataset of `size` rows, which `write` fills. `compressed`: with shuffle and gzip 1.
  template <class T>
  void create(const std::string& path, std::uint64_t size, const Label& label, Layout layout = Layout::plain) {
    create(path, memory_type<T>(), size, label, layout);
  }
  /// Writes rows from `first` on.
  template <class T>
  void write(const std::string& path, std::uint64_t first, std::span<const T> values) {
    write(path, memory_type<T>(), first, values.size(), values.data());
  }
  /// Creates a dataset and writes all of its rows.
  template <class T>
  void column(const std::string& path, std::span<const T> values, const Label& label) {
    create<T>(path, values.size(), label);
    write<T>(path, 0, values);
  }
  /// Writes a dataset of one number without a dimension.
  template <class T>
  void scalar(const std::string& path, T value, const Label& label) {
    scalar(path, memory_type<T>(), &value, label);
  }
  void strings(const std::string& path, std::span<const std::string> values, const Label& label);
  /// Writes a column of so many rows, of which row i has the text text_of(i).
  void strings(const std::string& path, std::size_t count, const std::function<std::string_view(std::size_t)>& text_of,
               const Label& label);
  /// Writes a column of which row i has the text at position rows[i].
  void strings(const std::string& path, std::span<const std::string> texts, std::span<const std::uint32_t> rows,
               const Label& label);
  void text(const std::string& path, const std::string& value, const Label& label);

  /// Writes a dimension scale of `size` rows with the coordinates 0, 1, ...
  void scale(const std::string& path, std::uint64_t size, const Label& label);
  /// Makes `scale` the scale of the first dimension of `dataset`. Both have been made.
  void attach(const std::string& dataset, const std::string& scale);

  void attribute(const std::string& object, const char* name, std::string_view value);
  void attribute(const std::string& object, const char* name, std::int64_t value);
  void attribute(const std::string& object, const char* name, double value);
  void attribute(const std::string& object, const char* name, std::span<const std::string> values);

  /// Writes what is left and closes the file, reads it again and compares it with what was written. Calls `give_sign`
  /// (parallel::lead) in between. Nothing may be called after it.
  void close(const parallel::GivesSigns& give_sign);

 private:
  void create(const std::string& path, hid_t type, std::uint64_t size, const Label& label, Layout layout);
  void write(const std::string& path, hid_t type, std::uint64_t first, std::uint64_t count, const void* values);
  void scalar(const std::string& path, hid_t type, const void* value, const Label& label);
  /// An object that stays open, because the next call is likely to be about it.
  struct Opened {
    std::string path;
    Handle handle;
  };
  /// What refers to a scale: the datasets, as the convention of dimension scales lists them.
  struct ScaleUse {
    hobj_ref_t dataset;
    int dimension;
  };
  struct Scale {
    hobj_ref_t place;
    std::vector<ScaleUse> uses;
  };
  hid_t open(const std::string& object);
  hobj_ref_t place_of(const std::string& object);
  void list_uses_of_scales();
  Handle make_creation(hsize_t rows, bool is_text, Layout layout, const std::string& path) const;
  void label(const std::string& path, const Label& label);
  void write_attribute(const std::string& object, const char* name, hid_t type, const Handle& space, const void* value);
  /// Throws for a negative result of the HDF5 library, and after a failure that nobody has seen.
  template <class Result>
  Result checked(Result result, std::string_view doing) const {
    if (result < 0 || failure_) fail(doing);
    return result;
  }
  [[noreturn]] void fail(std::string_view doing) const;
  /// HDF5 calls it for each of its functions that fails.
  static herr_t note_failure(hid_t stack, void* file);

  std::filesystem::path path_, target_;
  std::optional<Reason> failure_;  // the first one
  Written written_;
  Handle string_type_;
  Handle group_creation_;
  Handle small_creation_;  ///< properties of a dataset that is kept among the metadata
  Handle transfer_;
  Handle file_;
  Opened object_;
  std::map<std::string, Scale> scales_;
  H5E_auto2_t old_report_ = nullptr;
  void* old_report_data_ = nullptr;
};

template <>
inline hid_t memory_type<std::int8_t>() {
  return H5T_NATIVE_INT8;
}
template <>
inline hid_t memory_type<std::int32_t>() {
  return H5T_NATIVE_INT32;
}
template <>
inline hid_t memory_type<std::int64_t>() {
  return H5T_NATIVE_INT64;
}
template <>
inline hid_t memory_type<std::uint32_t>() {
  return H5T_NATIVE_UINT32;
}
template <>
inline hid_t memory_type<std::uint64_t>() {
  return H5T_NATIVE_UINT64;
}
template <>
inline hid_t memory_type<double>() {
  return H5T_NATIVE_DOUBLE;
}

}  // namespace orrery::results
