#include "orrery/explore/space.hpp"

#include <algorithm>

namespace orrery::explore {
namespace {

/// The walk through all combinations.
class Walk {
 public:
  Walk(const Study& study, std::uint32_t npus, const std::function<bool(const Point&)>& visit)
      : study_(study), visit_(visit), texts_(study.parameters.size()) {
    if (!is_named("npus")) point_.names["npus"] = std::int64_t{npus};
    funnel_.raw = raw_below(0);
    funnel_.cut.resize(study.constraints.size());
    // Each derived value and constraint is looked at when the last of its names has got its value.
    for (const Derived& derived : study.derived) {
      depth_of_name_.emplace_back(derived.name, depth_of(derived.value));
      derived_at_.push_back(depth_of_name_.back().second);
    }
    for (const Expression& constraint : study.constraints) {
      constraint_at_.push_back(depth_of(constraint));
      std::size_t after = 0;
      for (std::size_t i = 0; i < study.derived.size(); ++i)
        if (derived_at_[i] == constraint_at_.back() &&
            std::ranges::find(constraint.names(), study.derived[i].name) != constraint.names().end())
          after = i + 1;
      after_derived_.push_back(after);
    }
  }

  Funnel go() {
    if (derive(0)) below(0);
    return funnel_;
  }

 private:
  static constexpr std::size_t never = static_cast<std::size_t>(-1);  // constraints on metrics

  bool is_named(std::string_view name) const {
    return std::ranges::find(study_.parameters, name, &Parameter::name) != study_.parameters.end() ||
           std::ranges::find(study_.derived, name, &Derived::name) != study_.derived.end();
  }
  /// Returns how many parameters must have values before an expression has one.
  std::size_t depth_of(const Expression& expression) const {
    std::size_t depth = 0;
    for (const std::string& name : expression.names()) {
      const auto parameter = std::ranges::find(study_.parameters, name, &Parameter::name);
      if (parameter != study_.parameters.end())
        depth = std::max(depth, static_cast<std::size_t>(parameter - study_.parameters.begin()) + 1);
      else if (const auto derived =
                   std::ranges::find(depth_of_name_, name, &std::pair<std::string, std::size_t>::first);
               derived != depth_of_name_.end())
        depth = std::max(depth, derived->second);
      else if (name != "npus")
        return never;
    }
    return depth;
  }
  std::uint64_t raw_below(std::size_t depth) const {
    std::uint64_t raw = 1;
    for (std::size_t i = depth; i < study_.parameters.size(); ++i)
      if (__builtin_mul_overflow(raw, study_.parameters[i].values.size(), &raw)) return ~std::uint64_t{0};
    return raw;
  }

  /// Gives names their values that follow from the first `depth` parameters. Returns false if a constraint cuts. Each
  /// constraint is looked at as soon as it has a value, so that it can keep a derived value from having none.
  bool derive(std::size_t depth) {
    if (cuts(depth, 0)) return false;
    for (std::size_t i = 0; i < study_.derived.size(); ++i) {
      if (derived_at_[i] != depth) continue;
      point_.names[study_.derived[i].name] = study_.derived[i].value.evaluate(point_.names);
      if (cuts(depth, i + 1)) return false;
    }
    return true;
  }
  /// Says whether one of the constraints does not hold that have values once so many derived names have theirs.
  bool cuts(std::size_t depth, std::size_t after) {
    for (std::size_t i = 0; i < study_.constraints.size(); ++i)
      if (constraint_at_[i] == depth && after_derived_[i] == after && !study_.constraints[i].holds(point_.names)) {
        funnel_.cut[i] += raw_below(depth);
        return true;
      }
    return false;
  }

  /// Returns whether to go on.
  bool below(std::size_t depth) {
    if (depth == study_.parameters.size()) return visit_point();
    const Parameter& parameter = study_.parameters[depth];
    if (parameter.when && !parameter.when->holds(point_.names)) {
      texts_[depth] = parameter.otherwise;
      funnel_.alike += (parameter.values.size() - 1) * raw_below(depth + 1);
      return enter(depth);
    }
    for (const std::string& value : parameter.values) {
      texts_[depth] = value;
      if (!enter(depth)) return false;
    }
    return true;
  }
  bool enter(std::size_t depth) {
    const std::string& name = study_.parameters[depth].name;
    if (texts_[depth])
      point_.names[name] = value_of(*texts_[depth]);
    else
      point_.names.erase(name);
    return !derive(depth + 1) || below(depth + 1);
  }
  bool visit_point() {
    point_.number = funnel_.legal++;
    point_.settings.clear();
    for (std::size_t i = 0; i < study_.parameters.size(); ++i)
      if (const Parameter& parameter = study_.parameters[i]; texts_[i] && !parameter.key.empty())
        point_.settings.emplace_back(parameter.key, *texts_[i]);
    for (const Derived& derived : study_.derived)
      if (!derived.key.empty()) point_.settings.emplace_back(derived.key, to_text(point_.names.at(derived.name)));
    return visit_(point_);
  }

  const Study& study_;
  const std::function<bool(const Point&)>& visit_;
  std::vector<std::pair<std::string, std::size_t>> depth_of_name_;  // of derived names
  std::vector<std::size_t> derived_at_, constraint_at_;             // depths
  std::vector<std::size_t> after_derived_;                          // [constraints] 0, or 1 + the last derived name
  std::vector<std::optional<std::string>> texts_;                   // [parameters]
  Point point_;
  Funnel funnel_;
};

}  // namespace

Funnel visit_points(const Study& study, std::uint32_t npus, const std::function<bool(const Point&)>& visit) {
  return Walk(study, npus, visit).go();
}

}  // namespace orrery::explore
