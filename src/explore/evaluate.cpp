#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

#include "operators.hpp"
#include "orrery/explore/expression.hpp"

namespace orrery::explore {

/// Computes one expression with values of names.
class Evaluator {
 public:
  using Op = Expression::Op;

  Evaluator(const Expression& expression, const Names& names) : of_(expression), names_(names) {}

  Value value(std::size_t index) const {
    const Expression::Node& node = of_.nodes_[index];
    switch (node.op) {
      case Op::value:
        return node.value;
      case Op::name:
        return named(node.name);
      case Op::both:
        return truth(node.operands[0]) && truth(node.operands[1]);
      case Op::either:
        return truth(node.operands[0]) || truth(node.operands[1]);
      case Op::negation:
        return !truth(node.operands[0]);
      case Op::equal:
        return are_equal(value(node.operands[0]), value(node.operands[1]));
      case Op::unequal:
        return !are_equal(value(node.operands[0]), value(node.operands[1]));
      case Op::minimum:
      case Op::maximum:
        return extreme(node);
      default:
        break;
    }
    const Value a = number(node, 0);
    const Value b = node.operands.size() > 1 ? number(node, 1) : Value(std::int64_t{0});
    const auto* const whole_a = std::get_if<std::int64_t>(&a);
    const auto* const whole_b = std::get_if<std::int64_t>(&b);
    if (whole_a != nullptr && whole_b != nullptr) return of_whole(node.op, *whole_a, *whole_b);
    return of_reals(node.op, as_real(a), as_real(b));
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
  static std::string_view name_of(Op op) { return operator_names[static_cast<std::size_t>(op)]; }
  /// Returns the value of an operand that has to be a number.
  Value number(const Expression::Node& node, std::size_t operand) const {
    Value result = value(node.operands[operand]);
    if (std::isnan(as_real(result)))
      fail(fmt::format("'{}' takes numbers, but found '{}'", name_of(node.op), cited(to_text(result))));
    return result;
  }
  Value extreme(const Expression::Node& node) const {
    Value best = number(node, 0);
    for (std::size_t i = 1; i < node.operands.size(); ++i) {
      const Value other = number(node, i);
      if (node.op == Op::minimum ? as_real(other) < as_real(best) : as_real(other) > as_real(best)) best = other;
    }
    return best;
  }
  Value divided(Op op, std::int64_t a, std::int64_t b) const {
    if (b == 0) fail("a division by 0");
    const std::int64_t rest = b == -1 ? 0 : a % b;
    if (op == Op::divides) return rest == 0;
    if (op == Op::remainder) return rest;
    if (rest != 0) fail(fmt::format("{} / {} leaves a remainder; floor({} / {}.0) rounds down", a, b, a, b));
    return b == -1 ? of_whole(Op::minus, a, 0) : Value(a / b);
  }
  Value raised(std::int64_t a, std::int64_t b) const {
    if (b < 0) return of_reals(Op::power, static_cast<double>(a), static_cast<double>(b));
    if (a == 0 || a == 1 || a == -1) return b == 0 ? 1 : b % 2 == 0 ? a * a : a;
    std::int64_t result = 1;
    for (std::int64_t i = 0; i < b; ++i)
      if (__builtin_mul_overflow(result, a, &result)) fail_beyond(Op::power);
    return result;
  }
  [[noreturn]] void fail_beyond(Op op) const { fail(fmt::format("the result of '{}' is beyond 2^63", name_of(op))); }
  Value of_whole(Op op, std::int64_t a, std::int64_t b) const {
    std::int64_t result = 0;
    bool overflows = false;
    switch (op) {
      case Op::sum:
        overflows = __builtin_add_overflow(a, b, &result);
        break;
      case Op::difference:
        overflows = __builtin_sub_overflow(a, b, &result);
        break;
      case Op::product:
        overflows = __builtin_mul_overflow(a, b, &result);
        break;
      case Op::minus:
        overflows = __builtin_sub_overflow(std::int64_t{0}, a, &result);
        break;
      case Op::quotient:
      case Op::remainder:
        return divided(op, a, b);
      case Op::divides:
        return divided(op, b, a);
      case Op::power:
        return raised(a, b);
      case Op::less:
        return a < b;
      case Op::at_most:
        return a <= b;
      case Op::more:
        return a > b;
      case Op::at_least:
        return a >= b;
      case Op::power_of_two:
        return a > 0 && std::has_single_bit(static_cast<std::uint64_t>(a));
      case Op::floor:
      case Op::ceil:
        return a;
      default:
        return of_reals(op, static_cast<double>(a), static_cast<double>(b));
    }
    if (overflows) fail_beyond(op);
    return result;
  }
  Value of_reals(Op op, double a, double b) const {
    if (op == Op::less) return a < b;
    if (op == Op::at_most) return a <= b;
    if (op == Op::more) return a > b;
    if (op == Op::at_least) return a >= b;
    if (op == Op::divides || op == Op::power_of_two || op == Op::remainder)
      fail(fmt::format("'{}' takes whole numbers", name_of(op)));
    double result = 0;
    if (op == Op::sum) result = a + b;
    if (op == Op::difference) result = a - b;
    if (op == Op::product) result = a * b;
    if (op == Op::quotient) result = a / b;
    if (op == Op::power) result = std::pow(a, b);
    if (op == Op::minus) result = -a;
    if (op == Op::log2) result = std::log2(a);
    if (op == Op::floor || op == Op::ceil) {
      result = op == Op::floor ? std::floor(a) : std::ceil(a);
      if (std::abs(result) < 0x1p63) return static_cast<std::int64_t>(result);
    }
    if (!std::isfinite(result)) fail(fmt::format("the result of '{}' is not finite", name_of(op)));
    return result;
  }

  const Expression& of_;
  const Names& names_;
};

Value Expression::evaluate(const Names& names) const { return Evaluator(*this, names).value(nodes_.size() - 1); }

std::optional<std::string> Expression::lone_side(bool is_left, bool is_right) const {
  if (!is_left && !is_right) return {};
  const Node& lone = nodes_[nodes_.back().operands[is_left ? 0 : 1]];
  if (lone.op != Op::name || std::ranges::count(nodes_, lone.name, &Node::name) > 1) return {};
  return lone.name;
}

std::optional<std::string> Expression::limited_name() const {
  const Op op = nodes_.back().op;
  return lone_side(op == Op::at_most || op == Op::less, op == Op::at_least || op == Op::more);
}

std::optional<std::string> Expression::demanded_name() const {
  const Op op = nodes_.back().op;
  return lone_side(op == Op::at_least || op == Op::more, op == Op::at_most || op == Op::less);
}

std::optional<std::pair<double, double>> Expression::sides(const Names& names) const {
  const Node& root = nodes_.back();
  if (root.op < Op::equal || root.op > Op::more || root.op == Op::unequal) return {};
  const Evaluator evaluator(*this, names);
  const double left = as_real(evaluator.value(root.operands[0])), right = as_real(evaluator.value(root.operands[1]));
  if (std::isnan(left) || std::isnan(right)) return {};
  return std::pair(left, right);
}

bool Expression::holds(const Names& names) const { return Evaluator(*this, names).truth(nodes_.size() - 1); }

}  // namespace orrery::explore
