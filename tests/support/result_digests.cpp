#include "result_digests.hpp"

#include <fmt/format.h>
#include <hdf5.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "orrery/base/mix_all.hpp"

namespace orrery::test {
namespace {

/// Owns one HDF5 identifier.
class Owned {
 public:
  Owned(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {
    if (id_ < 0) throw std::runtime_error("HDF5 cannot read a part of the file");
  }
  ~Owned() { close_(id_); }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  operator hid_t() const { return id_; }  // NOLINT(google-explicit-constructor): it is one

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

/// Appends what describes the values of a dataset or an attribute, and the values, which `read` reads.
template <class Read>
void append_values(std::string& bytes, hid_t type, hid_t space, Read read) {
  const auto count = static_cast<std::size_t>(H5Sget_simple_extent_npoints(space));
  std::vector<hsize_t> shape(static_cast<std::size_t>(H5Sget_simple_extent_ndims(space)));
  H5Sget_simple_extent_dims(space, shape.data(), nullptr);
  const std::size_t size = H5Tget_size(type);
  bytes += fmt::format("class {} size {} shape", static_cast<int>(H5Tget_class(type)), size);
  for (const hsize_t extent : shape) bytes += fmt::format(" {}", extent);
  bytes += '\n';
  if (count == 0) return;
  std::vector<char> values(count * size);
  if (read(values.data()) < 0) throw std::runtime_error("HDF5 cannot read values");
  if (H5Tis_variable_str(type) <= 0) {
    bytes.append(values.data(), values.size());
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const char* text = nullptr;
    std::memcpy(&text, values.data() + i * size, sizeof text);
    if (text != nullptr) bytes += text;
    bytes += '\0';
  }
  H5Dvlen_reclaim(type, space, H5P_DEFAULT, values.data());
}

bool holds_references(hid_t type) { return H5Tdetect_class(type, H5T_REFERENCE) > 0; }

herr_t append_attribute(hid_t object, const char* name, const H5A_info_t*, void* to) {
  const Owned attribute(H5Aopen(object, name, H5P_DEFAULT), H5Aclose);
  const Owned type(H5Aget_type(attribute), H5Tclose), space(H5Aget_space(attribute), H5Sclose);
  if (holds_references(type)) return 0;
  std::string& bytes = *static_cast<std::string*>(to);
  bytes += fmt::format("attribute {} ", name);
  append_values(bytes, type, space, [&](char* values) { return H5Aread(attribute, type, values); });
  return 0;
}

herr_t add_digest(hid_t file, const char* name, const H5O_info_t* info, void* to) {
  const std::string_view path(name);
  if (path == "." || path == "kernel" || path.starts_with("kernel/")) return 0;
  const Owned object(H5Oopen(file, name, H5P_DEFAULT), H5Oclose);
  std::string bytes;
  H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, nullptr, append_attribute, &bytes);
  if (info->type == H5O_TYPE_DATASET) {
    const Owned type(H5Dget_type(object), H5Tclose), space(H5Dget_space(object), H5Sclose);
    if (!holds_references(type))
      append_values(bytes, type, space,
                    [&](char* values) { return H5Dread(object, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values); });
  }
  auto& digests = *static_cast<std::map<std::string, std::string>*>(to);
  digests[fmt::format("/{}", name)] = fmt::format("{:016x}", digest_of(bytes));
  return 0;
}

}  // namespace

std::map<std::string, std::string> result_digests(const std::filesystem::path& path) {
  const Owned file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
  std::map<std::string, std::string> digests;
  if (H5Ovisit(file, H5_INDEX_NAME, H5_ITER_INC, add_digest, &digests) < 0)
    throw std::runtime_error("HDF5 cannot visit " + path.string());
  return digests;
}

}  // namespace orrery::test
