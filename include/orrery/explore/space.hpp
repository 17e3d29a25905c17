#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "orrery/explore/study.hpp"

namespace orrery::explore {

/// One configuration of a study.
struct Point {
  std::uint64_t number = 0;  ///< among the legal ones, from 0, in the order of the study
  Names names;               ///< of parameters and derived keys, and `npus`
  std::vector<std::pair<std::string, std::string>> settings;  ///< keys of CONFIG.yaml with their texts
};

/// How many points fell to what, before anything was simulated. The points that are cut or alike and the legal ones are
/// all.
struct Funnel {
  std::uint64_t raw = 0;           ///< products of the numbers of values
  std::vector<std::uint64_t> cut;  ///< [constraints] raw points
  std::uint64_t alike = 0;         ///< raw points that differ in parameters only that do not apply
  std::uint64_t legal = 0;
};

/// Visits the legal points of a study in canonical order: all combinations, the last parameter fastest. A constraint
/// without metrics cuts all points below an assignment as soon as its names have values, and so a study of 10^9 raw
/// points need not be visited point by point. `visit` returns whether to go on. Throws Error (bad_input) with the
/// values of names where an expression has no value. O(assignments that are not cut).
Funnel visit_points(const Study& study, std::uint32_t npus, const std::function<bool(const Point&)>& visit);

}  // namespace orrery::explore
