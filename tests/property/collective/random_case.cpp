#include "random_case.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

#include "link_counts.hpp"
#include "orrery/base/error.hpp"

namespace orrery::collective::test {

std::uint64_t pick(std::mt19937_64& random, std::uint64_t low, std::uint64_t high) {
  return std::uniform_int_distribution<std::uint64_t>(low, high)(random);
}

namespace {

Algorithm random_algorithm(std::mt19937_64& random, Kind kind, std::uint32_t size) {
  const bool halving = kind != Kind::all_to_all && std::has_single_bit(size);
  const auto choice = pick(random, 0, halving ? 3 : 2);
  if (choice == 0) return {};
  if (choice == 3) return {"halvingDoubling", 0, false};
  return {"direct", choice == 1 ? 0U : static_cast<std::uint32_t>(pick(random, 1, size + 1)), false};
}

Ps reduction(const RandomCase& sample, std::uint64_t bytes) {
  if (!(sample.options.local_memory.bytes_per_ns() > 0)) return 0;
  return 3 * local_memory_delay(Bytes(bytes), sample.options.local_memory, sample.rules.rounding).ps();
}

std::vector<Exchange> ring_exchanges(const RandomCase& sample, Kind kind, std::uint64_t size, std::uint32_t n) {
  const std::uint64_t m = kind == Kind::all_gather ? size : size / n;
  std::uint32_t steps = n - 1;
  if (kind == Kind::all_reduce) steps *= 2;
  if (kind == Kind::all_to_all) steps = n * (n - 1) / 2;
  std::vector<Exchange> exchanges;
  for (std::uint32_t k = 1; k <= steps; ++k) {
    const bool reduces = (kind == Kind::all_reduce || kind == Kind::reduce_scatter) && k < n;
    exchanges.push_back({{1}, false, m, reduces ? reduction(sample, m) : 0});
  }
  return exchanges;
}

std::vector<Exchange> direct_exchanges(const RandomCase& sample, Kind kind, std::uint64_t size, std::uint32_t n,
                                       std::uint32_t window) {
  const std::uint64_t m = kind == Kind::all_gather ? size : size / n;
  if (window == 0 || window > n - 1) window = n - 1;
  std::vector<Exchange> exchanges;
  for (std::uint32_t half = 0; half < (kind == Kind::all_reduce ? 2U : 1U); ++half) {
    for (std::uint32_t first = 1; first < n; first += window) {
      Exchange exchange{{}, false, m, 0};
      for (std::uint32_t d = first; d < std::min(n, first + window); ++d) exchange.distances.push_back(d);
      bool reduces = kind == Kind::reduce_scatter || (kind == Kind::all_reduce && half == 0);
      if (!sample.rules.reduce_every_message) {
        reduces = (kind == Kind::reduce_scatter && exchanges.size() % 2 == 0) ||
                  (kind == Kind::all_reduce && exchanges.size() % 4 == 0);
      }
      if (reduces) exchange.cost = reduction(sample, m);
      exchanges.push_back(exchange);
    }
  }
  return exchanges;
}

std::vector<Exchange> halving_doubling_exchanges(const RandomCase& sample, Kind kind, std::uint64_t size,
                                                 std::uint32_t n) {
  std::vector<Exchange> exchanges;
  std::uint64_t held = size;
  if (kind != Kind::all_gather) {
    for (std::uint32_t distance = 1; distance < n; distance *= 2) {
      held /= 2;
      Ps cost = reduction(sample, held);
      if (!sample.rules.reduce_every_message) cost = distance * 2 < n ? reduction(sample, held / 2) : 0;
      exchanges.push_back({{distance}, true, held, cost});
    }
    held = sample.rules.reduce_every_message ? size / n : held / 2 * 2;
  }
  if (kind != Kind::reduce_scatter) {
    for (std::uint32_t distance = n / 2; distance > 0; distance /= 2, held *= 2)
      exchanges.push_back({{distance}, true, held, 0});
  }
  return exchanges;
}

std::vector<std::vector<std::uint32_t>> groups_along(const topology::Topology& topology, std::uint32_t d) {
  std::vector<std::vector<std::uint32_t>> groups;
  for (std::uint32_t npu = 0; npu < topology.num_npus(); ++npu) {
    if (topology.coordinate(NpuId(npu), d) != 0) continue;
    groups.emplace_back();
    for (std::uint32_t c = 0; c < topology.dimension(d).size; ++c)
      groups.back().push_back(npu + c * topology.stride(d));
  }
  return groups;
}

std::vector<std::pair<std::uint32_t, Kind>> order_of_phases(const RandomCase& sample) {
  std::vector<std::uint32_t> used;
  for (std::uint32_t d = 0; d < sample.dimensions.size(); ++d)
    if (sample.dimensions[d].size > 1) used.push_back(d);
  std::vector<std::pair<std::uint32_t, Kind>> phases;
  if (sample.kind == Kind::all_reduce && sample.options.chunks.optimization == Optimization::local_bw_aware) {
    for (std::size_t k = 0; k + 1 < used.size(); ++k) phases.emplace_back(used[k], Kind::reduce_scatter);
    phases.emplace_back(used.back(), Kind::all_reduce);
    for (std::size_t k = used.size() - 1; k-- > 0;) phases.emplace_back(used[k], Kind::all_gather);
    return phases;
  }
  for (const std::uint32_t d : used) phases.emplace_back(d, sample.kind);
  if (sample.kind == Kind::all_gather) std::ranges::reverse(phases);
  return phases;
}

}  // namespace

std::uint32_t RandomCase::num_npus() const {
  std::uint32_t count = 1;
  for (const topology::Dimension& dimension : dimensions) count *= dimension.size;
  return count;
}

network::DelayModel RandomCase::delays() const {
  topology::Links links(dimensions);
  for (const topology::LinkFault& fault : faults) links.add(fault);
  return test_support::delays(dimensions, rules, links);
}

void add_random_faults(std::mt19937_64& random, RandomCase& sample) {
  topology::Links links(sample.dimensions);
  for (auto count = pick(random, 1, 4); count > 0; --count) {
    topology::LinkFault fault;
    fault.dimension = static_cast<std::uint32_t>(pick(random, 0, sample.dimensions.size() - 1));
    fault.failed = pick(random, 0, 2) == 0;
    for (auto npus = fault.failed ? 2 : pick(random, 1, 3); npus > 0; --npus)
      fault.npus.emplace_back(static_cast<std::uint32_t>(pick(random, 0, sample.num_npus() - 1)));
    if (!fault.failed) fault.port = {one_of(random, {0.1, 0.5, 0.7, 1.0, 1.5}), one_of(random, {0.5, 1.0, 1.3, 4.0})};
    try {
      links.add(fault);
    } catch (const Error&) {
      continue;  // nothing leads around it
    }
    sample.faults.push_back(fault);
  }
}

RandomCase random_case(std::mt19937_64& random, std::uint32_t most) {
  RandomCase sample;
  sample.rules = pick(random, 0, 1) == 0 ? AllRules::physical() : AllRules::astra_sim();
  do {
    sample.dimensions.clear();
    for (auto d = pick(random, 1, 3); d > 0; --d) {
      using topology::Shape;
      sample.dimensions.push_back(
          {one_of(random, {Shape("Ring"), Shape("Mesh"), Shape("FullyConnected"), Shape("Switch")}),
           static_cast<std::uint32_t>(pick(random, 1, d == 1 ? 9 : 4)),
           Bandwidth::from_bytes_per_ns(one_of(random, {25.0, 50.0, 53.687, 100.0})),
           one_of(random, {0.0, 77.5, 300.0, 1000.0})});
      topology::Dimension& dimension = sample.dimensions.back();
      dimension.links = one_of(random, {1U, 1U, 3U});
      if (dimension.shape == Shape("Switch")) dimension.oversubscription = one_of(random, {1.0, 1.0, 2.5});
    }
  } while (sample.num_npus() < 2 || sample.num_npus() > most);
  sample.kind = one_of(random, {Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter, Kind::all_to_all});
  for (const topology::Dimension& dimension : sample.dimensions)
    sample.options.all_reduce.push_back(random_algorithm(random, sample.kind, dimension.size));
  sample.options.all_gather = sample.options.reduce_scatter = sample.options.all_to_all = sample.options.all_reduce;
  sample.options.chunks.optimization = one_of(random, {Optimization::baseline, Optimization::local_bw_aware});
  sample.options.chunks.splits = static_cast<std::uint32_t>(pick(random, 1, 5));
  sample.options.chunks.active_chunks = static_cast<std::uint32_t>(pick(random, 1, 3));
  sample.options.endpoint_delay = Time::from_ns(static_cast<std::int64_t>(pick(random, 1, 40)));
  sample.options.local_memory = Bandwidth::from_bytes_per_ns(one_of(random, {0.0, 50.0, 1600.0}));
  sample.options.rendezvous = pick(random, 0, 3) == 0;
  sample.size = Bytes(pick(random, 100, 200'000));
  return sample;
}

std::vector<Time> random_arrivals(std::mt19937_64& random, std::uint32_t count) {
  const auto spread = one_of<std::uint64_t>(random, {1'000, 1'000'000, 100'000'000});
  std::vector<Time> arrivals;
  for (std::uint32_t i = 0; i < count; ++i)
    arrivals.push_back(Time::from_ps(static_cast<std::int64_t>(pick(random, 0, spread))));
  return arrivals;
}

std::uint64_t RandomCase::at_once(std::uint32_t d) const {
  const Algorithm& algorithm = options.all_reduce[d];
  const bool one_link = dimensions[d].shape == topology::Shape("Switch");
  if (algorithm.name != "direct" || !one_link || !rules.share_bandwidth) return 1;
  const std::uint32_t others = std::max(dimensions[d].size, 2U) - 1;
  return algorithm.window == 0 ? others : std::min(algorithm.window, others);
}

bool RandomCase::may_share_links() const {
  if (!rules.share_bandwidth) return false;
  for (std::size_t d = 0; d < dimensions.size(); ++d) {
    const bool has_own_links =
        dimensions[d].shape == topology::Shape("Switch") || dimensions[d].shape == topology::Shape("FullyConnected");
    if (options.all_reduce[d].name != "ring" && dimensions[d].size > 2 && !has_own_links) return true;
  }
  return std::ranges::any_of(faults, &topology::LinkFault::failed);
}

std::function<std::uint64_t(const Passage&)> loads_of(const RandomCase& sample, const Scenario& scenario,
                                                      const network::DelayModel& delays) {
  if (!sample.rules.share_bandwidth) return [](const Passage&) { return 1; };
  std::vector<std::vector<LinkCounts>> counts;  // [phases][exchanges]
  for (const PhaseOfChunk& phase : scenario.phases) {
    counts.emplace_back();
    for (const Exchange& exchange : phase.exchanges) {
      LinkCounts& count = counts.back().emplace_back(delays.topology());
      for (const auto& group : phase.groups)
        for (std::uint32_t i = 0; i < group.size(); ++i)
          for (const std::uint32_t d : exchange.distances)
            count.add(NpuId(group[i]), NpuId(group[exchange.by_xor ? i ^ d : (i + d) % group.size()]));
    }
  }
  std::vector<std::uint32_t> dimension_of;
  for (const PhaseOfChunk& phase : scenario.phases) dimension_of.push_back(phase.queue);
  return [counts, dimension_of](const Passage& message) {
    return counts[message.phase][message.exchange].most(dimension_of[message.phase], NpuId(message.sender),
                                                        NpuId(message.receiver));
  };
}

Scenario scenario_of(const RandomCase& sample, const network::DelayModel& delays) {
  const topology::Topology& topology = delays.topology();
  Scenario scenario;
  scenario.num_members = topology.num_npus();
  scenario.endpoint_delay = sample.options.endpoint_delay.ps();
  scenario.rendezvous = sample.options.rendezvous;
  scenario.in_service = sample.options.chunks.active_chunks;
  std::uint64_t total = sample.size.count();
  std::uint64_t chunk = total / sample.options.chunks.splits;
  if (sample.kind != Kind::all_gather && chunk < topology.num_npus()) {
    chunk = topology.num_npus();
    total = chunk * sample.options.chunks.splits;
  }
  scenario.num_chunks = static_cast<std::uint32_t>(total / chunk + (total % chunk == 0 ? 0 : 1));
  std::vector<std::uint32_t> dimension_of;
  for (const auto& [d, kind] : order_of_phases(sample)) {
    const std::uint32_t n = topology.dimension(d).size;
    const Algorithm& algorithm = sample.options.all_reduce[d];
    PhaseOfChunk phase{d, groups_along(topology, d), {}};
    if (algorithm.name == "ring") phase.exchanges = ring_exchanges(sample, kind, chunk, n);
    if (algorithm.name == "direct") phase.exchanges = direct_exchanges(sample, kind, chunk, n, algorithm.window);
    if (algorithm.name == "halvingDoubling") phase.exchanges = halving_doubling_exchanges(sample, kind, chunk, n);
    if (kind == Kind::reduce_scatter) chunk /= n;
    if (kind == Kind::all_gather) chunk *= n;
    scenario.phases.push_back(std::move(phase));
    dimension_of.push_back(d);
  }
  const std::uint64_t share = sample.rules.share_bandwidth ? std::min(scenario.num_chunks, scenario.in_service) : 1;
  scenario.link = [&sample, &delays, &topology, dimension_of, share, loads = loads_of(sample, scenario, delays)](
                      const Passage& message, std::uint64_t bytes) {
    const std::uint32_t d = dimension_of[message.phase];
    const std::uint32_t a = topology.coordinate(NpuId(message.from), d);
    const std::uint32_t b = topology.coordinate(NpuId(message.to), d);
    const std::uint32_t hops = topology.hops(d, a, b);
    return delays.link_delay(d, hops, Bytes(bytes * share * std::max(sample.at_once(d), loads(message)))).ps();
  };
  return scenario;
}

}  // namespace orrery::collective::test
