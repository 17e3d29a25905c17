#include "orrery/base/variations.hpp"

#include <utility>

#include "orrery/base/mix.hpp"

namespace orrery {
namespace {

/// Keeps these draws apart from all others that are keyed by a seed.
constexpr std::uint64_t purpose = 0x6f72726572792e76U;

}  // namespace

void Variations::add(Variation variation) {
  has_[static_cast<std::size_t>(variation.per)] = true;
  all_.push_back(std::move(variation));
}

double Variations::factor(DrawnPer per, const DrawKey& key) const {
  double factor = 1;
  if (!has(per)) return factor;
  for (std::size_t i = 0; i < all_.size(); ++i) {
    const Variation& variation = all_[i];
    if (variation.per != per) continue;
    const std::uint64_t first = per == DrawnPer::machine ? key.first / variation.machine_size : key.first;
    const std::uint64_t bits = mix(mix(mix(mix(mix(purpose, seed), i), first), key.second), key.third);
    factor *= variation.distribution.quantile(static_cast<double>(bits >> 11U) * 0x1p-53);  // of [0, 1)
  }
  return factor;
}

double Variations::lowest(DrawnPer per) const {
  double factor = 1;
  for (const Variation& variation : all_)
    if (variation.per == per) factor *= variation.distribution.lowest();
  return factor;
}

}  // namespace orrery
