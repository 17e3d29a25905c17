#include "sizes.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>

#include "orrery/base/distribution.hpp"
#include "orrery/base/mix.hpp"

namespace orrery::synthesis {
namespace {

constexpr std::size_t min_events = 5;
constexpr std::uint64_t draws_of_alike = ~std::uint64_t{0};    // what draws of sizes without an order are for
constexpr std::uint64_t draws_of_spread = draws_of_alike - 1;  // likewise of spreads, less the field
constexpr std::uint64_t draws_of_tensors = draws_of_alike - 9;
using Fields = std::array<double, 3>;  // FLOPs, bytes, ps

/// Draws that depend on nothing but the seed and what they are for.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : seed_(seed) {}
  /// Returns a number above 0 and below 1.
  double uniform(std::uint64_t what, std::uint64_t number) const {
    return (static_cast<double>(mix(mix(seed_, what), number) >> 11U) + 0.5) * 0x1p-53;
  }
  std::uint64_t word(std::uint64_t what, std::uint64_t number) const { return mix(mix(seed_, what), number); }

 private:
  std::uint64_t seed_;
};

Fields fields(const SketchPoint& point) { return {point.flops, point.bytes, point.ps}; }

Fields mean_fields_of(const Sketch& sketch) {
  Fields mean{};
  for (const SketchPoint& point : sketch.points)
    for (std::size_t f = 0; f < mean.size(); ++f) mean[f] += point.weight * fields(point)[f];
  return mean;
}

/// Returns which point of a sketch each of these nodes has: as many of each as its weight says, ascending by the ranks
/// of their slots, and in drawn order within a slot.
std::vector<std::uint32_t> deal(const Sketch& sketch, std::span<const std::uint32_t> ranks, const Draws& draws,
                                std::uint64_t what) {
  const std::size_t count = ranks.size();
  std::vector<std::tuple<std::uint32_t, std::uint64_t, std::size_t>> order;
  for (std::size_t n = 0; n < count; ++n) order.emplace_back(ranks[n], draws.word(what, n), n);
  std::ranges::sort(order);
  std::vector<std::uint32_t> points(count);
  double before = 0;
  std::size_t dealt = 0;
  for (std::uint32_t p = 0; p < sketch.points.size(); ++p) {
    before += sketch.points[p].weight;
    const auto until =
        p + 1 == sketch.points.size()
            ? count
            : std::min(count, static_cast<std::size_t>(std::llround(before * static_cast<double>(count))));
    for (; dealt < until; ++dealt) points[std::get<2>(order[dealt])] = p;
  }
  return points;
}

/// The nodes whose sum is kept.
struct Sum {
  std::vector<std::uint32_t> nodes;  ///< the lowest of each event
  Fields should{};
};

double rounded(double value, bool to_digits) { return to_digits ? to_three_digits(value) : std::round(value); }

/// Returns the number nearest to a rounded one that is not to be avoided: among those that differ from it in the fourth
/// digit, or for small ones by 1 up to 2 %. Above, if what was carried says so. The number itself if all are avoided.
double not_avoided(double value, double carry, const std::unordered_set<std::uint64_t>& avoid) {
  const double unit = std::max(1.0, std::pow(10, std::floor(std::log10(value)) - 3));
  for (double k = 0; k < 10 && k * unit <= value / 50; ++k)
    for (const double sign : {carry < 0 ? -1.0 : 1.0, carry < 0 ? 1.0 : -1.0})
      if (const double near = value + sign * k * unit; !avoid.contains(static_cast<std::uint64_t>(near))) return near;
  return value;
}

/// Scales values so that their sum is as it should be, and rounds them; what rounding takes or adds is carried on.
void settle(const Sum& sum, std::vector<Fields>& values, const Obfuscation& obfuscation) {
  const bool to_digits = obfuscation.changes_sizes();
  for (std::size_t f = 0; f < 3; ++f) {
    double total = 0, carry = 0;
    for (const auto node : sum.nodes) total += values[node][f];
    const double scale = total > 0 && sum.nodes.size() >= min_events ? sum.should[f] / total : 1;
    for (const auto node : sum.nodes) {
      double& value = values[node][f];
      if (value <= 0) continue;
      // A size takes no more than a rounding of its own of what others left over.
      const double own = value * scale, taken = std::abs(carry) <= own / 200 ? carry : 0;
      value = std::max(1.0, rounded(std::max(1.0, own + taken), to_digits));
      if (to_digits && obfuscation.avoid != nullptr) value = not_avoided(value, carry, *obfuscation.avoid);
      carry += own - value;
    }
  }
}

}  // namespace

