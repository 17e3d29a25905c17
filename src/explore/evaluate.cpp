#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

#include "orrery/explore/expression.hpp"

namespace orrery::explore {

/// Computes one expression with values of names.
class Evaluator {
 public:
  Evaluator(const Expression& expression, const Names& names) : of_(expression), names_(names) {}

  Value value(std::size_t index) const {
    const Expression::Node& node = of_.nodes_[index];
    if (node.op == "value") return node.value;
    if (node.op == "name") return named(node.name);
    if (node.op == "and") return truth(node.operands[0]) && truth(node.operands[1]);
    if (node.op == "or") return truth(node.operands[0]) || truth(node.operands[1]);
    if (node.op == "not") return !truth(node.operands[0]);
    std::vector<Value> operands;
    for (const std::size_t operand : node.operands) operands.push_back(value(operand));
    if (node.op == "==") return are_equal(operands[0], operands[1]);
    if (node.op == "!=") return !are_equal(operands[0], operands[1]);
    for (const Value& operand : operands)
      if (std::isnan(as_real(operand)))
        fail(fmt::format("'{}' takes numbers, but found '{}'", node.op, cited(to_text(operand))));
    return of_numbers(node.op, operands);
  }
  bool truth(std::size_t index) const {
    const Value result = value(index);
    const bool* const held = std::get_if<bool>(&result);
    if (held == nullptr) fail(fmt::format("found {} where true or false is needed", cited(to_text(result))));
    return *held;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    std::string with;
    for (const std::string& name : of_.names())
      if (const auto known = names_.find(name); known != names_.end())
        with += fmt::format("{}{} = {}", with.empty() ? "" : ", ", name, cited(to_text(known->second)));
    throw Error(ErrorCode::bad_input, of_.place(),
                fmt::format("'{}'{}: {}", cited(of_.text()), with.empty() ? "" : " with " + with, what));
  }
  const Value& named(const std::string& name) const {
    const auto known = names_.find(name);
    if (known == names_.end()) fail(fmt::format("the name '{}' has no value here", cited(name)));
    return known->second;
  }
  static bool are_equal(const Value& a, const Value& b) {
    const double left = as_real(a), right = as_real(b);
    if (a.index() == b.index()) return a == b;
    return left == right;  // a whole number and a real one; false for other kinds, which are NaN
  }
  Value of_numbers(const std::string& op, const std::vector<Value>& operands) const {
    if (op == "min" || op == "max") {
      Value best = operands[0];
      for (const Value& other : operands)
        if (op == "min" ? as_real(other) < as_real(best) : as_real(other) > as_real(best)) best = other;
      return best;
    }
    std::vector<std::int64_t> whole;
    for (const Value& operand : operands)
      if (const auto* held = std::get_if<std::int64_t>(&operand)) whole.push_back(*held);
    if (whole.size() == operands.size()) return of_whole(op, whole);
    return of_reals(op, as_real(operands[0]), operands.size() > 1 ? as_real(operands[1]) : 0);
  }
  Value of_whole(const std::string& op, const std::vector<std::int64_t>& operands) const {
    const std::int64_t a = operands[0], b = operands.size() > 1 ? operands[1] : 0;
    std::int64_t result = 0;
    const auto checked = [&](bool overflows) -> Value {
      if (overflows) fail(fmt::format("the result of '{}' is beyond 2^63", op == "-1" ? "-" : op));
      return result;
    };
    if (op == "+") return checked(__builtin_add_overflow(a, b, &result));
    if (op == "-") return checked(__builtin_sub_overflow(a, b, &result));
    if (op == "*") return checked(__builtin_mul_overflow(a, b, &result));
    if (op == "-1") return checked(__builtin_sub_overflow(std::int64_t{0}, a, &result));
    if (op == "/" || op == "%" || op == "divides") {
      const std::int64_t divisor = op == "divides" ? a : b, whole = op == "divides" ? b : a;
      if (divisor == 0) fail("a division by 0");
      const std::int64_t rest = divisor == -1 ? 0 : whole % divisor;
      if (op == "divides") return rest == 0;
      if (op == "%") return rest;
      if (rest != 0) fail(fmt::format("{} / {} leaves a remainder; floor({} / {}.0) rounds down", a, b, a, b));
      return divisor == -1 ? of_whole("-1", {whole}) : Value(whole / divisor);
    }
    if (op == "**") {
      if (b < 0) return of_reals(op, static_cast<double>(a), static_cast<double>(b));
      if (a == 0 || a == 1 || a == -1) return b == 0 ? 1 : b % 2 == 0 ? a * a : a;
      result = 1;
      for (std::int64_t i = 0; i < b; ++i)
        if (__builtin_mul_overflow(result, a, &result)) return checked(true);
      return result;
    }
    if (op == "<") return a < b;
    if (op == "<=") return a <= b;
    if (op == ">") return a > b;
    if (op == ">=") return a >= b;
    if (op == "power_of_two") return a > 0 && std::has_single_bit(static_cast<std::uint64_t>(a));
    if (op == "floor" || op == "ceil") return a;
    return of_reals(op, static_cast<double>(a), static_cast<double>(b));
  }
  Value of_reals(const std::string& op, double a, double b) const {
    if (op == "<") return a < b;
    if (op == "<=") return a <= b;
    if (op == ">") return a > b;
    if (op == ">=") return a >= b;
    if (op == "divides" || op == "power_of_two" || op == "%") fail(fmt::format("'{}' takes whole numbers", op));
    double result = 0;
    if (op == "+") result = a + b;
    if (op == "-") result = a - b;
    if (op == "*") result = a * b;
    if (op == "/") result = a / b;
    if (op == "**") result = std::pow(a, b);
    if (op == "-1") result = -a;
    if (op == "log2") result = std::log2(a);
    if (op == "floor" || op == "ceil") {
      result = op == "floor" ? std::floor(a) : std::ceil(a);
      if (std::abs(result) < 0x1p63) return static_cast<std::int64_t>(result);
    }
    if (!std::isfinite(result)) fail(fmt::format("the result of '{}' is not finite", op == "-1" ? "-" : op));
    return result;
  }

  const Expression& of_;
  const Names& names_;
};

Value Expression::evaluate(const Names& names) const { return Evaluator(*this, names).value(nodes_.size() - 1); }

std::optional<std::string> Expression::limited_name() const {
  const Node& root = nodes_.back();
  const bool is_left = root.op == "<=" || root.op == "<", is_right = root.op == ">=" || root.op == ">";
  if (!is_left && !is_right) return {};
  const Node& limited = nodes_[root.operands[is_left ? 0 : 1]];
  if (limited.op != "name" || std::ranges::count(nodes_, limited.name, &Node::name) > 1) return {};
  return limited.name;
}

bool Expression::holds(const Names& names) const { return Evaluator(*this, names).truth(nodes_.size() - 1); }

}  // namespace orrery::explore
