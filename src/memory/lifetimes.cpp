#include "orrery/memory/lifetimes.hpp"

#include <algorithm>

namespace orrery::memory {

Lifetimes lifetimes_of(const trace::Graph& graph) {
  const trace::Tensors& tensors = graph.tensors;
  Lifetimes lifetimes;
  if (tensors.sizes.empty()) return lifetimes;
  lifetimes.is_initial = tensors.has_maker();
  lifetimes.is_initial.flip();
  for (std::size_t i = 0; i < tensors.sizes.size(); ++i)
    if (lifetimes.is_initial[i]) lifetimes.initial += Bytes(tensors.sizes[i]);
  lifetimes.is_result.resize(tensors.sizes.size());
  for (const std::uint32_t node : graph.topological_order())
    for (const trace::Listing listing : tensors.of(NodeId(node))) lifetimes.is_result[listing.tensor] = listing.makes;
  lifetimes.users = CountdownPlan(static_cast<std::uint32_t>(tensors.sizes.size()),
                                  [&](std::uint32_t i) { return tensors.num_listings[i]; });
  return lifetimes;
}

Residents residents_of(const trace::Tensors& tensors, const std::vector<bool>& is_there) {
  constexpr std::size_t most_told = 5;
  std::vector<std::uint32_t> there;
  for (std::uint32_t i = 0; i < is_there.size(); ++i)
    if (is_there[i]) there.push_back(i);
  const std::size_t count = there.size();
  const auto last = there.begin() + static_cast<std::ptrdiff_t>(std::min(count, most_told));
  std::ranges::partial_sort(there, last, [&](std::uint32_t a, std::uint32_t b) {
    return tensors.sizes[a] != tensors.sizes[b] ? tensors.sizes[a] > tensors.sizes[b] : a < b;
  });
  there.erase(last, there.end());
  return {there, count};
}

}  // namespace orrery::memory
