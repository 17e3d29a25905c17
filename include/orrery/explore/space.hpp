#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "orrery/explore/study.hpp"

namespace orrery::explore {

/// Which value each parameter of a study has: [parameters] positions among its values, or `otherwise`.
using Choice = std::vector<std::uint32_t>;
/// Stands for the value of `else`, or for none, where `when` of the parameter does not hold.
inline constexpr std::uint32_t otherwise = 0xffffffffU;

/// One configuration of a study.
struct Point {
  std::uint64_t number = 0;  ///< among the legal ones, from 0, in the order of the study
  Choice choice;
  Names names;  ///< names of parameters and derived values, and those that are given
  std::vector<std::pair<std::string, std::string>> settings;  ///< keys of CONFIG.yaml with their texts
};

/// The number of points that each rule removed before any simulation. Removed, equivalent and legal points together are
/// all.
struct Funnel {
  std::uint64_t raw = 0;           ///< products of the numbers of values; of samples the draws
  std::vector<std::uint64_t> cut;  ///< [constraints] raw points
  std::uint64_t alike = 0;         ///< raw points that differ in parameters only that do not apply; draws made before
  std::uint64_t legal = 0;
};

/// All combinations of the values of a study's parameters.
class Space {
 public:
  /// `given`: values of names that the study does not give, such as `npus`. The study must outlive the space.
  Space(const Study& study, Names given);

  const Study& study() const { return study_; }
  const Names& given() const { return given_; }
  /// Returns how many values a parameter has; the first two of an interval are its ends.
  std::size_t num_values(std::size_t parameter) const { return texts_[parameter].size(); }
  const std::string& text(std::size_t parameter, std::uint32_t value) const { return texts_[parameter][value]; }
  const Value& value(std::size_t parameter, std::uint32_t value) const { return *values_[parameter][value]; }
  /// Adds a value that a parameter may have, which `visit` will visit too. Returns its position.
  std::uint32_t add_value(std::size_t parameter, const std::string& text);

  /// Visits the legal points in canonical order: all combinations, the last parameter fastest. A constraint without
  /// metrics cuts all points below an assignment as soon as its names have values, and so a study of 10^9 raw points
  /// need not be visited point by point. `visit` returns whether to go on. Throws Error (bad_input) with the values of
  /// names where an expression has no value. O(assignments that are not cut).
  Funnel visit(const std::function<bool(const Point&)>& visit) const;
  /// Returns the point of a choice; nothing if a constraint cuts it, which `cut` (if given) gets the position of. Where
  /// `when` does not hold, the choice counts as `otherwise`; where it holds, `otherwise` counts as the first value.
  std::optional<Point> at(const Choice& choice, std::size_t* cut = nullptr) const;

 private:
  friend class Walk;

  const Study& study_;
  Names given_;
  std::vector<std::vector<std::string>> texts_;            ///< [parameters][values]
  std::vector<std::vector<std::optional<Value>>> values_;  ///< [parameters][values]
  std::vector<bool> key_is_named_;                         ///< [parameters] an expression has it in back quotes
  std::vector<bool> derived_is_named_;                     ///< [derived] the same
  std::vector<std::optional<Value>> others_;               ///< [parameters] of `else`
  std::vector<std::size_t> derived_at_;     ///< [derived] depths: parameters that must have values before
  std::vector<std::size_t> constraint_at_;  ///< [constraints] depths
  std::vector<std::size_t> after_derived_;  ///< [constraints] 0, or 1 + the last derived name
  std::vector<std::uint64_t> raw_below_;    ///< [parameters + 1] raw points below an assignment
};

/// Legal points of a space, in few bytes each.
class Points {
 public:
  /// The space must outlive the points.
  explicit Points(const Space& space) : space_(&space) {}

  const Space& space() const { return *space_; }
  void add(std::uint64_t number, const Choice& choice);
  std::size_t size() const { return numbers_.size(); }
  bool empty() const { return numbers_.empty(); }
  std::uint64_t number(std::size_t i) const { return numbers_[i]; }
  std::span<const std::uint32_t> choice(std::size_t i) const;
  /// Returns a point. O(its names).
  Point operator[](std::size_t i) const;
  /// Returns where a choice stands; nothing if it is none of these points. O(points).
  std::optional<std::size_t> find(const Choice& choice) const;

 private:
  const Space* space_;
  std::vector<std::uint64_t> numbers_;
  std::vector<std::uint32_t> choices_;  ///< [points][parameters]
};

}  // namespace orrery::explore
