#include "capacity_warnings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "orrery/base/text.hpp"
#include "orrery/network/packet_graph.hpp"
#include "orrery/topology/wiring.hpp"

namespace orrery::run {
namespace {

constexpr double rounding = 1e-6;

/// Says why times may be shorter than links allow in a network that does not simulate them.
std::string_view reason_for_short_times(const config::Configuration& configuration) {
  if (configuration.collectives.library.library && !configuration.collectives.library.relative)
    return "a library says what whole collectives take";
  if (configuration.rule_set == config::RuleSet::astra_sim)
    return "each message has all of the bandwidth under rules: astra-sim";
  return "collectives and messages that meet do not share links in the congestion-unaware network";
}

/// Returns the bytes per ns that an NPU can send over all of its links at the most.
double injection_bandwidth(const config::Configuration& configuration) {
  double fastest = 1;
  for (const auto& slow : configuration.perturbation.links) fastest *= std::max(1.0, slow.port.bandwidth);
  double sum = 0;
  for (const topology::Dimension& dimension : configuration.dimensions) {
    if (dimension.size == 1) continue;
    const auto wiring = topology::make_wiring(dimension);
    const auto links = static_cast<double>(wiring->num_injection_links()) / dimension.size;
    sum += std::max(links, 1.0) * dimension.bandwidth_of_links().bytes_per_ns();
  }
  return sum * fastest;
}

}  // namespace

std::vector<std::string> capacity_warnings(const results::Gathered& all, const config::Configuration& configuration) {
  std::vector<std::string> warnings;
  const network::Options& network = configuration.execution.network;
  if (!all.metrics || network.model->simulates_links() || network.graph) return warnings;
  const std::string_view reason = reason_for_short_times(configuration);
  constexpr std::string_view remedy = "--network=congestion-aware simulates every link";
  for (std::size_t d = 0; d < all.metrics->utilisation.size(); ++d)
    if (all.metrics->utilisation[d] > 1 + rounding)
      warnings.push_back(fmt::format(
          "dimension {} would have to be busy {:.0f} % of the time: the times do not respect its bandwidth, as {}. {}",
          d, 100 * all.metrics->utilisation[d], reason, remedy));
  const auto [most, sender] = all.npus.most(&npu::NpuRecord::bytes_sent);
  const double least_ns = static_cast<double>(most.bytes_sent.count()) / injection_bandwidth(configuration);
  const double took_ns = static_cast<double>(all.metrics->step_time.ps()) * all.metrics->iterations / 1e3;
  if (warnings.empty() && least_ns > took_ns * (1 + rounding))
    warnings.push_back(
        fmt::format("NPU {} sends {} in {}, which is more than its links carry: the times do not respect their "
                    "bandwidth, as {}. {}",
                    sender.value(), size_text(most.bytes_sent.count(), 0),
                    readable(Time::from_ps(static_cast<std::int64_t>(took_ns * 1e3))), reason, remedy));
  return warnings;
}

}  // namespace orrery::run
