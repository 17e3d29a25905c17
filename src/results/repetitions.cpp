#include "orrery/results/repetitions.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "columns.hpp"
#include "tables.hpp"

namespace orrery::results {
namespace {

constexpr double confidence = 0.95;

/// Returns the probability that |t| of Student's distribution is below sqrt(freedom) * tan(angle): sums of powers of
/// the cosine, of which each term follows from the one before.
double share_within(std::uint64_t freedom, double angle) {
  const double sine = std::sin(angle), cosine = std::cos(angle);
  const bool is_odd = freedom % 2 == 1;
  if (freedom == 1) return 2 * angle / std::numbers::pi;
  double term = is_odd ? cosine : 1, sum = term;
  for (std::uint64_t k = is_odd ? 3 : 2; k + 1 < freedom; k += 2) {
    term *= cosine * cosine * static_cast<double>(k - 1) / static_cast<double>(k);
    sum += term;
  }
  return is_odd ? 2 / std::numbers::pi * (angle + sine * sum) : sine * sum;
}

const std::array<Column<Repetition>, 2> columns{{
    {"seed", {"1", "seed", "seed of what was drawn"}, [](const Repetition& repetition) { return repetition.seed; }},
    {"simulated_time",
     {"ps", "simulated time", "the latest finish time of an NPU"},
     [](const Repetition& repetition) { return repetition.simulated_time.ps(); }},
}};

}  // namespace

double student_t(std::uint64_t freedom, double confidence) {
  double low = 0, high = std::numbers::pi / 2;
  for (int halving = 0; halving < 60; ++halving) {
    const double angle = (low + high) / 2;
    (share_within(freedom, angle) < confidence ? low : high) = angle;
  }
  return std::sqrt(static_cast<double>(freedom)) * std::tan(low);
}

RepetitionFigures figures_of(std::span<const Repetition> repetitions) {
  const auto count = static_cast<double>(repetitions.size());
  const auto time = [](const Repetition& repetition) { return static_cast<double>(repetition.simulated_time.ps()); };
  RepetitionFigures figures;
  for (const Repetition& repetition : repetitions) figures.mean += time(repetition) / count;
  for (const Repetition& repetition : repetitions)
    figures.deviation += (time(repetition) - figures.mean) * (time(repetition) - figures.mean);
  figures.deviation = std::sqrt(figures.deviation / (count - 1));
  const auto [least, most] = std::ranges::minmax_element(repetitions, {}, &Repetition::simulated_time);
  figures.least = time(*least);
  figures.most = time(*most);
  const double half = student_t(repetitions.size() - 1, confidence) * figures.deviation / std::sqrt(count);
  figures.low = figures.mean - half;
  figures.high = figures.mean + half;
  return figures;
}

void write_repetitions(Output& output, std::span<const Repetition> repetitions) {
  if (repetitions.size() < 2) return;
  output.on_root([&](File& file) {
    const std::string group = "/repetitions";
    file.group(group, "runs that differ in the seed of what is drawn; all other groups are of the first one");
    write_table(file, group, columns, "repetition", {"1", "repetition", "number of the repetition"}, repetitions);
    const RepetitionFigures figures = figures_of(repetitions);
    file.attribute(group, "mean", figures.mean);
    file.attribute(group, "standard_deviation", figures.deviation);
    file.attribute(group, "minimum", figures.least);
    file.attribute(group, "maximum", figures.most);
    file.attribute(group, "confidence", confidence);
    file.attribute(group, "confidence_low", figures.low);
    file.attribute(group, "confidence_high", figures.high);
  });
}

}  // namespace orrery::results
