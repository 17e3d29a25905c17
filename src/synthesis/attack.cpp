#include "orrery/synthesis/attack.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>
#include <vector>

namespace orrery::synthesis {
namespace {

using trace::NodeKind;

/// The sizes of a kind of node in one field that are not 0.
struct AttackedSizes {
  double count = 0, sum = 0, least = std::numeric_limits<double>::infinity(), most = 0;

  void add(double size) {
    if (!(size > 0)) return;
    ++count;
    sum += size;
    least = std::min(least, size);
    most = std::max(most, size);
  }
};

using AttackedKey = std::tuple<NodeKind, int, int>;  // kind, collective, field

std::map<AttackedKey, AttackedSizes> attacked_sizes(const trace::Graph& graph) {
  std::map<AttackedKey, AttackedSizes> sizes;
  for (std::uint32_t i = 0; i < graph.num_nodes(); ++i) {
    const trace::Node& node = graph.nodes[i];
    const int collective = node.is_of_group() ? static_cast<int>(node.collective) : -1;
    const double flops = node.kind == NodeKind::compute ? static_cast<double>(node.detail) : 0;
    const auto ps = static_cast<double>(graph.duration_of(NodeId(i)).ps());
    int field = 0;
    for (const double size : {flops, static_cast<double>(node.size), ps})
      if (const int own = field++; size > 0) sizes[{node.kind, collective, own}].add(size);
  }
  return sizes;
}

bool attacker_uses(Attacker attacker, Measure measure) {
  return attacker == Attacker::all || measure == Measure::spread || measure == Measure::ratio;
}

double value_of(const Features& features, const FeatureKey& key) {
  const auto found = features.find(key);
  return found == features.end() ? 0 : found->second;
}

}  // namespace

Features features_of(std::span<const trace::NpuTrace> traces) {
  Features features;
  for (const bool is_last : {false, true}) {
    const auto sizes = attacked_sizes(is_last ? *traces.back().graph : *traces.front().graph);
    double counts = 0, means = 0;
    for (const auto& [key, of_key] : sizes) {
      counts += std::log(of_key.count);
      means += std::log(of_key.sum / of_key.count);
    }
    const auto number = static_cast<double>(sizes.size());
    for (const auto& [key, of_key] : sizes) {
      const auto [kind, collective, field] = key;
      const double count = std::log(of_key.count), mean = std::log(of_key.sum / of_key.count);
      const auto add = [&, kind = kind, collective = collective, field = field](Measure measure, double value) {
        features[{is_last, kind, collective, field, measure}] = value;
      };
      add(Measure::count, count);
      add(Measure::mean, mean);
      add(Measure::spread, std::log(of_key.most / of_key.least));
      add(Measure::share, count - counts / number);
      add(Measure::ratio, mean - means / number);
    }
  }
  return features;
}

std::size_t nearest(std::span<const Features> known, const Features& seen, Attacker attacker) {
  std::set<FeatureKey> keys;
  for (const Features& features : known)
    for (const auto& [key, value] : features)
      if (attacker_uses(attacker, key.measure)) keys.insert(key);
  std::vector<double> distances(known.size());
  const auto number = static_cast<double>(known.size());
  for (const FeatureKey& key : keys) {
    double mean = 0, variance = 0;
    for (const Features& features : known) mean += value_of(features, key) / number;
    for (const Features& features : known) variance += std::pow(value_of(features, key) - mean, 2) / number;
    const double deviation = std::sqrt(variance);
    if (deviation <= 1e-9) continue;
    for (std::size_t i = 0; i < known.size(); ++i)
      distances[i] += std::abs(value_of(known[i], key) - value_of(seen, key)) / deviation;
  }
  return static_cast<std::size_t>(std::ranges::min_element(distances) - distances.begin());
}

}  // namespace orrery::synthesis
