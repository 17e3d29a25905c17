#include "orrery/explore/space.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace orrery::explore {
namespace {

constexpr std::size_t never = static_cast<std::size_t>(-1);  // the depth of constraints on metrics

/// Finds how many parameters must have values before an expression has one.
class Depths {
 public:
  Depths(const Study& study, const Names& given) : study_(study), given_(given) {}

  void add_derived(const std::string& name, std::size_t depth) { derived_.emplace_back(name, depth); }
  std::size_t of(const Expression& expression) const {
    std::size_t depth = 0;
    for (const std::string& name : expression.names()) depth = std::max(depth, of_name(name));
    return depth;
  }

 private:
  std::size_t of_name(const std::string& name) const {
    const auto parameter = std::ranges::find_if(
        study_.parameters, [&](const Parameter& one) { return one.name == name || (is_key(name) && one.key == name); });
    if (parameter != study_.parameters.end())
      return static_cast<std::size_t>(parameter - study_.parameters.begin()) + 1;
    const auto derived = std::ranges::find(derived_, name, &std::pair<std::string, std::size_t>::first);
    if (derived != derived_.end()) return derived->second;
    return given_.contains(name) ? 0 : never;
  }

  const Study& study_;
  const Names& given_;
  std::vector<std::pair<std::string, std::size_t>> derived_;
};

}  // namespace

/// A walk through all combinations, or to one of them.
class Walk {
 public:
  explicit Walk(const Space& space) : space_(space), study_(space.study_) {
    point_.names = space.given_;
    point_.choice.assign(study_.parameters.size(), otherwise);
    funnel_.raw = space.raw_below_[0];
    funnel_.cut.resize(study_.constraints.size());
  }

  Funnel through(const std::function<bool(const Point&)>& visit) {
    visit_ = &visit;
    if (derive(0)) below(0);
    return funnel_;
  }
  std::optional<Point> to(const Choice& choice, std::size_t* cut) {
    bool is_legal = derive(0);
    for (std::size_t depth = 0; is_legal && depth < study_.parameters.size(); ++depth) {
      point_.choice[depth] = applies(depth) ? (choice[depth] == otherwise ? 0 : choice[depth]) : otherwise;
      is_legal = enter(depth);
    }
    if (!is_legal) {
      if (cut != nullptr) *cut = cut_by_;
      return {};
    }
    complete();
    return std::move(point_);
  }

 private:
  /// Gives names their values that follow from the first `depth` parameters. Returns false if a constraint cuts. Each
  /// constraint is looked at as soon as it has a value, so that it can keep a derived value from having none.
  bool derive(std::size_t depth) {
    if (cuts(depth, 0)) return false;
    for (std::size_t i = 0; i < study_.derived.size(); ++i) {
      if (space_.derived_at_[i] != depth) continue;
      Value value = study_.derived[i].value.evaluate(point_.names);
      if (space_.derived_is_named_[i]) point_.names[study_.derived[i].key] = value;
      point_.names[study_.derived[i].name] = std::move(value);
      if (cuts(depth, i + 1)) return false;
    }
    return true;
  }
  /// Says whether one of the constraints does not hold that have values once so many derived names have theirs.
  bool cuts(std::size_t depth, std::size_t after) {
    for (std::size_t i = 0; i < study_.constraints.size(); ++i)
      if (space_.constraint_at_[i] == depth && space_.after_derived_[i] == after &&
          !study_.constraints[i].holds(point_.names)) {
        funnel_.cut[i] += space_.raw_below_[depth];
        cut_by_ = i;
        return true;
      }
    return false;
  }

  bool applies(std::size_t depth) const {
    const auto& when = study_.parameters[depth].when;
    return !when || when->holds(point_.names);
  }
  /// Returns whether to go on.
  bool below(std::size_t depth) {
    if (depth == study_.parameters.size()) return visit_point();
    if (!applies(depth)) {
      point_.choice[depth] = otherwise;
      funnel_.alike += (space_.num_values(depth) - 1) * space_.raw_below_[depth + 1];
      return !enter(depth) || below(depth + 1);
    }
    for (std::uint32_t value = 0; value < space_.num_values(depth); ++value) {
      point_.choice[depth] = value;
      if (enter(depth) && !below(depth + 1)) return false;
    }
    return true;
  }
  /// Gives a parameter the value of its choice, and other names those that follow. Returns false if a constraint cuts.
  bool enter(std::size_t depth) {
    const std::string& name = study_.parameters[depth].name;
    const std::uint32_t chosen = point_.choice[depth];
    const std::optional<Value>& value = chosen == otherwise ? space_.others_[depth] : space_.values_[depth][chosen];
    set(name, value);
    if (space_.key_is_named_[depth]) set_key(study_.parameters[depth].key, value);
    return derive(depth + 1);
  }
  void set(const std::string& name, const std::optional<Value>& value) {
    if (value)
      point_.names[name] = *value;
    else
      point_.names.erase(name);
  }
  /// Gives a key in back quotes its value; the base has it where the study leaves the key as it is.
  void set_key(const std::string& key, const std::optional<Value>& value) {
    const auto of_base = space_.given_.find(key);
    set(key, value || of_base == space_.given_.end() ? value : of_base->second);
  }
  bool visit_point() {
    point_.number = funnel_.legal++;
    complete();
    return (*visit_)(point_);
  }
  void complete() {
    point_.settings.clear();
    for (std::size_t i = 0; i < study_.parameters.size(); ++i) {
      const Parameter& parameter = study_.parameters[i];
      if (parameter.key.empty()) continue;
      if (point_.choice[i] != otherwise)
        point_.settings.emplace_back(parameter.key, space_.texts_[i][point_.choice[i]]);
      else if (parameter.otherwise)
        point_.settings.emplace_back(parameter.key, *parameter.otherwise);
    }
    for (const Derived& derived : study_.derived)
      if (!derived.key.empty()) {
        const Value& value = point_.names.at(derived.name);
        point_.settings.emplace_back(derived.key,
                                     derived.unit.empty() ? to_text(value) : to_text_in(derived.unit, value));
      }
  }

