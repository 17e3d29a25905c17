#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "orrery/base/error.hpp"
#include "orrery/explore/physical_dimension.hpp"

namespace orrery::explore {

/// What a name or an expression of a study stands for: an exact whole number, a real number in SI units (bytes, bytes
/// per second, seconds, FLOPs per second), a truth, or a word.
using Value = std::variant<std::int64_t, double, bool, std::string>;

/// Values by name.
using Names = std::map<std::string, Value, std::less<>>;

/// Returns the value of a text: a number, a quantity such as "80 GB", "50 GB/s", "400 Gb/s", "2 us" or "312 TFLOPS",
/// true or false, otherwise a word.
Value value_of(std::string_view text);

/// Returns the SI unit of a quantity, as UDUNITS writes it: "byte", "byte/s", "s", "1/s" of FLOPs, or "1".
std::string_view si_unit_of(std::string_view text);

/// Returns a value as a configuration has it.
std::string to_text(const Value& value);

/// Says whether quantities may have this unit.
bool is_unit(std::string_view unit);
/// Returns a number of SI units as a configuration has it with another unit: 4e11 in "GB/s" is "400 GB/s". Truths and
/// words stay as they are.
std::string to_text_in(std::string_view unit, const Value& value);

/// Returns a number as a real one; NaN for truths and words.
double as_real(const Value& value);

/// An expression of a study: numbers with units, words in quotes, names, keys of CONFIG.yaml and paths of results in
/// back quotes, + - * / % **, comparisons, `and`, `or`, `not`, and the functions min, max, floor, ceil, log2,
/// divides(a, b), power_of_two(a). Whole numbers stay exact: a quotient with a remainder and an overflow are errors. It
/// has no side effects.
class Expression {
 public:
  enum class Op : std::uint8_t;  ///< operation of a node of the tree

  /// Parses a text of up to 1000 characters. `place`: where it stands. Throws Error (bad_input) with the position of
  /// what cannot be read.
  static Expression parse(std::string_view text, const Place& place);

  /// Returns the names that it uses, each once, in order.
  const std::vector<std::string>& names() const { return names_; }
  const std::string& text() const { return text_; }
  const Place& place() const { return place_; }

  /// Returns its value. Throws Error (bad_input) for a name that `names` lacks, and for values that an operator cannot
  /// take. O(length).
  Value evaluate(const Names& names) const;
  /// Returns the name on the left if the expression is `name <= x` or `name < x`, and the one on the right if it is
  /// `x >= name` or `x > name`, where x does not use it: if it fails, then it fails for all larger values too.
  std::optional<std::string> limited_name() const;
  /// Returns the same for `name >= x` and the like: if it fails, then it fails for all smaller values too.
  std::optional<std::string> demanded_name() const;
  /// Returns the numbers on both sides of a comparison; nothing if it is none of numbers.
  std::optional<std::pair<double, double>> sides(const Names& names) const;
  /// Returns the kind of quantity; nothing for truths and words, and where parts are not known. `of_name`: the
  /// same of its names. Throws Error (bad_input), which names both, if quantities of two kinds are compared, added or
  /// the like. A number without a unit goes with all.
  std::optional<PhysicalDimension> dimension(
      const std::function<std::optional<PhysicalDimension>(const std::string&)>& of_name) const;
  /// Returns its truth. Throws Error (bad_input) if it has none.
  bool holds(const Names& names) const;

 private:
  friend class Parser;
  friend class Evaluator;
  friend class DimensionFinder;
  /// What a node of the tree does.
  struct Node {
    Op op;
    Value value = std::int64_t{0};
    std::string name = {};                            ///< name of Op::name
    std::optional<PhysicalDimension> dimension = {};  ///< dimension of Op::value, if it has a unit
    std::vector<std::size_t> operands = {};
  };

  std::optional<std::string> lone_side(bool is_left, bool is_right) const;

  std::string text_;
  Place place_;
  std::vector<Node> nodes_;  ///< the last one is the root
  std::vector<std::string> names_;
};

}  // namespace orrery::explore
