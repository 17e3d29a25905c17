#include "scaled.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "lattice.hpp"
#include "orrery/base/error.hpp"

namespace orrery::synthesis {
namespace {

/// Returns the axis along which copies of the model lie: of those without roles the one with the fewest collectives,
/// the outermost of several.
std::size_t data_axis(const Model& model) {
  std::size_t best = model.axes.size();
  for (std::size_t a = 0; a < model.axes.size(); ++a)
    if (!model.axes[a].has_roles &&
        (best == model.axes.size() || model.axes[a].collectives <= model.axes[best].collectives))
      best = a;
  if (best == model.axes.size())
    throw Error(ErrorCode::bad_input, {.key = "--ranks"}, "ranks along each axis have different roles",
                "--scale with the axis that is to grow");
  return best;
}

std::uint32_t whole(double value, std::string_view option, std::size_t axis) {
  const double rounded = std::round(value);
  if (rounded < 1 || rounded > 1e9 || std::abs(rounded - value) > 1e-6 * value)
    throw Error(ErrorCode::bad_input, {.key = std::string(option)},
                fmt::format("axis a{} would have {:.6g} coordinates", axis, value), "a whole number of 1 or more");
  return static_cast<std::uint32_t>(rounded);
}

std::vector<double> factors_of(const Model& model, const Scale& scale) {
  std::vector<double> factors(model.axes.size(), 1);
  double npus = model.num_npus;
  for (const auto& [axis, factor] : scale.axes) {
    if (axis >= factors.size())
      throw Error(ErrorCode::bad_input, {.key = "--scale"}, fmt::format("axis a{}", axis),
                  fmt::format("an axis from a0 to a{}", factors.size() - 1));
    factors[axis] = factor;
    npus *= factor;
  }
  if (scale.npus && static_cast<double>(*scale.npus) != npus)
    factors[data_axis(model)] *= static_cast<double>(*scale.npus) / npus;
  return factors;
}

}  // namespace

std::uint32_t source_of(std::uint32_t i, std::uint32_t count, std::uint32_t learned) {
  const std::uint32_t least = std::min(count, learned);
  const std::uint32_t first = least - least / 2;
  if (i < first) return i;
  if (i >= count - (least - first)) return learned - (count - i);
  return std::min(first, learned - 1);
}

std::uint32_t ScaledAxes::role_of(std::uint32_t npu) const {
  std::uint32_t index = 0, factor = 1;
  for (std::size_t a = 0; a < axes.size(); ++a) {
    if (!axes[a].has_roles) continue;
    index += coordinate(npu, a) * factor;
    factor *= axes[a].size;
  }
  return role_table[index];
}

std::uint32_t ScaledAxes::peer_of(std::uint32_t npu, const Offsets& offsets) const {
  std::uint32_t peer = 0;
  for (std::size_t a = 0; a < axes.size(); ++a) {
    const auto size = static_cast<std::int64_t>(axes[a].size);
    const std::int64_t at = ((static_cast<std::int64_t>(coordinate(npu, a)) + offsets[a]) % size + size) % size;
    peer += static_cast<std::uint32_t>(at) * axes[a].stride;
  }
  return peer;
}

std::vector<std::vector<std::uint32_t>> ScaledAxes::members_along(std::uint32_t npu, const GroupShape& shape) const {
  std::vector<std::vector<std::uint32_t>> along;
  for (std::size_t a = 0; a < axes.size(); ++a)
    along.push_back(coordinates_of(shape.extents[a], coordinate(npu, a), axes[a].size));
  return along;
}

std::vector<NpuId> ScaledAxes::npus_at(const std::vector<std::vector<std::uint32_t>>& along) const {
  std::vector<std::uint32_t> numbers{0};
  for (std::size_t a = axes.size(); a-- > 0;) {
    std::vector<std::uint32_t> more;
    for (const auto number : numbers)
      for (const auto c : along[a]) more.push_back(number + c * axes[a].stride);
    numbers = std::move(more);
  }
  std::ranges::sort(numbers);
  std::vector<NpuId> result;
  for (const auto number : numbers) result.emplace_back(number);
  return result;
}

std::vector<std::uint32_t> ScaledAxes::one_of_each_role(const std::vector<std::vector<std::uint32_t>>& along) const {
  std::vector<std::vector<std::uint32_t>> chosen = along;
  for (std::size_t a = 0; a < axes.size(); ++a)
    if (!axes[a].has_roles && chosen[a].size() > 1) chosen[a].erase(chosen[a].begin() + 1, chosen[a].end());
  std::vector<std::uint32_t> result;
  for (const NpuId npu : npus_at(chosen)) result.push_back(npu.value());
  return result;
}

ScaledAxes scale_axes(const Model& model, const Scale& scale) {
  ScaledAxes scaled;
  scaled.factors = factors_of(model, scale);
  std::uint32_t table = 1;
  for (std::size_t a = 0; a < model.axes.size(); ++a) {
    Axis axis = model.axes[a];
    axis.size = whole(axis.size * scaled.factors[a],
                      scale.axes.contains(static_cast<std::uint32_t>(a)) ? "--scale" : "--ranks", a);
    if (axis.is_pipeline && model.axes[a].size < 3 && axis.size > model.axes[a].size)
      throw Error(ErrorCode::bad_input, {.key = "--scale"},
                  fmt::format("axis a{} is a pipeline of {} stages, which has none in the middle to repeat", a,
                              model.axes[a].size),
                  "another axis, or traces of 3 stages or more");
    axis.stride = scaled.num_npus;
    if (std::uint64_t{scaled.num_npus} * axis.size > 1U << 30U)
      throw Error(ErrorCode::bad_input, {.key = "--scale"}, "more than 2^30 ranks", "smaller factors");
    scaled.num_npus *= axis.size;
    if (axis.has_roles) table *= axis.size;
    scaled.axes.push_back(axis);
  }
  for (std::uint32_t i = 0; i < table; ++i) {
    std::uint32_t rest = i, index = 0, factor = 1;
    for (std::size_t a = 0; a < model.axes.size(); ++a) {
      const Axis &axis = scaled.axes[a], &learned = model.axes[a];
      if (!axis.has_roles) continue;
      const std::uint32_t c = rest % axis.size;
      rest /= axis.size;
      index += (axis.is_pipeline ? source_of(c, axis.size, learned.size) : c % learned.size) * factor;
      factor *= learned.size;
    }
    scaled.role_table.push_back(model.role_table[index]);
  }
  return scaled;
}

std::uint32_t num_npus_of(const Model& model, const Scale& scale) { return scale_axes(model, scale).num_npus; }

}  // namespace orrery::synthesis
