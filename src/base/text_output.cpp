#include "orrery/base/text_output.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "orrery/base/error.hpp"

namespace orrery {
namespace {

constexpr std::size_t buffer_bytes = 1 << 20;

}  // namespace

/// Owns a stream of zlib, which writes plain text too (mode "T").
struct TextOutput::Stream {
  explicit Stream(gzFile opened) : file(opened) {}
  ~Stream() {
    if (file != nullptr) gzclose(file);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  gzFile file;
};

TextOutput::TextOutput(const std::filesystem::path& path) : path_(path), partial_(path) {
  const int descriptor = ::open(partial_.partial().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0) fail("creating a file beside it");
  gzFile file = gzdopen(descriptor, path.extension() == ".gz" ? "wb6" : "wbT");
  if (file == nullptr) {
    ::close(descriptor);
    throw std::bad_alloc();
  }
  stream_ = std::make_unique<Stream>(file);
  buffer_.reserve(buffer_bytes);
}

TextOutput::~TextOutput() = default;

void TextOutput::fail(std::string_view doing) const {
  const int code = errno;
  throw Error(ErrorCode::output, {.file = path_.string()},
              fmt::format("cannot be written ({}): {}", doing, std::strerror(code)), {},
              "Free space there or give the name of another file.");
}

void TextOutput::write(std::string_view text) {
  buffer_ += text;
  if (buffer_.size() >= buffer_bytes) flush();
}

void TextOutput::flush() {
  if (!buffer_.empty() && gzwrite(stream_->file, buffer_.data(), static_cast<unsigned>(buffer_.size())) == 0)
    fail("writing it");
  buffer_.clear();
}

void TextOutput::commit() {
  flush();
  if (gzclose(std::exchange(stream_->file, nullptr)) != Z_OK) fail("closing it");
  partial_.commit_durably();
}

}  // namespace orrery
