#include <fmt/format.h>

#include <cctype>
#include <nlohmann/json.hpp>

#include "value.hpp"

namespace orrery::config {
namespace {

/// Reads a text and counts lines, up to the last character that is no white space: the parser looks one ahead.
struct CountingIterator {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  const char* position = nullptr;
  std::uint64_t* line_reached = nullptr;
  std::uint64_t* line_of_token = nullptr;

  reference operator*() const { return *position; }
  CountingIterator& operator++() {
    if (*position == '\n') ++*line_reached;
    if (std::isspace(static_cast<unsigned char>(*position)) == 0) *line_of_token = *line_reached;
    ++position;
    return *this;
  }
  CountingIterator operator++(int) {
    auto old = *this;
    ++*this;
    return old;
  }
  friend bool operator==(const CountingIterator& a, const CountingIterator& b) { return a.position == b.position; }
};

/// Builds values from nlohmann's events; its own tree keeps the last of duplicate keys and no lines.
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  Builder(std::shared_ptr<const Origin> origin, const std::uint64_t& line, Faults& faults)
      : origin_(std::move(origin)), line_(line), faults_(faults) {}

  Value take() { return std::move(root_); }

  bool null() override { return place(Value::Kind::null, "", false); }
  bool boolean(bool value) override { return place(Value::Kind::scalar, value ? "true" : "false", false); }
  bool number_integer(number_integer_t value) override {
    return place(Value::Kind::scalar, fmt::to_string(value), false);
  }
  bool number_unsigned(number_unsigned_t value) override {
    return place(Value::Kind::scalar, fmt::to_string(value), false);
  }
  bool number_float(number_float_t, const string_t& text) override { return place(Value::Kind::scalar, text, false); }
  bool string(string_t& text) override { return place(Value::Kind::scalar, text, true); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Value::Kind::mapping); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(Value::Kind::sequence); }
  bool end_array() override { return close(); }
  bool key(string_t& text) override {
    key_ = text;
    key_line_ = line_;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) override {
    std::string message = error.what();
    // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error ...": the line is said already.
    if (const auto start = message.find("syntax error"); start != std::string::npos) message.erase(0, start);
    throw Error(ErrorCode::bad_input, {.file = origin_->name, .line = line_},
                fmt::format("not well-formed JSON: {}", cited(message)), "JSON");
  }

 private:
  bool place(Value::Kind kind, std::string text, bool quoted) {
    Value value;
    value.kind = kind;
    value.text = std::move(text);
    value.quoted = quoted;
    value.line = line_;
    value.origin = origin_;
    add(std::move(value));
    return true;
  }

  bool open(Value::Kind kind) {
    if (stack_.size() >= std::size_t{deepest_nesting})
      throw Error(ErrorCode::bad_input, {.file = origin_->name, .line = line_}, "nested too deeply",
                  "a plain configuration");
    Value value;
    value.kind = kind;
    value.line = line_;
    value.origin = origin_;
    stack_.push_back({std::move(value), key_, key_line_, {}});
    return true;
  }

  bool close() {
    auto done = std::move(stack_.back());
    stack_.pop_back();
    key_ = std::move(done.key);
    key_line_ = done.key_line;
    add(std::move(done.value));
    return true;
  }

  void add(Value value) {
    if (stack_.empty()) {
      root_ = std::move(value);
      return;
    }
    auto& [parent, key, key_line, index] = stack_.back();
    if (parent.kind == Value::Kind::sequence) {
      parent.items.push_back(std::move(value));
      return;
    }
    parent.add({key_, key_line_, std::move(value)}, index, faults_);
  }

  /// A list or a mapping that is not closed yet.
  struct Open {
    Value value;
    std::string key;  ///< under which it stands
    std::uint64_t key_line;
    Value::KeyIndex index;
  };

  std::shared_ptr<const Origin> origin_;
  const std::uint64_t& line_;
  Faults& faults_;
  Value root_;
  std::vector<Open> stack_;
  std::string key_;
  std::uint64_t key_line_ = 1;
};

}  // namespace

Value parse_json(std::string_view text, const std::shared_ptr<const Origin>& origin, Faults& faults) {
  std::uint64_t line_reached = 1, line_of_token = 1;
  Builder builder(origin, line_of_token, faults);
  const CountingIterator first{text.data(), &line_reached, &line_of_token};
  const CountingIterator last{text.data() + text.size(), &line_reached, &line_of_token};
  nlohmann::json::sax_parse(first, last, &builder);
  return builder.take();
}

}  // namespace orrery::config
