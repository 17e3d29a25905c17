#include "symmetry.hpp"

#include <algorithm>

namespace orrery::collective {
namespace {

/// Turning all lines of an axis by the same number of places, or xor-ing their places with the same number, changes
/// nothing that the algorithms see. Lines of the other axes go to lines that are alike.
bool can_be_turned(const Axis& axis, const std::vector<Phase>& phases) {
  bool rotates = axis.circulant, exchanges = axis.transitive;
  for (const Phase& phase : phases) {
    if (phase.axis != &axis) continue;
    const auto kind = phase.shape.algorithm.kind;
    if (kind == AlgorithmKind::in_switch) continue;  // all places are alike, however they are numbered
    rotates = rotates && (kind == AlgorithmKind::ring || kind == AlgorithmKind::direct);
    exchanges = exchanges && kind == AlgorithmKind::halving_doubling;
  }
  return rotates || exchanges;
}

/// The least divisor of the axis' size after which the marks repeat in all lines.
std::uint32_t period(const Axis& axis, std::span<const std::uint32_t> marks) {
  for (std::uint32_t p = 1; p < axis.size; ++p) {
    if (axis.size % p != 0) continue;
    bool repeats = true;
    for (std::size_t line = 0; repeats && line < axis.members.size(); line += axis.size)
      for (std::uint32_t i = p; repeats && i < axis.size; ++i)
        repeats = marks[axis.members[line + i]] == marks[axis.members[line + i - p]];
    if (repeats) return p;
  }
  return axis.size;
}

}  // namespace

std::vector<std::uint32_t> equivalence_classes(std::span<const Axis* const> axes, const std::vector<Phase>& phases,
                                               std::span<const std::uint32_t> marks) {
  std::vector<std::uint32_t> result(marks.size(), 0);
  std::uint32_t stride = 1;
  for (const Axis* const axis : axes) {
    const std::uint32_t p = can_be_turned(*axis, phases) ? period(*axis, marks) : axis->size;
    for (std::size_t at = 0; at < axis->members.size(); ++at)
      result[axis->members[at]] += static_cast<std::uint32_t>(at % axis->size % p) * stride;
    stride *= p;
  }
  return result;
}

}  // namespace orrery::collective
