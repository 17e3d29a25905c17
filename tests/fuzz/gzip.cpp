// Packed files (gzip): any file is unpacked or is refused. The mutations are those of the packed bytes and of what they
// hold, which is packed anew.
#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "fuzz_input.hpp"
#include "orrery/trace/store.hpp"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {
using namespace orrery;

constexpr int gzip_window = 15 + 16;

std::vector<std::uint8_t> pack(const std::vector<std::uint8_t>& bytes) {
  z_stream stream{};
  if (deflateInit2(&stream, 6, Z_DEFLATED, gzip_window, 8, Z_DEFAULT_STRATEGY) != Z_OK) fuzz::fail("zlib");
  std::vector<std::uint8_t> packed(deflateBound(&stream, bytes.size()) + 32);
  stream.next_in = const_cast<Bytef*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = packed.data();
  stream.avail_out = static_cast<uInt>(packed.size());
  (void)deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  (void)deflateEnd(&stream);
  return packed;
}

/// Returns at most so many bytes that the file holds.
std::vector<std::uint8_t> unpack(const std::uint8_t* data, std::size_t size, std::size_t most) {
  std::vector<std::uint8_t> bytes(most);
  z_stream stream{};
  if (inflateInit2(&stream, gzip_window) != Z_OK) fuzz::fail("zlib");
  stream.next_in = const_cast<Bytef*>(data);
  stream.avail_in = static_cast<uInt>(size);
  stream.next_out = bytes.data();
  stream.avail_out = static_cast<uInt>(bytes.size());
  (void)inflate(&stream, Z_FINISH);
  bytes.resize(stream.total_out);
  (void)inflateEnd(&stream);
  return bytes;
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  if (seed % 4 == 0) return LLVMFuzzerMutate(data, size, most);
  std::vector<std::uint8_t> bytes = unpack(data, size, most);
  const std::size_t length = bytes.size();
  bytes.resize(std::max<std::size_t>(most, 1));
  bytes.resize(LLVMFuzzerMutate(bytes.data(), length, bytes.size()));
  const std::vector<std::uint8_t> packed = pack(bytes);
  if (packed.size() > most) return LLVMFuzzerMutate(data, size, most);
  std::copy(packed.begin(), packed.end(), data);
  return packed.size();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto path = fuzz::write_input(fuzz::text_of(data, size), "trace.0.et.gz");
  (void)fuzz::accepts([&] { (void)trace::format_of(path); });
  (void)fuzz::accepts([&] { (void)trace::read_unpacked(path); });
  (void)fuzz::accepts([&] { (void)trace::describe_other(path); });
  (void)fuzz::accepts([&] { (void)trace::describe_file(path, {}, true); });
  (void)fuzz::accepts([&] {
    trace::Store store({.num_npus = 8}, {});
    (void)store.read(path, NpuId(0));
  });
  return 0;
}
