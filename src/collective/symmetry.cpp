#include "symmetry.hpp"

#include <algorithm>

namespace orrery::collective {
namespace {

/// Returns whether rotating the positions of all groups of an axis, or xor-ing them with one number, changes nothing
/// that the algorithms see. Groups of the other axes then go to groups that are alike.
bool is_symmetric(const Axis& axis, const std::vector<Phase>& phases, const Rules& rules) {
  Symmetry common{.rotation = axis.circulant, .exchange = axis.transitive};
  for (const Phase& phase : phases) {
    if (phase.axis != &axis) continue;
    const auto algorithms = make_algorithms(phase.shape, axis.size, rules);
    for (const auto& algorithm : {algorithms.even, algorithms.odd}) {
      if (!algorithm) continue;
      const Symmetry symmetry = algorithm->symmetry();
      common.rotation = common.rotation && symmetry.rotation;
      common.exchange = common.exchange && symmetry.exchange;
    }
  }
  return common.rotation || common.exchange;
}

/// Returns the least divisor of the axis' size after which the signatures repeat in all groups.
std::uint32_t period(const Axis& axis, std::span<const std::uint32_t> signatures) {
  for (std::uint32_t p = 1; p < axis.size; ++p) {
    if (axis.size % p != 0) continue;
    bool repeats = true;
    for (std::size_t group = 0; repeats && group < axis.members.size(); group += axis.size)
      for (std::uint32_t i = p; repeats && i < axis.size; ++i)
        repeats = signatures[axis.members[group + i]] == signatures[axis.members[group + i - p]];
    if (repeats) return p;
  }
  return axis.size;
}

}  // namespace

std::vector<std::uint32_t> equivalence_classes(std::span<const Axis* const> axes, const std::vector<Phase>& phases,
                                               const Rules& rules, std::span<const std::uint32_t> signatures) {
  std::vector<std::uint32_t> result(signatures.size(), 0);
  std::uint32_t stride = 1;
  for (const Axis* const axis : axes) {
    const std::uint32_t p = is_symmetric(*axis, phases, rules) ? period(*axis, signatures) : axis->size;
    for (std::size_t cell = 0; cell < axis->members.size(); ++cell)
      result[axis->members[cell]] += static_cast<std::uint32_t>(cell % axis->size % p) * stride;
    stride *= p;
  }
  return result;
}

}  // namespace orrery::collective
