#include "byte_reader.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <array>
#include <cerrno>
#include <new>
#include <system_error>

namespace orrery::trace {
namespace {

constexpr std::size_t packed_chunk = std::size_t{1} << 16;
constexpr int gzip_only = 15 + 16;  // zlib: largest window, gzip header required

}  // namespace

struct ByteReader::Inflater {
  Inflater() : packed(packed_chunk) {
    const int result = inflateInit2(&stream, gzip_only);
    if (result == Z_MEM_ERROR) throw std::bad_alloc();
    ensure(result == Z_OK, "zlib cannot be set up");
  }
  ~Inflater() { inflateEnd(&stream); }
  Inflater(Inflater&&) = delete;

  z_stream stream{};
  std::vector<std::uint8_t> packed;
  std::uint64_t unpacked = 0;  ///< bytes given so far
  bool inside = true;          ///< within a member: the data may not end here
};

ByteReader::ByteReader(const std::filesystem::path& path, Place place) : place_(std::move(place)) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) fail("there is no such file", "a Chakra execution trace");
  if (error) fail(fmt::format("the file cannot be read ({})", error.message()));
  if (std::filesystem::is_directory(status)) fail("this is a directory", "a Chakra execution trace");
  if (!std::filesystem::is_regular_file(status)) fail("this is not a regular file", "a Chakra execution trace");
  file_.reset(std::fopen(path.c_str(), "rb"));
  if (!file_) fail(fmt::format("the file cannot be opened ({})", std::generic_category().message(errno)));
  size_ = std::filesystem::file_size(path, error);
  if (error) size_ = 0;
  std::setvbuf(file_.get(), nullptr, _IONBF, 0);
  std::array<std::uint8_t, 2> magic{};
  if (read_raw(magic) == 2 && magic[0] == 0x1f && magic[1] == 0x8b) inflater_ = std::make_unique<Inflater>();
  rewind();
}

ByteReader::~ByteReader() = default;

void ByteReader::rewind() {
  if (std::fseek(file_.get(), 0, SEEK_SET) != 0) fail("the file cannot be read from its start again");
  if (inflater_) inflater_ = std::make_unique<Inflater>();
}

std::size_t ByteReader::read(std::span<std::uint8_t> to) {
  std::size_t done = 0;
  while (done < to.size()) {
    const auto rest = to.subspan(done);
    const std::size_t got = inflater_ ? inflate_some(rest) : read_raw(rest);
    if (got == 0) break;
    done += got;
  }
  return done;
}

std::size_t ByteReader::read_raw(std::span<std::uint8_t> to) {
  const std::size_t got = std::fread(to.data(), 1, to.size(), file_.get());
  if (got < to.size() && std::ferror(file_.get()) != 0)
    fail(fmt::format("the file cannot be read ({})", std::generic_category().message(errno)));
  return got;
}

std::size_t ByteReader::inflate_some(std::span<std::uint8_t> to) {
  z_stream& stream = inflater_->stream;
  stream.next_out = to.data();
  stream.avail_out = static_cast<uInt>(std::min<std::size_t>(to.size(), std::size_t{1} << 30));
  const uInt wanted = stream.avail_out;
  while (stream.avail_out == wanted) {
    if (stream.avail_in == 0) {
      stream.next_in = inflater_->packed.data();
      stream.avail_in = static_cast<uInt>(read_raw(inflater_->packed));
      if (stream.avail_in == 0) {
        if (inflater_->inside) fail("the gzip data is truncated", "the end of a gzip member");
        return 0;
      }
      if (!inflater_->inside) {  // another member follows
        inflateReset(&stream);
        inflater_->inside = true;
      }
    }
    const int result = inflate(&stream, Z_NO_FLUSH);
    if (result == Z_STREAM_END) {
      inflater_->inside = false;
      if (stream.avail_in > 0) {
        inflateReset(&stream);
        inflater_->inside = true;
      }
    } else if (result == Z_MEM_ERROR) {
      throw std::bad_alloc();
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      fail(fmt::format("the gzip data is damaged ({})", stream.msg != nullptr ? stream.msg : "unknown"));
    }
  }
  inflater_->unpacked += wanted - stream.avail_out;
  return wanted - stream.avail_out;
}

void ByteReader::fail(std::string_view found, std::string_view expected) const {
  Place place = place_;
  if (inflater_) place.byte_offset = inflater_->unpacked;
  throw Error(ErrorCode::bad_input, place, found, expected);
}

}  // namespace orrery::trace
