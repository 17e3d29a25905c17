#include "listed_reductions.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace orrery::network {

ListedReductions::ListedReductions(const FlowScenario& scenario)
    : scenario_(scenario),
      trees_(scenario.graph, scenario.rules.reduction, scenario.failures),
      numbers_(scenario.reductions.size()),
      by_number_(scenario.reductions.size()),
      times_(scenario.reductions.size()) {
  using Hosts = std::vector<std::uint32_t>;
  std::map<Hosts, std::uint32_t> first_trees;                    // first trees of communicators
  std::map<std::pair<std::uint32_t, Hosts>, std::uint32_t> own;  // trees of the list, for the hosts of a reduction
  for (const ReductionSpec& reduction : scenario.reductions) {
    if (scenario.trees.empty()) {
      const auto [found, is_new] = first_trees.try_emplace(reduction.hosts, 0);
      if (is_new) found->second = trees_.add_communicator(reduction.hosts, 0);
      trees_of_.push_back(found->second + reduction.tree % scenario.rules.reduction.trees);
      continue;
    }
    const auto [found, is_new] = own.try_emplace({reduction.tree, reduction.hosts}, 0);
    if (is_new) found->second = trees_.add_tree(scenario.trees[reduction.tree], reduction.hosts, reduction.tree);
    trees_of_.push_back(found->second);
  }
  trees_.finish();
  std::iota(by_number_.begin(), by_number_.end(), 0U);
  std::ranges::stable_sort(by_number_, {},
                           [&](std::uint32_t i) { return std::ranges::min(scenario.reductions[i].starts); });
  for (std::uint64_t number = 0; number < by_number_.size(); ++number) numbers_[by_number_[number]] = number;
}

ReductionRequest ListedReductions::begin(std::uint32_t reduction, std::size_t host) {
  const ReductionSpec& spec = scenario_.reductions[reduction];
  ReductionTimes& times = times_[reduction];
  if (times.start == FlowTimes::never || spec.starts[host] < times.start) times.start = spec.starts[host];
  const bool contributes = spec.source == ReductionTrees::none || spec.source == spec.hosts[host];
  return {.tree = trees_of_[reduction],
          .host = spec.hosts[host],
          .number = numbers_[reduction],
          .contributed = contributes ? spec.bytes : 0,
          .bytes = spec.bytes};
}

void ListedReductions::end(std::uint64_t number, Time now) {
  ReductionTimes& times = times_[by_number_[number]];
  if (times.first_end == FlowTimes::never) times.first_end = now;
  times.end = now;
}

}  // namespace orrery::network
