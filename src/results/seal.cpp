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
  std::vector<char> buffer(std::size_t{1} << 20U);
  uLong checksum = crc32(0, nullptr, 0);
  while (size > 0) {
    const auto part = std::min<std::uint64_t>(size, buffer.size());
    if (!in.read(buffer.data(), static_cast<std::streamsize>(part))) return {};
    checksum = crc32(checksum, reinterpret_cast<const Bytef*>(buffer.data()), static_cast<uInt>(part));
    size -= part;
  }
  return checksum;
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
  if (!file.read(found.data(), found.size()) || std::string_view(found.data(), mark.size()) != mark) return false;
  file.seekg(0);
  const auto checksum = checksum_of(file, size - seal_size);
  return !checksum || found != seal_of(size - seal_size, *checksum);
}

}  // namespace orrery::results
