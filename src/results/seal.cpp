#include "seal.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <fstream>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <vector>

namespace orrery::results {
namespace {

constexpr std::string_view mark = "ORRERYh5";
constexpr std::size_t seal_size = 24;

using Seal = std::array<char, seal_size>;

Seal seal_of(std::uint64_t size, std::uint64_t checksum) {
  Seal seal;
  std::ranges::copy(mark, seal.begin());
  for (std::size_t i = 0; i < 8; ++i) {
    seal[8 + i] = static_cast<char>(size >> 8 * i);
    seal[16 + i] = static_cast<char>(checksum >> 8 * i);
  }
  return seal;
}

/// Returns the CRC-32 of the next bytes; nothing if there are fewer.
std::optional<std::uint64_t> checksum_of(std::istream& in, std::uint64_t size) {
  std::vector<char> buffer(std::min<std::uint64_t>(size, std::uint64_t{1} << 20U));
  uLong checksum = crc32(0, nullptr, 0);
  while (size > 0) {
    const auto part = std::min<std::uint64_t>(size, buffer.size());
    if (!in.read(buffer.data(), static_cast<std::streamsize>(part))) return {};
    checksum = crc32(checksum, reinterpret_cast<const Bytef*>(buffer.data()), static_cast<uInt>(part));
    size -= part;
  }
  return checksum;
}

/// Returns where the superblock says that the contents of an HDF5 file end; nothing for another kind of superblock.
std::optional<std::uint64_t> end_of_contents(std::istream& in) {
  constexpr std::string_view signature("\x89HDF\r\n\x1a\n", 8);
  constexpr std::size_t size_of_superblock = 52;
  std::array<char, size_of_superblock> begin{};
  in.seekg(0);
  if (!in.read(begin.data(), begin.size()) || std::string_view(begin.data(), signature.size()) != signature) return {};
  // Where the size of an address and the address of the end are, by the version of the superblock.
  struct Places {
    std::size_t size, end;
  };
  constexpr std::array<Places, 4> places = {{{13, 40}, {13, 44}, {9, 28}, {9, 28}}};
  const auto version = static_cast<unsigned char>(begin[signature.size()]);
  if (version >= places.size() || begin[places[version].size] != 8) return {};
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < 8; ++i)
    end |= std::uint64_t{static_cast<unsigned char>(begin[places[version].end + i])} << 8 * i;
  return end;
}

}  // namespace

std::error_code seal(const std::filesystem::path& path) {
  errno = 0;
  std::error_code failure;
  const std::uint64_t size = std::filesystem::file_size(path, failure);
  if (failure) return failure;
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  if (const auto checksum = checksum_of(file, size)) {
    const Seal seal = seal_of(size, *checksum);
    file.seekp(0, std::ios::end);
    file.write(seal.data(), seal.size());
    file.close();
    if (file) return {};
  }
  return errno != 0 ? std::error_code(errno, std::generic_category()) : std::make_error_code(std::errc::io_error);
}

bool has_broken_seal(const std::filesystem::path& path) {
  std::error_code failure;
  const std::uint64_t size = std::filesystem::file_size(path, failure);
  std::ifstream file(path, std::ios::binary);
  if (failure || size < seal_size) return false;
  Seal found;
  file.seekg(static_cast<std::streamoff>(size - seal_size));
  if (!file.read(found.data(), found.size())) return false;  // whoever opens the file says why
  if (std::string_view(found.data(), mark.size()) != mark) {
    const auto end = end_of_contents(file);
    return end && *end < size;  // something else is in the place of the seal
  }
  file.seekg(0);
  const auto checksum = checksum_of(file, size - seal_size);
  return !checksum || found != seal_of(size - seal_size, *checksum);
}

}  // namespace orrery::results