namespace {

/// Returns the factor of all numbers of a field that are about `mean`. Sizes that differ by less than a tenth, as those
/// of the layers of other stages, mostly have one.
double spread_of_field(double mean, std::size_t field, const Obfuscation& obfuscation) {
  if (obfuscation.spread <= 0 || mean <= 0) return 1;
  const auto about = static_cast<std::uint64_t>(std::llround(10 * std::log(1 + mean)));
  const double u = Draws(obfuscation.seed).uniform(draws_of_spread - field, about);
  return std::exp(obfuscation.spread * normal_quantile(u));
}

}  // namespace

std::array<double, 3> spread_of(const Sketch& sketch, const Obfuscation& obfuscation) {
  const Fields mean = mean_fields_of(sketch);
  Fields spread{};
  for (std::size_t f = 0; f < spread.size(); ++f) spread[f] = spread_of_field(mean[f], f, obfuscation);
  return spread;
}

std::uint64_t tensor_bytes(const HeldTensor& tensor, double factor, const Obfuscation& obfuscation) {
  const auto bytes = static_cast<double>(tensor.bytes);
  const double own = bytes * factor * spread_of_field(bytes, 1, obfuscation);
  const double u = Draws(obfuscation.seed).uniform(draws_of_tensors, tensor.bytes);
  const double noise = obfuscation.delta > 0 ? std::exp(obfuscation.delta * normal_quantile(u)) : 1;
  double value = std::max(1.0, rounded(own * noise, obfuscation.changes_sizes()));
  if (obfuscation.changes_sizes() && obfuscation.avoid != nullptr) value = not_avoided(value, 0, *obfuscation.avoid);
  return static_cast<std::uint64_t>(value);
}

double to_three_digits(double value) {
  if (value < 1000) return std::round(value);
  const double unit = std::pow(10, std::floor(std::log10(value)) - 2);
  return std::round(value / unit) * unit;
}

namespace {

/// Draws the sizes of events, sketch by sketch, and then scales them so that sums over events are kept.
class SizeDrawing {
 public:
  SizeDrawing(const Model& model, const ScaledAxes& axes, const Events& events, std::span<const ScaledProgram> programs,
              double factor, const Obfuscation& obfuscation)
      : model_(model),
        axes_(axes),
        events_(events),
        factor_(factor),
        obfuscation_(obfuscation),
        draws_(obfuscation.seed),
        values_(events.of_node.size()) {
    for (std::uint32_t role = 0; role < programs.size(); ++role)
      for (const ProgramNode& node : programs[role].nodes) nodes_.push_back({node.slot, role});
  }

  void draw() {
    const std::vector<std::vector<std::uint32_t>> by_sketch = events_by_sketch();
    for (std::size_t s = 0; s < by_sketch.size(); ++s) draw_sketch(s, by_sketch[s]);
  }

  void keep_sums() {
    for (auto& [key, sum] : sums_) {
      std::ranges::sort(sum.nodes);
      settle(sum, values_, obfuscation_);
    }
  }

