#include "orrery/explore/physical_dimension.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "operators.hpp"
#include "orrery/base/units.hpp"
#include "orrery/explore/study.hpp"
#include "orrery/results/metric_registry.hpp"
#include "quantity.hpp"

namespace orrery::explore {
namespace {

constexpr std::array<std::string_view, 5> base_units{"byte", "s", "FLOP", "USD", "J"};

using UnitOfMetric = std::pair<std::string_view, PhysicalDimension>;
constexpr std::array<UnitOfMetric, 10> units_of_metrics{{{"1", {}},
                                                         {"%", {}},
                                                         {"byte", {{1, 0, 0, 0, 0}}},
                                                         {"byte/s", {{1, -1, 0, 0, 0}}},
                                                         {"1/s", {{0, -1, 0, 0, 0}}},
                                                         {"USD", {{0, 0, 0, 1, 0}}},
                                                         {"1/USD", {{0, 0, 0, -1, 0}}},
                                                         {"J", {{0, 0, 0, 0, 1}}},
                                                         {"1/J", {{0, 0, 0, 0, -1}}},
                                                         {"W", {{0, -1, 0, 0, 1}}}}};

/// Returns a dimension whose powers are those of a and n times those of b; nothing if they are beyond all sense.
std::optional<PhysicalDimension> combined(const PhysicalDimension& a, const PhysicalDimension& b, int n) {
  constexpr int most = 100;
  PhysicalDimension result;
  for (std::size_t i = 0; i < result.powers.size(); ++i) {
    const int power = a.powers[i] + n * b.powers[i];
    if (power < -most || power > most) return {};
    result.powers[i] = static_cast<std::int8_t>(power);
  }
  return result;
}

}  // namespace

/// Finds the dimensions of an expression's parts. What has none that is known may be anything.
class DimensionFinder {
 public:
  using Op = Expression::Op;
  using OfName = std::function<std::optional<PhysicalDimension>(const std::string&)>;

  DimensionFinder(const Expression& expression, const OfName& of_name) : of_(expression), of_name_(of_name) {}

  std::optional<PhysicalDimension> of_all() const { return of(of_.nodes_.size() - 1); }

 private:
  std::optional<PhysicalDimension> of(std::size_t index) const {
    const Expression::Node& node = of_.nodes_[index];
    switch (node.op) {
      case Op::value:
        return node.dimension;
      case Op::name:
        return of_name_(node.name);
      case Op::minus:
      case Op::floor:
      case Op::ceil:
        return of(node.operands[0]);
      case Op::sum:
      case Op::difference:
      case Op::minimum:
      case Op::maximum:
      case Op::remainder:
        return common(node);
      case Op::product:
      case Op::quotient:
        return product(node);
      case Op::power:
        return power(node);
      case Op::both:
      case Op::either:
      case Op::negation:
      case Op::log2:
      case Op::power_of_two:
        for (const std::size_t operand : node.operands) of(operand);
        return {};
      default:  // comparisons, and `divides`
        common(node);
        return {};
    }
  }
  /// Returns the dimension that all operands have.
  std::optional<PhysicalDimension> common(const Expression::Node& node) const {
    std::optional<PhysicalDimension> found;
    for (const std::size_t operand : node.operands) {
      const auto own = of(operand);
      if (own && found && *own != *found)
        throw Error(ErrorCode::bad_input, of_.place(),
                    fmt::format("'{}': found {} and {} as operands of '{}'", cited(of_.text()), to_text(*found),
                                to_text(*own), operator_names[static_cast<std::size_t>(node.op)]),
                    "quantities of the same kind");
      if (own) found = own;
    }
    return found;
  }
  std::optional<PhysicalDimension> product(const Expression::Node& node) const {
    const auto a = of(node.operands[0]), b = of(node.operands[1]);
    return a && b ? combined(*a, *b, node.op == Op::product ? 1 : -1) : std::nullopt;
  }
  std::optional<PhysicalDimension> power(const Expression::Node& node) const {
    const auto base = of(node.operands[0]);
    const Expression::Node& exponent = of_.nodes_[node.operands[1]];
    const auto* const whole = exponent.op == Op::value ? std::get_if<std::int64_t>(&exponent.value) : nullptr;
    if (!base || whole == nullptr || *whole < 0 || *whole > 9) return {};
    return combined({}, *base, static_cast<int>(*whole));
  }

