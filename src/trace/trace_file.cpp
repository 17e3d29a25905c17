#include "trace_file.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <system_error>
#include <vector>

namespace orrery::trace {
namespace {

constexpr std::size_t largest_beginning = std::size_t{1} << 18;
constexpr std::size_t packed_chunk = std::size_t{1} << 16;
constexpr int gzip_only = 15 + 16;  // zlib: largest window, gzip header required

constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";  // some editors write it before a text in UTF-8

bool has_byte_order_mark(std::string_view beginning) {
  if (!beginning.starts_with(byte_order_mark) || beginning.size() == byte_order_mark.size()) return false;
  const char next = beginning[byte_order_mark.size()];
  return (next >= ' ' && next <= '~') || next == '\n' || next == '\r' || next == '\t';
}

}  // namespace

struct TraceFile::Inflater {
  Inflater() : packed(packed_chunk) {
    const int result = inflateInit2(&stream, gzip_only);
    if (result == Z_MEM_ERROR) throw std::bad_alloc();
    ensure(result == Z_OK, "zlib cannot be set up");
  }
  ~Inflater() { inflateEnd(&stream); }
  Inflater(Inflater&&) = delete;

  z_stream stream{};
  std::vector<std::uint8_t> packed;
  std::uint64_t unpacked = 0;  ///< bytes unpacked so far
  bool inside = true;          ///< the reading is within a gzip member, where the data must not end
};

TraceFile::TraceFile(const std::filesystem::path& path, Source source, WhileReading while_reading)
    : path_(path), source_(std::move(source)), while_reading_(std::move(while_reading)) {
  open();
  // The first bytes are read once and kept; if they are packed, they are read again through zlib.
  std::size_t room = size_ == 0 ? largest_beginning : std::min<std::uint64_t>(size_, largest_beginning);
  first_bytes_ = std::make_unique_for_overwrite<std::uint8_t[]>(room);
  std::size_t got = read_raw({first_bytes_.get(), room});
  if (got >= 2 && first_bytes_[0] == 0x1f && first_bytes_[1] == 0x8b) {
    if (std::fseek(file_.get(), 0, SEEK_SET) != 0) fail("the file cannot be read from its start again");
    raw_bytes_ = checksum_ = 0;
    inflater_ = std::make_unique<Inflater>();
    room = largest_beginning;
    first_bytes_ = std::make_unique_for_overwrite<std::uint8_t[]>(room);
    got = read_on({first_bytes_.get(), room});
  }
  beginning_ = {reinterpret_cast<const char*>(first_bytes_.get()), got};
  if (has_byte_order_mark(beginning_)) beginning_.remove_prefix(byte_order_mark.size());
}

TraceFile::~TraceFile() = default;

void TraceFile::open() {
  std::error_code error;
  const auto status = std::filesystem::status(path_, error);
  if (status.type() == std::filesystem::file_type::not_found) fail("there is no such file", "an execution trace");
  if (error) fail(fmt::format("the file cannot be read ({})", error.message()));
  if (std::filesystem::is_directory(status)) fail("this is a directory", "an execution trace");
  if (!std::filesystem::is_regular_file(status)) fail("this is not a regular file", "an execution trace");
  file_.reset(std::fopen(path_.c_str(), "rb"));
  if (!file_) fail(fmt::format("the file cannot be opened ({})", std::generic_category().message(errno)));
  size_ = std::filesystem::file_size(path_, error);
  if (error) size_ = 0;
  std::setvbuf(file_.get(), nullptr, _IONBF, 0);
}

std::size_t TraceFile::read(std::span<std::uint8_t> to) {
  const std::size_t ahead = std::min(to.size(), beginning_.size() - given_);
  std::ranges::copy(beginning_.substr(given_, ahead), to.begin());
  given_ += ahead;
  return ahead + read_on(to.subspan(ahead));
}

std::size_t TraceFile::read_on(std::span<std::uint8_t> to) {
  std::size_t done = 0;
  while (done < to.size()) {
    const auto rest = to.subspan(done);
    const std::size_t got = inflater_ ? inflate_some(rest) : read_raw(rest);
    if (got == 0) break;
    done += got;
  }
  return done;
}

std::size_t TraceFile::read_raw(std::span<std::uint8_t> to) {
  const std::size_t got = std::fread(to.data(), 1, to.size(), file_.get());
  if (got < to.size() && std::ferror(file_.get()) != 0)
    fail(fmt::format("the file cannot be read ({})", std::generic_category().message(errno)));
  raw_bytes_ += got;
  checksum_ = static_cast<std::uint32_t>(crc32_z(checksum_, to.data(), got));
  if (while_reading_ && got > 0) while_reading_(raw_bytes_, size_);
  return got;
}

std::size_t TraceFile::inflate_some(std::span<std::uint8_t> to) {
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

void TraceFile::fail(std::string_view found, std::string_view expected) const {
  Place place = source_.place();
  if (inflater_) place.byte_offset = inflater_->unpacked;
  throw Error(ErrorCode::bad_input, place, found, expected);
}

}  // namespace orrery::trace