  /// Returns the sizes of all nodes, where those of one event have equal ones.
  std::vector<Sizes> sizes() const {
    std::vector<Sizes> sizes;
    for (const std::uint32_t event : events_.of_node) {
      const Fields& value = values_[event];
      sizes.push_back({static_cast<std::uint64_t>(value[0]), static_cast<std::uint64_t>(value[1]),
                       static_cast<std::int64_t>(value[2])});
    }
    return sizes;
  }

 private:
  struct Node {
    const Slot* slot;
    std::uint32_t role;  ///< index of its program
  };
  using SumKey = std::pair<std::uint32_t, std::uint32_t>;

  /// Returns the lowest nodes of all events by their sketches.
  std::vector<std::vector<std::uint32_t>> events_by_sketch() const {
    std::vector<std::vector<std::uint32_t>> by_sketch(model_.sketches.size());
    for (std::uint32_t k = 0; k < events_.of_node.size(); ++k)
      if (events_.of_node[k] == k) by_sketch[nodes_[k].slot->sketch].push_back(k);
    return by_sketch;
  }

  void draw_sketch(std::size_t s, std::span<const std::uint32_t> nodes) {
    const Sketch& sketch = model_.sketches[s];
    const Fields mean = mean_fields_of(sketch);
    const Fields spread = spread_of(sketch, obfuscation_);
    std::vector<std::uint32_t> ranks;
    for (const std::uint32_t node : nodes) ranks.push_back(nodes_[node].slot->rank);
    const auto points = deal(sketch, ranks, draws_, 2 * s);
    for (std::size_t n = 0; n < points.size(); ++n) {
      const std::uint32_t node = nodes[n];
      const double scale = scale_of(node);
      // What has no order of its own has one size wherever it stands, and none that a sum would take back.
      const bool is_ordered = events_.is_ordered[node] != 0;
      const Fields drawn = is_ordered ? fields(sketch.points[points[n]]) : mean;
      const double u = is_ordered ? draws_.uniform(2 * s + 1, n)
                                  : draws_.uniform(draws_of_alike, static_cast<std::uint64_t>(std::llround(mean[1])));
      const double noise = obfuscation_.delta > 0 ? std::exp(obfuscation_.delta * normal_quantile(u)) : 1;
      Sum& sum = sums_[sum_of(node)];
      sum.nodes.push_back(node);
      for (std::size_t f = 0; f < 3; ++f) {
        values_[node][f] = drawn[f] * scale * noise * spread[f];
        sum.should[f] += mean[f] * scale * spread[f];
      }
    }
  }

  /// Returns by what the sizes of a node grow with the axes.
  double scale_of(std::uint32_t node) const {
    double scale = factor_;
    for (std::size_t a = 0; a < axes_.factors.size(); ++a)
      scale *= std::pow(axes_.factors[a], nodes_[node].slot->exponents[a]);
    return scale;
  }

  /// Returns the sum that a node counts in: compute nodes of a role, other nodes of a family, or the node alone.
  SumKey sum_of(std::uint32_t node) const {
    if (events_.is_ordered[node] == 0) return {2, node};
    const bool is_compute = model_.families[nodes_[node].slot->family].kind == trace::NodeKind::compute;
    return is_compute ? SumKey(0, nodes_[node].role) : SumKey(1, nodes_[node].slot->family);
  }

  const Model& model_;
  const ScaledAxes& axes_;
  const Events& events_;
  double factor_;
  const Obfuscation& obfuscation_;
  Draws draws_;
  std::vector<Node> nodes_;
  std::vector<Fields> values_;  // [nodes] of the lowest node of each event
  std::map<SumKey, Sum> sums_;
};

}  // namespace

std::vector<Sizes> draw_sizes(const Model& model, const ScaledAxes& axes, const Events& events,
                              std::span<const ScaledProgram> programs, double factor, const Obfuscation& obfuscation) {
  SizeDrawing drawing(model, axes, events, programs, factor, obfuscation);
  drawing.draw();
  drawing.keep_sums();
  return drawing.sizes();
}

}  // namespace orrery::synthesis