  const Space& space_;
  const Study& study_;
  const std::function<bool(const Point&)>* visit_ = nullptr;
  std::size_t cut_by_ = 0;
  Point point_;
  Funnel funnel_;
};

Space::Space(const Study& study, Names given) : study_(study), given_(std::move(given)) {
  const auto is_named = [expressions = expressions_of(study)](const std::string& key) {
    return is_key(key) && std::ranges::any_of(expressions, [&](const Expression* one) {
             return std::ranges::find(one->names(), key) != one->names().end();
           });
  };
  for (const Parameter& parameter : study.parameters) {
    given_.erase(parameter.name);
    key_is_named_.push_back(is_named(parameter.key));
    auto& texts = texts_.emplace_back(parameter.values);
    if (parameter.interval)  // its ends; samples come after them
      for (const double end : {parameter.interval->from, parameter.interval->to})
        texts.push_back(fmt::format("{}{}", end, parameter.interval->unit));
    auto& values = values_.emplace_back();
    for (const std::string& text : texts) values.emplace_back(value_of(text));
    others_.push_back(parameter.otherwise ? std::optional(value_of(*parameter.otherwise)) : std::nullopt);
  }
  for (const Derived& derived : study.derived) {
    given_.erase(derived.name);
    derived_is_named_.push_back(is_named(derived.key));
  }
  raw_below_.assign(study.parameters.size() + 1, 1);
  for (std::size_t i = study.parameters.size(); i-- > 0;)
    if (__builtin_mul_overflow(raw_below_[i + 1], texts_[i].size(), &raw_below_[i])) raw_below_[i] = ~std::uint64_t{0};
  // Each derived value and constraint is looked at when the last of its names has got its value.
  Depths depths(study, given_);
  for (const Derived& derived : study.derived) {
    derived_at_.push_back(depths.of(derived.value));
    depths.add_derived(derived.name, derived_at_.back());
    if (is_key(derived.key)) depths.add_derived(derived.key, derived_at_.back());
  }
  for (const Expression& constraint : study.constraints) {
    constraint_at_.push_back(depths.of(constraint));
    std::size_t after = 0;
    for (std::size_t i = 0; i < study.derived.size(); ++i)
      if (derived_at_[i] == constraint_at_.back() &&
          std::ranges::any_of(constraint.names(), [&](const std::string& name) {
            return name == study.derived[i].name || (is_key(name) && name == study.derived[i].key);
          }))
        after = i + 1;
    after_derived_.push_back(after);
  }
}

std::uint32_t Space::add_value(std::size_t parameter, const std::string& text) {
  texts_[parameter].push_back(text);
  values_[parameter].emplace_back(value_of(text));
  return static_cast<std::uint32_t>(texts_[parameter].size() - 1);
}

Funnel Space::visit(const std::function<bool(const Point&)>& visit) const { return Walk(*this).through(visit); }

std::optional<Point> Space::at(const Choice& choice, std::size_t* cut) const { return Walk(*this).to(choice, cut); }

void Points::add(std::uint64_t number, const Choice& choice) {
  numbers_.push_back(number);
  choices_.insert(choices_.end(), choice.begin(), choice.end());
}

std::span<const std::uint32_t> Points::choice(std::size_t i) const {
  const std::size_t width = choices_.size() / numbers_.size();
  return std::span(choices_).subspan(i * width, width);
}

Point Points::operator[](std::size_t i) const {
  const auto chosen = choice(i);
  Point point = space_->at(Choice(chosen.begin(), chosen.end())).value();
  point.number = numbers_[i];
  return point;
}

std::optional<std::size_t> Points::find(const Choice& choice) const {
  for (std::size_t i = 0; i < size(); ++i)
    if (std::ranges::equal(this->choice(i), choice)) return i;
  return {};
}

}  // namespace orrery::explore
