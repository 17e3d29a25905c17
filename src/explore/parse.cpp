#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "operators.hpp"
#include "orrery/explore/expression.hpp"
#include "quantity.hpp"

namespace orrery::explore {
namespace {

using Op = Expression::Op;

constexpr std::size_t longest_text = 1000;
constexpr int deepest_nesting = 64;

struct Function {
  Op op;
  std::size_t least, most;  ///< operands
};
constexpr std::array<Function, 7> functions{{{Op::minimum, 1, 64},
                                             {Op::maximum, 1, 64},
                                             {Op::floor, 1, 1},
                                             {Op::ceil, 1, 1},
                                             {Op::log2, 1, 1},
                                             {Op::divides, 2, 2},
                                             {Op::power_of_two, 1, 1}}};

std::string_view name_of(Op op) { return operator_names[static_cast<std::size_t>(op)]; }
bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

}  // namespace

/// Reads an expression from left to right: each function reads what binds at least as tightly as its name says, and
/// returns the node that stands for it.
class Parser {
 public:
  Parser(std::string_view text, Expression& result) : text_(text), result_(result) {}

  void parse() {
    if (text_.size() > longest_text) fail(fmt::format("{} characters", text_.size()), "at most 1000");
    disjunction();
    skip_spaces();
    if (at_ < text_.size()) fail(fmt::format("'{}'", cited(text_.substr(at_), 20)), "an operator, or the end");
  }

 private:
  using Index = std::size_t;

  [[noreturn]] void fail(const std::string& found, std::string_view expected) const {
    throw Error(ErrorCode::bad_input, result_.place_,
                fmt::format("in '{}', at character {}: found {}", cited(text_), at_ + 1, found), expected);
  }
  void skip_spaces() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  std::string_view word_here() const {
    std::size_t end = at_;
    while (end < text_.size() && (is_letter(text_[end]) || is_digit(text_[end]))) ++end;
    return text_.substr(at_, end - at_);
  }
  bool take_sign(std::string_view sign) {
    skip_spaces();
    if (!text_.substr(at_).starts_with(sign)) return false;
    at_ += sign.size();
    return true;
  }
  bool take_word(std::string_view word) {
    skip_spaces();
    if (word_here() != word) return false;
    at_ += word.size();
    return true;
  }
  Index add(Expression::Node node) {
    result_.nodes_.push_back(std::move(node));
    return result_.nodes_.size() - 1;
  }
  Index join(Op op, Index a, Index b) { return add({.op = op, .operands = {a, b}}); }

