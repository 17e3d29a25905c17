#include "json_elements.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "orrery/base/error.hpp"
#include "orrery/base/text.hpp"

namespace orrery::trace {
namespace {

constexpr std::size_t json_chunk = std::size_t{1} << 18;
constexpr std::size_t largest_member = std::size_t{1} << 22;
constexpr std::size_t largest_part = std::size_t{1} << 28;

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

/// Walks through the bytes of a document. Bytes stay in memory from the mark on.
class JsonReader {
 public:
  JsonReader(TraceFile& file, std::span<const std::string_view> arrays, const JsonVisitor& element,
             const JsonVisitor& member)
      : file_(file),
        arrays_(arrays),
        element_(element),
        member_(member),
        buffer_(json_chunk + simdjson::SIMDJSON_PADDING) {}

  void read() {
    if (peek() == '{')
      read_object();
    else if (peek() == '[')
      read_array({});
    else
      fail(at_, fmt::format("the document begins with {}", shown_byte()), "a JSON object or array");
    skip_space();
    if (has_more()) fail(at_, fmt::format("the document goes on after its end, with {}", shown_byte()), "its end");
  }

  /// Reads values that follow each other without commas.
  void read_all() {
    if (peek() == '[') return read();
    do {
      visit(element_, {}, largest_part);
      skip_space();
    } while (has_more());
  }

 private:
  [[noreturn]] void fail(std::size_t at, std::string_view found, std::string_view expected) const {
    Place place = file_.place();
    place.byte_offset = first_ + at;
    throw Error(ErrorCode::bad_input, place, fmt::format("this is not JSON: {}", found), expected,
                "The file may be damaged or cut off.");
  }

  std::string shown_byte() const { return fmt::format("'{}'", shown(std::string_view(&buffer_[at_], 1))); }

  /// Reads on if all bytes were used. Bytes before the mark make room.
  bool has_more() {
    if (at_ < end_) return true;
    if (is_over_) return false;
    if (mark_ > 0) {
      std::memmove(buffer_.data(), buffer_.data() + mark_, end_ - mark_);
      first_ += mark_;
      at_ -= mark_;
      end_ -= mark_;
      mark_ = 0;
    }
    if (buffer_.size() - simdjson::SIMDJSON_PADDING - end_ < json_chunk / 2) {
      if (buffer_.size() > largest_part) fail(mark_, "a value has more than 256 MiB", "less");
      buffer_.resize(2 * buffer_.size());
    }
    const std::size_t room = buffer_.size() - simdjson::SIMDJSON_PADDING - end_;
    const std::size_t got = file_.read({reinterpret_cast<std::uint8_t*>(buffer_.data()) + end_, room});
    end_ += got;
    is_over_ = got < room;
    return got > 0;
  }

  void skip_space() {
    while (has_more() && is_space(buffer_[at_])) {
      ++at_;
      if (!is_kept_) mark_ = at_;
    }
  }

  char peek() {
    skip_space();
    if (!has_more()) fail(at_, "the document is cut off here", "the rest of it");
    return buffer_[at_];
  }

  void expect(char symbol) {
    if (peek() != symbol) fail(at_, fmt::format("there is {}", shown_byte()), fmt::format("'{}'", symbol));
    ++at_;
    if (!is_kept_) mark_ = at_;
  }

  char next_in_part() {
    if (!has_more()) fail(at_, "the document is cut off here", "the rest of it");
    return buffer_[at_++];
  }

  /// Goes behind a text whose first quotation mark was passed.
  void pass_text() {
    for (;;) {
      if (!has_more()) fail(at_, "the document is cut off within a text", "its closing quotation mark");
      const auto* const from = buffer_.data() + at_;
      const auto* const quote = static_cast<const char*>(std::memchr(from, '"', end_ - at_));
      const auto* const stop = quote == nullptr ? buffer_.data() + end_ : quote;
      const auto* const escape =
          static_cast<const char*>(std::memchr(from, '\\', static_cast<std::size_t>(stop - from)));
      if (escape != nullptr) {
        at_ = static_cast<std::size_t>(escape - buffer_.data()) + 1;
        next_in_part();
      } else if (quote != nullptr) {
        at_ = static_cast<std::size_t>(quote - buffer_.data()) + 1;
        return;
      } else {
        at_ = end_;
      }
    }
  }

  /// Goes behind a value.
  void pass_value() {
    int depth = 0;
    do {
      const char c = depth == 0 ? peek() : next_in_part();
      if (depth == 0) ++at_;
      if (c == '"') {
        pass_text();
      } else if (c == '{' || c == '[') {
        ++depth;
      } else if (c == '}' || c == ']') {
        if (--depth < 0) fail(at_ - 1, fmt::format("there is '{}'", c), "a value");
      } else if (depth == 0) {
        while (has_more() && std::strchr(",]} \t\r\n", buffer_[at_]) == nullptr) ++at_;
      }
    } while (depth > 0);
  }

  /// Goes behind a value and gives it to the visitor, unless it is larger than `most`.
  void visit(const JsonVisitor& visitor, std::string_view name, std::size_t most) {
    peek();
    is_kept_ = true;
    mark_ = at_;
    pass_value();
    is_kept_ = false;
    const std::size_t size = at_ - mark_;
    if (size <= most) {
      simdjson::dom::element value;
      const auto error = parser_.parse(buffer_.data() + mark_, size, false).get(value);
      if (error != simdjson::SUCCESS) fail(mark_, simdjson::error_message(error), "a value of JSON");
      visitor(name, value, first_ + mark_);
    }
    mark_ = at_;
  }

  /// Calls `read_item` before each comma and before the end.
  template <class ReadItem>
  void read_list(char open, char close, ReadItem read_item) {
    expect(open);
    if (peek() == close) return expect(close);
    for (;;) {
      read_item();
      if (peek() == close) return expect(close);
      expect(',');
    }
  }

  void read_array(std::string_view name) {
    read_list('[', ']', [&] { visit(element_, name, largest_part); });
  }

  void read_object() {
    read_list('{', '}', [&] {
      if (peek() != '"') fail(at_, fmt::format("there is {}", shown_byte()), "the name of a member in quotation marks");
      std::string name;
      visit([&](auto, const simdjson::dom::element& key, auto) { name = std::string_view(key); }, {}, largest_member);
      expect(':');
      if (std::ranges::find(arrays_, std::string_view(name)) != arrays_.end() && peek() == '[')
        read_array(name);
      else
        visit(member_, name, largest_member);
    });
  }

  TraceFile& file_;
  std::span<const std::string_view> arrays_;
  const JsonVisitor& element_;
  const JsonVisitor& member_;
  simdjson::dom::parser parser_;
  std::vector<char> buffer_;
  std::size_t mark_ = 0;     ///< first byte that is needed
  std::size_t at_ = 0;       ///< next byte
  std::size_t end_ = 0;      ///< end of the bytes that were read
  std::uint64_t first_ = 0;  ///< position of the buffer in the file
  bool is_kept_ = false;     ///< the mark stays where it is
  bool is_over_ = false;     ///< the file has no more bytes
};

}  // namespace

void read_json(TraceFile& file, std::span<const std::string_view> arrays, const JsonVisitor& element,
               const JsonVisitor& member) {
  JsonReader(file, arrays, element, member).read();
}

void read_json_objects(TraceFile& file, const JsonVisitor& element) {
  JsonReader(file, {}, element, element).read_all();
}

}  // namespace orrery::trace
