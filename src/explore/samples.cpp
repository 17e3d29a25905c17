#include "orrery/explore/samples.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace orrery::explore {
namespace {

constexpr int most_in_vain = 1000;  // draws in a row

/// Returns a number of six digits: more say nothing of a design.
double rounded(double number) {
  if (number == 0) return 0;
  const double digit = std::pow(10, std::floor(std::log10(std::abs(number))) - 5);
  return digit < 1 ? std::round(number * std::round(1 / digit)) / std::round(1 / digit)
                   : std::round(number / digit) * digit;
}

double number_at(const Interval& interval, double share) {
  const double number = interval.is_log ? interval.from * std::pow(interval.to / interval.from, share)
                                        : interval.from + (interval.to - interval.from) * share;
  return std::clamp(rounded(number), interval.from, interval.to);
}

double share_at(const Interval& interval, double number) {
  if (interval.from == interval.to) return 0;
  return interval.is_log ? std::log(number / interval.from) / std::log(interval.to / interval.from)
                         : (number - interval.from) / (interval.to - interval.from);
}

}  // namespace

Sampler::Sampler(Space& space)
    : space_(space),
      sequence_(make_sequence(space.study().strategy, space.study().sampling, space.study().parameters.size())) {}
Sampler::~Sampler() = default;

Choice Sampler::choice_at(const std::vector<double>& at) {
  Choice choice;
  for (std::size_t p = 0; p < space_.study().parameters.size(); ++p) {
    const Parameter& parameter = space_.study().parameters[p];
    if (parameter.interval) {
      choice.push_back(
          space_.add_value(p, fmt::format("{}{}", number_at(*parameter.interval, at[p]), parameter.interval->unit)));
      continue;
    }
    const std::size_t values = parameter.values.size();
    choice.push_back(static_cast<std::uint32_t>(
        std::min(values - 1, static_cast<std::size_t>(at[p] * static_cast<double>(values)))));
  }
  return choice;
}

std::vector<double> Sampler::place_of(std::span<const std::uint32_t> choice) const {
  std::vector<double> at;
  for (std::size_t p = 0; p < choice.size(); ++p) {
    const Parameter& parameter = space_.study().parameters[p];
    if (choice[p] == otherwise) {
      at.push_back(0.5);
    } else if (parameter.interval) {
      const std::string& text = space_.text(p, choice[p]);
      const std::string number = text.substr(0, text.size() - parameter.interval->unit.size());
      at.push_back(share_at(*parameter.interval, as_real(value_of(number))));
    } else {
      at.push_back((choice[p] + 0.5) / static_cast<double>(parameter.values.size()));
    }
  }
  return at;
}

template <class Place>
void Sampler::add_samples(std::uint64_t first, Place place, Points& points, Funnel& funnel) {
  const Study& study = space_.study();
  funnel.cut.resize(study.constraints.size());
  std::set<Choice> known;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto choice = points.choice(i);
    known.emplace(choice.begin(), choice.end());
  }
  bool is_any_legal = false;
  std::vector<std::uint64_t> cut(study.constraints.size());  // of the draws in vain
  for (int in_vain = 0; points.size() < first + study.sampling.samples && in_vain < most_in_vain; ++in_vain) {
    ++funnel.raw;
    std::size_t cut_by = 0;
    const auto point = space_.at(choice_at(place(sequence_->draw(next_++))), &cut_by);
    if (!point) {
      ++funnel.cut[cut_by];
      ++cut[cut_by];
      continue;
    }
    is_any_legal = true;
    if (!known.insert(point->choice).second) {
      ++funnel.alike;
      continue;
    }
    points.add(points.size(), point->choice);
    ++funnel.legal;
    in_vain = -1;
    is_any_legal = false;
    std::ranges::fill(cut, 0);
  }
  if (points.size() == first + study.sampling.samples || is_any_legal) return;
  std::string counts;
  for (std::size_t i = 0; i < cut.size(); ++i)
    if (cut[i] > 0)
      counts += fmt::format("{}{} by {}", counts.empty() ? "" : ", ", cut[i], study.constraints[i].text());
  throw Error(ErrorCode::bad_input, study.parameters.front().place,
              fmt::format("{} draws in a row are not legal: {}", most_in_vain, cited(counts, 1000)),
              "constraints that more combinations keep",
              "Let derived values follow from parameters instead of drawing them, or take strategy: {kind: grid}.");
}

void Sampler::draw(Points& points, Funnel& funnel) {
  add_samples(
      points.size(), [](std::vector<double> at) { return at; }, points, funnel);
}

void Sampler::refine(std::uint32_t round, std::span<const std::size_t> around, Points& points, Funnel& funnel) {
  std::vector<std::vector<double>> centers;
  for (const std::size_t i : around) centers.push_back(place_of(points.choice(i)));
  if (centers.empty()) return;
  const double width = std::pow(space_.study().sampling.factor, -static_cast<double>(round));
  const auto place = [&](std::vector<double> at) {
    const auto& center = centers[next_ % centers.size()];
    for (std::size_t i = 0; i < at.size(); ++i)
      at[i] = std::clamp(center[i] + (at[i] - 0.5) * width, 0.0, std::nextafter(1.0, 0.0));
    return at;
  };
  add_samples(points.size(), place, points, funnel);
}

}  // namespace orrery::explore
