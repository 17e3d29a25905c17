// Checkpoints: any file is a whole checkpoint or is refused. An input that begins as a checkpoint does is the file
// itself. Any other input is the blocks of one, and gets the checksums that fit: a byte for the kind of a block, a byte
// for its size, and so many bytes of contents.
#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>

#include "fuzz_input.hpp"
#include "orrery/checkpoint/file.hpp"
#include "orrery/parallel/environment.hpp"

namespace {
using namespace orrery;

constexpr std::string_view checkpoint_mark = "orrery checkpoint 2\n";

parallel::Communicator& world() {
  static parallel::Environment environment;
  return environment.world();
}

std::string with_checksums(std::string_view rest) {
  std::string file(checkpoint_mark);
  while (rest.size() >= 2) {
    const std::uint32_t kind = static_cast<unsigned char>(rest[0]) % 5U;
    const std::uint64_t size = static_cast<unsigned char>(rest[1]);
    rest.remove_prefix(2);
    const std::string_view contents = kind == 3 ? "" : rest.substr(0, size);
    rest.remove_prefix(contents.size());
    char header[12];
    const std::uint64_t stated = kind == 3 ? size : contents.size();
    std::memcpy(header, &kind, sizeof kind);
    std::memcpy(header + sizeof kind, &stated, sizeof stated);
    uLong sum = crc32_z(0, reinterpret_cast<const Bytef*>(header), sizeof header);
    if (!contents.empty()) sum = crc32_z(sum, reinterpret_cast<const Bytef*>(contents.data()), contents.size());
    const auto checksum = static_cast<std::uint32_t>(sum);
    file.append(header, sizeof kind);
    file.append(reinterpret_cast<const char*>(&checksum), sizeof checksum);
    file.append(header + sizeof kind, sizeof stated);
    file.append(contents);
  }
  return file;
}

bool is_checkpoint(const std::filesystem::path& path) {
  return fuzz::accepts([&] {
    const checkpoint::Found found = checkpoint::find(path);
    (void)checkpoint::read(
        found.file, 0, [](LpId) { return Rank(0); }, world());
  });
}

/// A head and the end are a checkpoint: the target knows the format that is read.
bool knows_format() {
  constexpr std::string_view least("\x01\x00\x03\x01", 4);
  if (!is_checkpoint(fuzz::write_input(with_checksums(least), "least.chk")))
    fuzz::fail("checkpoints have another format than this target writes");
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const bool knows = knows_format();
  (void)knows;
  const std::string_view bytes = fuzz::text_of(data, size);
  const auto path = bytes.starts_with(checkpoint_mark) ? fuzz::write_input(bytes, "run.chk")
                                                       : fuzz::write_input(with_checksums(bytes), "run.chk");
  (void)is_checkpoint(path);
  return 0;
}
