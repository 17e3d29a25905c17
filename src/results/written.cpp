#include "written.hpp"

#include <cstddef>
#include <span>
#include <string_view>

#include "hdf5_file.hpp"
#include "orrery/base/mix_all.hpp"

namespace orrery::results {
namespace {

bool read_attribute(hid_t object, const std::string& name, hid_t type, void* values) {
  const Handle attribute(H5Aopen(object, name.c_str(), H5P_DEFAULT), H5Aclose);
  return attribute.id() >= 0 && H5Aread(attribute.id(), type, values) >= 0;
}

bool read_rows(hid_t dataset, hid_t transfer, hid_t type, hsize_t first, hsize_t count, void* values) {
  const Handle there(H5Dget_space(dataset), H5Sclose);
  if (there.id() < 0) return false;
  if (H5Sget_simple_extent_ndims(there.id()) == 0)
    return H5Dread(dataset, type, H5S_ALL, H5S_ALL, transfer, values) >= 0;
  const Handle here(H5Screate_simple(1, &count, nullptr), H5Sclose);
  return H5Sselect_hyperslab(there.id(), H5S_SELECT_SET, &first, nullptr, &count, nullptr) >= 0 &&
         H5Dread(dataset, type, here.id(), there.id(), transfer, values) >= 0;
}

}  // namespace

std::uint64_t Written::digest(hid_t type, std::uint64_t count, const void* values) {
  if (H5Tis_variable_str(type) <= 0)
    return mix_all(0, std::span(static_cast<const std::byte*>(values), count * H5Tget_size(type)));
  std::uint64_t result = 0;
  for (const char* text : std::span(static_cast<const char* const*>(values), count))
    result = mix_all(result, std::span<const char>(std::string_view(text == nullptr ? "" : text)));
  return result;
}

void Written::add(const std::string& object, const char* attribute, hid_t type, std::uint64_t first,
                  std::uint64_t count, const void* values) {
  pieces_.push_back({object, attribute, type, first, count, digest(type, count, values)});
}

bool Written::is_in(hid_t object, hid_t transfer, const Piece& piece) {
  std::vector<std::byte> values(piece.count * H5Tget_size(piece.type));
  if (!(piece.attribute.empty() ? read_rows(object, transfer, piece.type, piece.first, piece.count, values.data())
                                : read_attribute(object, piece.attribute, piece.type, values.data())))
    return false;
  const bool is_same = digest(piece.type, piece.count, values.data()) == piece.digest;
  if (H5Tis_variable_str(piece.type) > 0)
    for (std::uint64_t i = 0; i < piece.count; ++i) H5free_memory(reinterpret_cast<char* const*>(values.data())[i]);
  return is_same;
}

std::string Written::first_difference(const std::filesystem::path& path, const parallel::GivesSigns& give_sign) const {
  const Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
  if (file.id() < 0) return "the file";
  const Handle transfer = make_transfer();
  // Each object is opened once, by its name in a group that stays open.
  std::vector<const Piece*> pieces;
  for (const Piece& piece : pieces_) pieces.push_back(&piece);
  std::ranges::stable_sort(pieces, {}, [](const Piece* piece) -> const std::string& { return piece->object; });
  const std::string* opened = nullptr;
  std::string parent;
  Handle group, object;
  for (const Piece* piece : pieces) {
    give_sign(0);
    if (opened == nullptr || *opened != piece->object) {
      const std::size_t name = piece->object.find_last_of('/') + 1;
      if (group.id() < 0 || piece->object.compare(0, name, parent) != 0) {
        parent = piece->object.substr(0, name);
        group = Handle(H5Oopen(file.id(), parent.c_str(), H5P_DEFAULT), H5Oclose);
      }
      const char* const rest = piece->object.c_str() + name;
      object = Handle(H5Oopen(group.id(), *rest == '\0' ? "." : rest, H5P_DEFAULT), H5Oclose);
    }
    opened = &piece->object;
    if (object.id() < 0 || !is_in(object.id(), transfer.id(), *piece))
      return piece->attribute.empty() ? piece->object : piece->attribute + " of " + piece->object;
  }
  return {};
}

}  // namespace orrery::results
