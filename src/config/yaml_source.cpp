#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cctype>
#include <sstream>
#include <string>
#include <unordered_map>
#include <utility>

#include "value.hpp"

namespace orrery::config {
namespace {

constexpr std::size_t most_values = 1'000'000;  // aliases can stand for far more than was written

/// Turns yaml-cpp's nodes into values. yaml-cpp keeps duplicate keys silently: they are found here.
class Converter {
 public:
  Converter(std::shared_ptr<const Origin> origin, Faults& faults) : origin_(std::move(origin)), faults_(faults) {}

  Value convert(const YAML::Node& node, int depth) {
    Value value;
    value.origin = origin_;
    value.line = line(node);
    if (depth > deepest_nesting || ++count_ > most_values)
      throw Error(ErrorCode::bad_input, value.place(""), "nested too deeply, or too many values",
                  "a plain configuration");
    if (node.IsScalar()) {
      value.kind = Value::Kind::scalar;
      value.text = node.Scalar();
      value.quoted = node.Tag() == "!";
    } else if (node.IsSequence()) {
      value.kind = Value::Kind::sequence;
      for (const auto& item : node) value.items.push_back(convert(item, depth + 1));
    } else if (node.IsMap()) {
      value.kind = Value::Kind::mapping;
      Value::KeyIndex index;
      for (const auto& entry : node) insert(value, index, entry.first, entry.second, depth);
    }
    return value;
  }

 private:
  std::optional<std::uint64_t> line(const YAML::Node& node) const {
    // A --set is one line, which needs no number.
    if (origin_->name.starts_with("--set ") || node.Mark().is_null()) return {};
    return static_cast<std::uint64_t>(node.Mark().line) + 1;
  }

  void insert(Value& mapping, Value::KeyIndex& index, const YAML::Node& key, const YAML::Node& node, int depth) {
    const auto key_line = line(key);
    if (!key.IsScalar()) {
      faults_.add(Error(ErrorCode::bad_input, {.file = origin_->name, .line = key_line}, "a key that is no word",
                        "keys that are words"));
      return;
    }
    mapping.add({key.Scalar(), key_line, convert(node, depth + 1)}, index, faults_);
  }

  std::shared_ptr<const Origin> origin_;
  Faults& faults_;
  std::size_t count_ = 0;
};

/// Notes where documents start and ignores what they hold.
class DocumentStarts : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override { last_ = mark; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
  const YAML::Mark& last() const { return last_; }

 private:
  YAML::Mark last_;
};

/// YAML::Load reads the first document and drops the rest; YAML::LoadAll never ends on a stray bracket.
void refuse_second_document(const std::string& text, const Origin& origin) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  DocumentStarts starts;
  if (!parser.HandleNextDocument(starts) || !parser.HandleNextDocument(starts)) return;
  Place place{.file = origin.name};
  if (!origin.name.starts_with("--set ")) place.line = static_cast<std::uint64_t>(starts.last().line) + 1;
  throw Error(ErrorCode::bad_input, place, "the YAML document ends here but the text goes on", "one document",
              "Look for a stray bracket or comma, or a line '---'.");
}

/// A bracket of a text and the line in which it stands.
struct Bracket {
  char sign = 0;
  std::uint64_t line = 0;
};

/// Returns the innermost bracket of a text that nothing closes; none if all are closed. Brackets in quotes and in
/// comments do not count.
std::optional<Bracket> unclosed_bracket(std::string_view text) {
  std::vector<Bracket> open;
  std::uint64_t line = 1;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') ++line;
    if (quote != 0) {
      if (c == '\\' && quote == '"')
        ++i;
      else if (c == quote)
        quote = 0;
      continue;
    }
    const bool begins_word = i == 0 || std::string_view(" \t\n,[{:").find(text[i - 1]) != std::string_view::npos;
    if (c == '#' && (i == 0 || std::isspace(static_cast<unsigned char>(text[i - 1])) != 0))
      i = std::min(text.find('\n', i), text.size()) - 1;
    else if ((c == '"' || c == '\'') && begins_word)
      quote = c;
    else if (c == '{' || c == '[')
      open.push_back({c, line});
    else if ((c == '}' || c == ']') && !open.empty())
      open.pop_back();
  }
  return open.empty() ? std::nullopt : std::optional(open.back());
}

Value parse(const std::string& text, const std::shared_ptr<const Origin>& origin, Faults& faults) {
  try {
    refuse_second_document(text, *origin);
    return Converter(origin, faults).convert(YAML::Load(text), 0);
  } catch (const YAML::Exception& error) {
    Place place{.file = origin->name};
    const bool is_setting = origin->name.starts_with("--set ");
    if (const auto bracket = unclosed_bracket(text); bracket && error.msg.find("flow") != std::string::npos) {
      if (!is_setting) place.line = bracket->line;
      throw Error(ErrorCode::bad_input, place,
                  fmt::format("not well-formed YAML: the '{}' in this line is not closed", bracket->sign),
                  fmt::format("a '{}' after its last entry", bracket->sign == '{' ? '}' : ']'));
    }
    if (!error.mark.is_null() && !is_setting) place.line = static_cast<std::uint64_t>(error.mark.line) + 1;
    throw Error(ErrorCode::bad_input, place, fmt::format("not well-formed YAML: {}", cited(error.msg)), "YAML",
                "Inside { } and [ ] a text with one of , : { } [ ] stands in quotes; tabs cannot indent.");
  }
}

/// The values of small texts that were read before: a study reads the same ones for each of its trials.
class KnownTexts {
 public:
  /// Returns the values of a text; null if it was not read before.
  const Value* find(const std::string& key) const {
    const auto found = values_.find(key);
    return found == values_.end() ? nullptr : &found->second;
  }
  void add(std::string key, const Value& value) {
    constexpr std::size_t most_texts = 1000, longest = 100'000;
    if (key.size() > longest) return;
    if (values_.size() == most_texts) values_.clear();
    values_.emplace(std::move(key), value);
  }

 private:
  std::unordered_map<std::string, Value> values_;
};

}  // namespace

Value parse_yaml(std::string_view text, const std::shared_ptr<const Origin>& origin, Faults& faults) {
  thread_local KnownTexts known;
  std::string key = fmt::format("{}\n{}\n{}", origin->name, origin->folder.string(), text);
  if (const Value* const value = known.find(key)) return *value;
  Faults own;
  Value value = parse(std::string(text), origin, own);
  if (own.empty()) known.add(std::move(key), value);
  own.for_each([&](const Error& fault) { faults.add(fault); });
  return value;
}

}  // namespace orrery::config
