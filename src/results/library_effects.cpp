// How far the times of a library decide the time of a step.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <tuple>

#include "orrery/collective/library.hpp"
#include "orrery/results/metrics.hpp"

namespace orrery::results {
namespace {

constexpr auto last_kind = static_cast<std::uint32_t>(collective::ResourceKind::channels);

/// The sums of collectives with one cause.
struct SumsOfCause {
  std::map<std::pair<LibrarySum::What, std::uint32_t>, SumOfTimes> sums;

  double of(LibrarySum::What what, std::uint32_t index = 0) const {
    const auto found = sums.find({what, index});
    return found == sums.end() ? 0 : static_cast<double>(found->second);
  }
};

std::string bound_name(std::uint32_t index) {
  using collective::Resource, collective::ResourceKind;
  if (index <= last_kind) return name(Resource{.kind = static_cast<ResourceKind>(index)});
  return name(Resource{.kind = ResourceKind::dimension, .dimension = index - last_kind - 1});
}

}  // namespace

std::uint32_t bound_number(std::uint8_t kind, std::uint32_t dimension) {
  return kind == static_cast<std::uint8_t>(collective::ResourceKind::dimension) ? last_kind + 1 + dimension : kind;
}

std::optional<LibraryEffects> library_effects(std::span<const LibrarySum> sums, const BreakdownOf<double>& breakdown,
                                              std::size_t num_dimensions) {
  using What = LibrarySum::What;
  std::map<npu::Cause, SumsOfCause> causes;
  for (const LibrarySum& sum : sums) causes[sum.cause].sums[{sum.what, sum.index}] += sum.time;
  if (causes.empty()) return {};
  LibraryEffects effects{0, std::vector<double>(num_dimensions, 0), {}};
  double squares = 0, all_exposed = 0;
  std::map<std::uint32_t, double> bounds;
  for (const auto& [cause, of] : causes) {
    const double time = of.of(What::time);
    const double exposed = breakdown[first_cause_part + static_cast<std::size_t>(cause)];
    if (time <= 0 || exposed <= 0) continue;
    all_exposed += exposed;
    squares += std::pow(exposed * of.of(What::error) / time, 2);
    for (std::uint32_t d = 0; d < num_dimensions; ++d)
      effects.more_bandwidth[d] += exposed * of.of(What::saved, d) / time;
    for (const auto& [key, value] : of.sums)
      if (key.first == What::bound) bounds[key.second] += exposed * static_cast<double>(value) / time;
  }
  effects.error = std::sqrt(squares);
  for (const auto& [index, share] : bounds) effects.bounds.emplace_back(bound_name(index), share / all_exposed);
  std::ranges::stable_sort(effects.bounds, std::greater(), &std::pair<std::string, double>::second);
  return effects;
}

}  // namespace orrery::results