  Index disjunction() {
    Index left = conjunction();
    while (take_word("or")) left = join(Op::either, left, conjunction());
    return left;
  }
  Index conjunction() {
    Index left = negation();
    while (take_word("and")) left = join(Op::both, left, negation());
    return left;
  }
  Index negation() {
    const Nesting nesting(*this);
    if (take_word("not")) return add({.op = Op::negation, .operands = {negation()}});
    return comparison();
  }
  Index comparison() {
    const Index left = sum();
    for (const Op op : {Op::equal, Op::unequal, Op::at_most, Op::at_least, Op::less, Op::more})
      if (take_sign(name_of(op))) return join(op, left, sum());
    return left;
  }
  Index sum() {
    Index left = product();
    while (true) {
      if (take_sign("+"))
        left = join(Op::sum, left, product());
      else if (take_sign("-"))
        left = join(Op::difference, left, product());
      else
        return left;
    }
  }
  Index product() {
    Index left = signed_power();
    while (true) {
      skip_spaces();
      if (text_.substr(at_).starts_with("**")) return left;
      if (take_sign("*"))
        left = join(Op::product, left, signed_power());
      else if (take_sign("/"))
        left = join(Op::quotient, left, signed_power());
      else if (take_sign("%"))
        left = join(Op::remainder, left, signed_power());
      else
        return left;
    }
  }
  Index signed_power() {
    const Nesting nesting(*this);
    if (take_sign("-")) return add({.op = Op::minus, .operands = {signed_power()}});
    const Index base = primary();
    return take_sign("**") ? join(Op::power, base, signed_power()) : base;
  }
  Index primary() {
    const Nesting nesting(*this);
    skip_spaces();
    if (at_ == text_.size()) fail("the end", "a number, a name or '('");
    if (take_sign("(")) {
      const Index inner = disjunction();
      if (!take_sign(")")) fail(at_ < text_.size() ? fmt::format("'{}'", text_[at_]) : "the end", "')'");
      return inner;
    }
    const char c = text_[at_];
    if (c == '\'' || c == '"') return word_in_quotes(c);
    if (c == '`') return key_in_quotes();
    if (is_digit(c) || c == '.') return number();
    if (is_letter(c)) return name_or_function();
    fail(fmt::format("'{}'", cited(text_.substr(at_, 1))), "a number, a name or '('");
  }
  Index name(std::string name) {
    if (std::ranges::find(result_.names_, name) == result_.names_.end()) result_.names_.push_back(name);
    return add({.op = Op::name, .name = std::move(name)});
  }
  Index key_in_quotes() {
    const std::size_t end = text_.find('`', at_ + 1);
    if (end == std::string_view::npos || end == at_ + 1) fail("a back quote without a key", "`KEY`");
    const std::string key(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return name(key);
  }
  Index word_in_quotes(char quote) {
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail("a quote without its end", "the same quote again");
    const std::string word(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return add({.op = Op::value, .value = word});
  }
  Index number() {
    const std::string_view digits = text_.substr(at_, length_of_number(text_.substr(at_)));
    at_ += digits.size();
    const std::size_t after_number = at_;
    skip_spaces();
    std::string unit(word_here());
    if (!unit.empty() && text_.substr(at_ + unit.size()).starts_with("/s") && factor_of(unit + "/s")) unit += "/s";
    const auto factor = unit.empty() ? std::nullopt : factor_of(unit);
    if (factor)
      at_ += unit.size();
    else
      at_ = after_number;
    const auto value = number_of(digits, factor.value_or(1), factor.has_value());
    if (!value) fail(fmt::format("'{}'", digits), "a number");
    return add({.op = Op::value, .value = *value, .dimension = dimension_of_unit(unit)});
  }
  Index name_or_function() {
    const std::string word(word_here());
    if (word == "and" || word == "or" || word == "not") fail(fmt::format("'{}'", word), "a number, a name or '('");
    at_ += word.size();
    if (word == "true" || word == "false") return add({.op = Op::value, .value = word == "true"});
    if (!take_sign("(")) return name(word);
    const auto* const known =
        std::ranges::find_if(functions, [&](const Function& function) { return name_of(function.op) == word; });
    if (known == functions.end())
      fail(fmt::format("the function '{}'", word), "min, max, floor, ceil, log2, divides or power_of_two");
    Expression::Node call{.op = known->op};
    do call.operands.push_back(disjunction());
    while (take_sign(","));
    if (!take_sign(")")) fail(at_ < text_.size() ? fmt::format("'{}'", text_[at_]) : "the end", "',' or ')'");
    if (call.operands.size() < known->least || call.operands.size() > known->most)
      fail(fmt::format("{} operands of {}", call.operands.size(), word), known->most == 1   ? "one"
                                                                         : known->most == 2 ? "two"
                                                                                            : "1 to 64");
    return add(std::move(call));
  }

  /// Counts how deep the reading is.
  class Nesting {
   public:
    explicit Nesting(Parser& parser) : parser_(parser) {
      if (++parser_.depth_ > deepest_nesting) parser_.fail("an expression nested more than 64 deep", "a flatter one");
    }
    ~Nesting() { --parser_.depth_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    Parser& parser_;
  };

  std::string_view text_;
  Expression& result_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

Expression Expression::parse(std::string_view text, const Place& place) {
  Expression result;
  result.text_ = text;
  result.place_ = place;
  Parser(result.text_, result).parse();
  return result;
}

}  // namespace orrery::explore
