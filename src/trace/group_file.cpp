#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "orrery/base/text.hpp"
#include "orrery/trace/store.hpp"
#include "source.hpp"

namespace orrery::trace {
namespace {

constexpr std::string_view wanted = "{\"NAME\": [NPU, ...], ...}";

/// Gives the JSON parser the text of a file character by character and records how far it has read.
class Cursor {
 public:
  using iterator_category = std::forward_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Cursor() = default;
  Cursor(const char* at, const char** reached) : at_(at), reached_(reached) {}

  reference operator*() const { return *at_; }
  Cursor& operator++() {
    *reached_ = ++at_;
    return *this;
  }
  Cursor operator++(int) {
    const Cursor before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const Cursor& a, const Cursor& b) { return a.at_ == b.at_; }

 private:
  const char* at_ = nullptr;
  const char** reached_ = nullptr;
};

/// Takes the events of the JSON parser. It accepts one object of lists of NPUs and nothing else.
class GroupFileReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  GroupFileReader(const std::string& file, std::string_view text, std::uint32_t num_npus, Faults& faults)
      : file_(file),
        text_(text),
        reached_(text.data()),
        counted_(text.data()),
        num_npus_(num_npus),
        faults_(faults),
        seen_(num_npus, false) {}

  NamedGroups read() {
    const Cursor begin(text_.data(), &reached_);
    const Cursor end(text_.data() + text_.size(), &reached_);
    nlohmann::json::sax_parse(begin, end, this);
    return std::move(groups_);
  }

  bool null() override { fail_form("null"); }
  bool boolean(bool) override { fail_form("a truth value"); }
  bool number_float(double, const std::string& text) override { fail_form(text); }
  bool string(std::string& text) override { fail_form(fmt::format("\"{}\"", shown(text))); }
  bool binary(binary_t&) override { fail_form("binary data"); }
  bool number_integer(std::int64_t value) override {
    if (!in_list_) fail_form(fmt::format("{}", value));
    return note(fmt::format("member {} is out of range", value), range());
  }

  bool number_unsigned(std::uint64_t value) override {
    if (!in_list_) fail_form(fmt::format("{}", value));
    if (value >= num_npus_) return note(fmt::format("member {} is out of range", value), range());
    if (seen_[value]) return note(fmt::format("member {} is listed twice", value), "every member once");
    seen_[value] = true;
    members_.emplace_back(static_cast<std::uint32_t>(value));
    return true;
  }

  bool start_object(std::size_t) override {
    if (in_object_) fail_form("an object");
    in_object_ = true;
    return true;
  }

  bool key(std::string& name) override {
    name_ = name;
    if (name.empty()) return note("the name of a process group is empty", "a name: \"\" is all NPUs already");
    if (groups_.contains(name)) return note("the process group is defined twice", "each name once");
    return true;
  }

  bool start_array(std::size_t) override {
    if (!in_object_ || in_list_) fail_form("a list");
    in_list_ = true;
    return true;
  }

  bool end_array() override {
    if (members_.empty()) note("the process group is empty", "one member or more");
    for (const NpuId member : members_) seen_[member.index()] = false;
    groups_.emplace(name_, std::move(members_));
    members_.clear();
    name_.clear();
    in_list_ = false;
    return true;
  }

  bool end_object() override { return true; }

  bool parse_error(std::size_t, const std::string& token, const nlohmann::json::exception&) override {
    if (reached_ == text_.data() + text_.size() &&
        token.find_first_not_of(" \t\r\n<>U+0123456789ABCDEF") == std::string::npos)
      fail("the file ends early", wanted);
    fail(fmt::format("no JSON at '{}'", shown(token)), wanted);
  }

 private:
  std::string range() const { return fmt::format("0 to {}", num_npus_ - 1); }
  [[noreturn]] void fail_form(std::string_view found) { fail(fmt::format("{} is not expected here", found), wanted); }
  [[noreturn]] void fail(std::string_view found, std::string_view expected) { throw error(found, expected); }
  /// Adds a fault; the reading goes on.
  bool note(std::string_view found, std::string_view expected) {
    faults_.add(error(found, expected));
    return true;
  }
  /// The parser reads one character ahead; that character does not count for the line. Lines are counted on from the
  /// fault before.
  Error error(std::string_view found, std::string_view expected) {
    const char* const last = reached_ == text_.data() ? reached_ : reached_ - 1;
    if (last > counted_) line_ += static_cast<std::uint64_t>(std::count(std::exchange(counted_, last), last, '\n'));
    return {ErrorCode::bad_input, {.file = file_, .line = line_, .key = shown(name_)}, found, expected};
  }

  const std::string& file_;
  std::string_view text_;
  const char* reached_;
  const char* counted_;  // up to here, lines are in line_
  std::uint64_t line_ = 1;
  std::uint32_t num_npus_;
  Faults& faults_;
  NamedGroups groups_;
  std::string name_;
  std::vector<NpuId> members_;
  std::vector<bool> seen_;  // [num_npus]: members of the list that is read
  bool in_object_ = false;
  bool in_list_ = false;
};

}  // namespace

NamedGroups parse_groups(std::string_view text, const std::string& file, std::uint32_t num_npus, Faults& faults) {
  NamedGroups groups;
  faults.attempt([&] { groups = GroupFileReader(file, text, num_npus, faults).read(); });
  return groups;
}

NamedGroups read_group_file(const std::filesystem::path& path, std::uint32_t num_npus) {
  Faults faults;
  auto groups = parse_groups(read_text(path), path.string(), num_npus, faults);
  faults.raise();
  return groups;
}

}  // namespace orrery::trace
