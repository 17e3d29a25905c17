#include "shape_links.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "orrery/base/error.hpp"
#include "orrery/base/text.hpp"

namespace orrery::network {
namespace {

constexpr std::size_t most_ends = 128;                     // of which all pairs are looked at
constexpr std::size_t most_passed = std::size_t{1} << 20;  // NPUs that messages of one communicator pass

void sort_and_unite(std::vector<std::uint32_t>& numbers) {
  std::ranges::sort(numbers);
  const auto equal = std::ranges::unique(numbers);
  numbers.erase(equal.begin(), equal.end());
}

/// Returns whether NPUs that differ in one dimension only are on different ranks.
bool spans_ranks(const topology::Topology& topology, std::uint32_t d, const Hosting& hosting) {
  for (std::uint32_t npu = 0; npu < topology.num_npus(); ++npu) {
    const std::uint32_t first = npu - topology.coordinate(NpuId(npu), d) * topology.stride(d);
    if (hosting.of_npu[npu] != hosting.of_npu[first]) return true;
  }
  return false;
}

}  // namespace

std::vector<std::pair<ShapeLinks::Link, std::uint32_t>> ShapeLinks::ways(const Link& link,
                                                                         const Message& message) const {
  const std::vector<Link> others = fabric_.alternatives(link, message.destination);
  std::vector<std::pair<Link, std::uint32_t>> all;
  if (others.empty()) return all;
  all.emplace_back(link, fabric_.links_left(link, message.destination));
  for (const Link& other : others) all.emplace_back(other, fabric_.links_left(other, message.destination));
  return all;
}

// A message takes its dimensions in ascending order, and its source hears of the end of the last one. So what follows
// from a link is on the same rank if no group of its dimension, or of a lower one, spans ranks.
Time ShapeLinks::least_pass_between_ranks(const Hosting& hosting) const {
  const topology::Topology& topology = fabric_.topology();
  if (circuits_ != nullptr) return least_pass();  // a circuit may join any two NPUs
  Time least = Time::max();
  bool has_left = false;
  for (std::uint32_t d = 0; d < topology.num_dimensions(); ++d) {
    has_left = has_left || spans_ranks(topology, d, hosting);
    if (!has_left || topology.dimension(d).size == 1) continue;
    const flit::Region* const region = regions_ == nullptr ? nullptr : regions_->of_dimension(d);
    least = std::min(least, region == nullptr ? delays_.least_pass(d) : region->cycle);
  }
  return least;
}

/// Returns the smallest latency over all configurations in which a link exists (O5).
Time ShapeLinks::least_pass() const {
  const Time least = delays_.least_pass();
  if (!has_rates()) return least;
  const double latency = circuits_->least_latency_ns();
  return std::max(std::min(least, orrery::delay(latency, Bytes(0), Bandwidth::from_bytes_per_ns(1), rounding_)),
                  tick(rounding_));
}

/// Returns the circuit that a message takes at an NPU. Throws Error (bad_input) if none leads to its destination.
topology::LinkId ShapeLinks::circuit(const Message& message, NpuId at) const {
  const NpuId next = circuits_->next_npu(message.circuits, at, message.destination);
  if (next == at)
    throw Error(ErrorCode::bad_input, {.key = "system.network.circuits"},
                fmt::format("NPU {} cannot reach NPU {} in configuration {}", at.value(), message.destination.value(),
                            cited(circuits_->options().configurations[message.circuits].name)),
                "circuits that join them");
  return fabric_.first(at, next);
}

std::optional<topology::CircuitRate> ShapeLinks::rate_of(const Link& link, std::uint32_t configuration) const {
  if (!circuits_->lists_circuits(configuration)) return circuits_->options().configurations[configuration].rate;
  return circuits_->rate(configuration, link.owner, NpuId(static_cast<std::uint32_t>(fabric_.ends(link).to)));
}

/// Returns the positions, in the groups of dimension d, of the NPUs whose links messages among these NPUs pass.
std::vector<std::uint32_t> ShapeLinks::positions_passed(std::uint32_t d, std::span<const NpuId> members) const {
  const topology::Topology& topology = fabric_.topology();
  std::vector<std::uint32_t> ends;
  for (const NpuId npu : members) ends.push_back(topology.coordinate(npu, d));
  sort_and_unite(ends);
  if (ends.size() == 1 || ends.size() == topology.dimension(d).size) return ends;
  std::vector<std::uint32_t> passed = ends;
  if (ends.size() > most_ends || !topology.links().empty() ||
      topology.dimension(d).routing == topology::Routing::adaptive) {
    passed.resize(topology.dimension(d).size);
    std::iota(passed.begin(), passed.end(), 0U);
    return passed;
  }
  const topology::Wiring& wiring = topology.wiring(d);
  for (const std::uint32_t from : ends) {
    for (const std::uint32_t to : ends) {
      const topology::Device end{topology::Device::Kind::position, to};
      for (topology::Device at{topology::Device::Kind::position, from}; at != end;) {
        const topology::GroupLink link = wiring.towards(at, to);
        passed.push_back(link.position);
        at = wiring.to(link);
      }
    }
  }
  sort_and_unite(passed);
  return passed;
}

// A message changes its coordinates one after the other. So the NPUs that it comes to have, in each dimension, a
// position that messages among the members pass there.
bool ShapeLinks::keep_within(std::span<const NpuId> members, const std::function<bool(NpuId)>& is_in) const {
  const topology::Topology& topology = fabric_.topology();
  if (circuits_ != nullptr || !std::ranges::all_of(members, is_in)) return false;
  std::vector<std::uint32_t> passed{0};
  for (std::uint32_t d = 0; d < topology.num_dimensions(); ++d) {
    const std::vector<std::uint32_t> positions = positions_passed(d, members);
    if (passed.size() * positions.size() > most_passed) return false;
    const std::size_t num_before = passed.size();
    for (std::size_t k = 1; k < positions.size(); ++k)
      for (std::size_t i = 0; i < num_before; ++i) passed.push_back(passed[i] + positions[k] * topology.stride(d));
    for (std::size_t i = 0; i < num_before; ++i) passed[i] += positions[0] * topology.stride(d);
  }
  return std::ranges::all_of(passed, [&](std::uint32_t npu) { return is_in(NpuId(npu)); });
}

}  // namespace orrery::network