  const Expression& of_;
  const OfName& of_name_;
};

std::optional<PhysicalDimension> dimension_of_unit(std::string_view unit) {
  for (const auto& [name, dimension] : units_of_metrics)
    if (name == unit) return dimension;
  if (std::ranges::find(units::bytes, unit, &Unit::name) != units::bytes.end()) return {{{1, 0, 0, 0, 0}}};
  if (std::ranges::find(units::bandwidth, unit, &Unit::name) != units::bandwidth.end()) return {{{1, -1, 0, 0, 0}}};
  if (std::ranges::find(units::time, unit, &Unit::name) != units::time.end()) return {{{0, 1, 0, 0, 0}}};
  if (std::ranges::find(units::flops, unit, &Unit::name) != units::flops.end()) return {{{0, -1, 1, 0, 0}}};
  return {};
}

std::optional<PhysicalDimension> dimension_of_quantity(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  const std::size_t length = length_of_number(text);
  if (length == 0) return {};
  text.remove_prefix(length);
  while (text.starts_with(' ')) text.remove_prefix(1);
  return text.empty() ? std::nullopt : dimension_of_unit(text);
}

std::string to_text(const PhysicalDimension& dimension) {
  for (const auto& [name, known] : units_of_metrics)
    if (known == dimension) return name == "1" ? "1 (a plain number)" : std::string(name);
  std::string above, below;
  for (std::size_t i = 0; i < base_units.size(); ++i) {
    const int power = dimension.powers[i];
    if (power == 0) continue;
    std::string& part = power > 0 ? above : below;
    part += fmt::format("{}{}{}", part.empty() ? "" : " ", base_units[i],
                        power == 1 || power == -1 ? "" : fmt::format("^{}", power > 0 ? power : -power));
  }
  return (above.empty() ? "1" : above) + (below.empty() ? "" : "/" + below);
}

std::optional<PhysicalDimension> Expression::dimension(
    const std::function<std::optional<PhysicalDimension>(const std::string&)>& of_name) const {
  return DimensionFinder(*this, of_name).of_all();
}

namespace {

/// Returns the dimension that all values of a parameter have; nothing if one has no unit.
std::optional<PhysicalDimension> dimension_of_values(const Parameter& parameter) {
  std::vector<std::string> texts = parameter.values;
  if (parameter.interval) texts.push_back("0" + parameter.interval->unit);
  if (parameter.otherwise) texts.push_back(*parameter.otherwise);
  if (texts.empty()) return {};
  const auto first = dimension_of_quantity(texts.front());
  return std::ranges::all_of(texts, [&](const std::string& text) { return dimension_of_quantity(text) == first; })
             ? first
             : std::nullopt;
}

}  // namespace

void require_dimensions(const Study& study, const std::map<std::string, std::string>& texts_of_keys) {
  std::map<std::string, std::optional<PhysicalDimension>, std::less<>> known{{"npus", PhysicalDimension{}}};
  for (const auto& [key, text] : texts_of_keys) known[key] = dimension_of_quantity(text);
  for (const results::MetricInfo& metric : results::study_metrics())
    known[std::string(metric.name)] = dimension_of_unit(metric.units);
  const auto add = [&](const std::string& name, const std::string& key, std::optional<PhysicalDimension> dimension) {
    known[name] = dimension;
    if (!key.empty()) known[key] = dimension;
  };
  const auto of_name = [&](const std::string& name) {
    const auto found = known.find(name);
    return found == known.end() ? std::nullopt : found->second;
  };
  for (const Parameter& parameter : study.parameters)
    add(parameter.name, parameter.key, dimension_of_values(parameter));
  for (const Derived& derived : study.derived) {
    const auto of_value = derived.value.dimension(of_name);
    const auto of_unit = derived.unit.empty() ? std::nullopt : dimension_of_unit(derived.unit);
    if (of_value && of_unit && *of_value != *of_unit)
      throw Error(ErrorCode::bad_input, derived.value.place(),
                  fmt::format("'{}' is in {}, and its unit is {}", cited(derived.value.text()), to_text(*of_value),
                              derived.unit),
                  "a unit of the same kind");
    add(derived.name, derived.key, of_unit ? of_unit : of_value);
  }
  for (const Expression* const expression : expressions_of(study)) expression->dimension(of_name);
}

}  // namespace orrery::explore
