#include <algorithm>
#include <bit>

#include "keys.hpp"
#include "orrery/base/quantity_text.hpp"
#include "orrery/base/text.hpp"
#include "validation.hpp"

namespace orrery::config {
namespace {

using collective::Algorithm;
using topology::Dimension;

using Algorithms = std::vector<Algorithm>;

constexpr Bytes least_chunk{64 << 10};  // steps of smaller ones take their latencies

/// Returns the algorithm that suits the shape of a dimension.
Algorithm natural_algorithm(const Dimension& dimension, bool is_all_to_all) {
  const topology::TrafficPattern pattern = dimension.shape->pattern;
  if (pattern == topology::TrafficPattern::neighbours) return {"ring"};
  if (pattern == topology::TrafficPattern::all_pairs || is_all_to_all) return {"direct"};
  return {std::has_single_bit(dimension.size) ? "halvingDoubling" : "ring"};
}

Algorithms natural_algorithms(const std::vector<Dimension>& dimensions, bool is_all_to_all) {
  Algorithms algorithms;
  for (const auto& dimension : dimensions) algorithms.push_back(natural_algorithm(dimension, is_all_to_all));
  return algorithms;
}

/// Returns whether two dimensions in a row, those of one NPU left out, are Rings.
bool has_torus(const std::vector<Dimension>& dimensions) {
  static const topology::Shape ring("Ring");
  bool follows_ring = false;
  for (const Dimension& dimension : dimensions) {
    if (dimension.size == 1) continue;
    const bool is_ring = dimension.shape == ring;
    if (is_ring && follows_ring) return true;
    follows_ring = is_ring;
  }
  return false;
}

/// Returns one algorithm for each dimension, or a single one for the whole communicator.
Algorithms as_algorithms(const Value& value, const std::string& path, const Reading& reading) {
  const auto& entries = reading.dimensions_of_entry;
  const bool has_torus = std::ranges::any_of(entries, [](std::uint32_t count) { return count > 1; });
  const std::string expected =
      fmt::format("a list of {}, one for each {}, or of a single one for the whole communicator, such as [oneRing]",
                  counted(entries.size(), "algorithm"), has_torus ? "entry of the dimensions" : "dimension");
  auto given = parse_algorithms(as_list(value, path, expected), path, expected, reading.faults);
  const bool is_whole = given.size() == 1 && given[0].whole_communicator;
  if (is_whole || entries.empty()) return given;
  // Resolved configurations list each dimension, and keep two of flits in one entry.
  const Configuration& all = reading.configuration;
  if (!all.execution.network.flits.empty() && given.size() == all.dimensions.size()) return given;
  if (given.size() != entries.size())
    throw Error(ErrorCode::bad_input, value.place(path), fmt::format("found {}", value.description()), expected);
  Algorithms algorithms;
  for (std::size_t i = 0; i < entries.size(); ++i) algorithms.insert(algorithms.end(), entries[i], given[i]);
  return algorithms;
}

constinit const ValueKind<Algorithms> algorithm_list = kind_of<Algorithms>(
    [](const Limits&) {
      return TypeInfo{"list of algorithms", "a list of algorithms, one for each dimension", "-",
                      "one for each dimension", algorithm_words()};
    },
    [](const Limits&, const Value& value, const std::string& path, const Reading& reading) {
      return as_algorithms(value, path, reading);
    },
    [](const Limits&, const Algorithms& algorithms) {
      std::vector<std::string> names;
      for (const auto& algorithm : algorithms) names.push_back(name(algorithm));
      return names.empty() ? std::nullopt : std::optional(fmt::format("[{}]", fmt::join(names, ", ")));
    });

/// Rounds as the rules say, which are read before.
constinit const ValueKind<Time> endpoint_delay = kind_of<Time>(
    [](const Limits&) { return duration().info(); },
    [](const Limits&, const Value& value, const std::string& path, const Reading& reading) {
      return duration_from_ns(as_nanoseconds(value, path), reading.configuration.execution.network.rules.rounding);
    },
    // Whole picoseconds are read back without rounding.
    [](const Limits&, Time delay) {
      return delay.ps() % 1000 == 0 ? fmt::format("{} ns", delay.ps() / 1000) : fmt::format("{} ps", delay.ps());
    });

constinit const ValueKind<compute::CollectivesShare> collectives_share = kind_of<compute::CollectivesShare>(
    [](const Limits&) {
      return TypeInfo{"number", "a number from 0 to below 1, or `library`", "-", "0 or more and below 1, or library"};
    },
    [](const Limits&, const Value& value, const std::string& key, const Reading& reading) -> compute::CollectivesShare {
      if (value.kind == Value::Kind::scalar && value.text == "library") return {.of_channels = true};
      return {.fixed = share().read(value, key, reading)};
    },
    [](const Limits&, const compute::CollectivesShare& of) {
      return of.of_channels ? std::optional<std::string>("library") : share().text(of.fixed);
    });

constexpr Row<Configuration> collective_rows[] = {
    {"system.collectives.all-reduce", "algorithm of each dimension, or one for the whole communicator, as `[oneRing]`",
     "[ring]", Default::described("by shape"), Type(algorithm_list), [](auto& c) { return &c.collectives.all_reduce; },
     see("collectives.md"),
     prepare([](Configuration& c) { c.collectives.all_reduce = natural_algorithms(c.dimensions, false); })},
    {"system.collectives.all-gather", "algorithm of each dimension for all-gather", "[ring]",
     Default::described("by shape"), Type(algorithm_list), [](auto& c) { return &c.collectives.all_gather; },
     prepare([](Configuration& c) { c.collectives.all_gather = natural_algorithms(c.dimensions, false); })},
    {"system.collectives.reduce-scatter", "algorithm of each dimension for reduce-scatter", "[ring]",
     Default::described("by shape"), Type(algorithm_list), [](auto& c) { return &c.collectives.reduce_scatter; },
     prepare([](Configuration& c) { c.collectives.reduce_scatter = natural_algorithms(c.dimensions, false); })},
    {"system.collectives.all-to-all", "algorithm of each dimension for all-to-all", "[direct]",
     Default::described("by shape"), Type(algorithm_list), [](auto& c) { return &c.collectives.all_to_all; },
     prepare([](Configuration& c) { c.collectives.all_to_all = natural_algorithms(c.dimensions, true); })},
    {"system.collectives.broadcast", "algorithm of each dimension for broadcast", "[binomialTree]",
     Default::described("as an all-reduce"), Type(algorithm_list), [](auto& c) { return &c.collectives.broadcast; }},
    {"system.collectives.reduce", "algorithm of each dimension for reduce", "[binomialTree]",
     Default::described("as an all-reduce"), Type(algorithm_list), [](auto& c) { return &c.collectives.reduce; }},
    {"system.collectives.optimization", "phases of an all-reduce over several dimensions", "baseline",
     Default::built_in(), word<collective_optimizations>(), [](auto& c) { return &c.collectives.chunks.optimization; }},
    {"system.collectives.dimension-order", "order in which a chunk takes the dimensions", "themis",
     Default::described("`all-axes` for two consecutive Rings, otherwise `ascending`"), word<dimension_orders>(),
     [](auto& c) { return &c.collectives.chunks.dimension_order; }, see("collectives.md, *Rings and tori*"),
     prepare([](Configuration& c) {
       if (c.rule_set == RuleSet::physical && has_torus(c.dimensions))
         c.collectives.chunks.dimension_order = collective::DimensionOrder::all_axes;
     })},
    {"system.collectives.directions", "directions in which `ring` uses the links of a Ring or Mesh", "one",
     Default::described("`both`; `one` with `rules: astra-sim`"), word<directions>(),
     [](auto& c) { return &c.collectives.chunks.directions; }, see("collectives.md, *Rings and tori*"),
     prepare([](Configuration& c) {
       if (c.rule_set == RuleSet::physical) c.collectives.chunks.directions = collective::Directions::both;
     })},
    {"system.collectives.chunk-order", "chunk that a dimension serves first if several wait for it",
     "smallest-chunk-first", Default::built_in(), word<chunk_orders>(),
     [](auto& c) { return &c.collectives.chunks.chunk_order; }},
    {"system.collectives.overlap-latency",
     "let a chunk hold its dimension for its bytes only, not for its latencies and endpoint delays", "true",
     Default::built_in(), boolean(), [](auto& c) { return &c.collectives.chunks.overlap_latency; }},
    {"system.collectives.chunks", "pieces into which a collective is cut", "8", Default::built_in(), count(),
     [](auto& c) { return &c.collectives.chunks.splits; }},
    {"system.collectives.least-chunk",
     "least size of a chunk at a member; small collectives are cut into fewer chunks than `chunks`", "1 MiB",
     Default::described("64 KiB; none with `rules: astra-sim`"), size(0, "64 KiB"),
     [](auto& c) { return &c.collectives.chunks.least; }, prepare([](Configuration& c) {
       if (c.rule_set == RuleSet::physical) c.collectives.chunks.least = least_chunk;
     })},
    {"system.collectives.active-chunks", "chunks that are in service at a time in each dimension", "2",
     Default::built_in(), count(), [](auto& c) { return &c.collectives.chunks.active_chunks; }},
    {"system.collectives.queues", "queues of each dimension", "2", Default::built_in(), count(),
     [](auto& c) { return &c.collectives.chunks.queues; }},
    {"system.collectives.endpoint-delay",
     "time between the arrival of a message and the next send; whole ns with `rules: astra-sim`", "20 ns",
     Default::built_in(), Type(endpoint_delay), [](auto& c) { return &c.collectives.endpoint_delay; }},
    {"system.collectives.compute-share",
     "share of an NPU's compute units that a collective takes: compute beside it takes longer; `library`: the units "
     "on which the channels of the library run",
     "0.1", Default::built_in(), Type(collectives_share),
     [](auto& c) { return &c.execution.compute.collectives_share; }, see("model.md, *Streams*")},
    {"system.collectives.experts.kernels",
     "kernels that bring tokens to experts, with a `workload.parallel.expert-exchange` that is no all-to-all",
     "deepep-v2", Default::built_in(), word<expert_kernels>(),
     [](auto& c) { return &c.collectives.library.experts.kernels; }, see("workloads.md, *Experts*"),
     written_if([](const Configuration& c) {
       return c.execution.compute.experts_share > 0 ||
              c.collectives.library.experts.kernels != collective::ExpertKernelsName();
     })},
    {"system.collectives.experts.sm-share",
     "share of an NPU's compute units that an exchange of tokens holds from begin to end", "0.1",
     Default::described("SMs of the kernels over those of the processor"), optional_of<share>(),
     [](auto& c) { return &c.collectives.library.experts.sm_share; }, see("workloads.md, *Experts*")},
    {"system.collectives.experts.top-k",
     "experts of a token in traces; generated workloads take the number from their model", "8", Default::built_in(),
     count(), [](auto& c) { return &c.collectives.library.experts.top_k; }},
    {"system.collectives.experts.servers",
     "largest number of servers that hold the experts of a token in traces; 0: any number", "4", Default::built_in(),
     count(0), [](auto& c) { return &c.collectives.library.experts.servers; }},
};

}  // namespace

std::vector<Algorithm> parse_algorithms(const std::vector<Value>& items, const std::string& key,
                                        std::string_view expected, Faults& faults) {
  Algorithms algorithms(items.size());
  for (std::size_t i = 0; i < items.size(); ++i)
    faults.attempt([&] { algorithms[i] = parse_algorithm(as_text(items[i], key, expected), items[i].place(key)); });
  return algorithms;
}

const Keys<Configuration>& collective_keys() {
  static const Keys<Configuration> all("system.collectives", collective_rows);
  return all;
}

void Validation::validate_compute_share() {
  const compute::CollectivesShare& share = c_.execution.compute.collectives_share;
  constexpr std::string_view key = "system.collectives.compute-share";
  require(c_.rule_set == RuleSet::physical || !share.any(), key, "found a share with ASTRA-sim's rules", "0");
  if (!share.of_channels) return;
  const auto& library = c_.collectives.library.library;
  require(library && (*library)->channels.count > 0, key, "found `library`, but no library whose channels are known",
          "a number from 0 to below 1, or system.collectives.library.name: nccl-h100 and the like");
  require(share.of_channel > 0, key, "found `library`, but the units of an NPU are not known",
          "a number from 0 to below 1, or system.compute.processor: h100 and the like");
}

}  // namespace orrery::config
