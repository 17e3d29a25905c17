#include <algorithm>
#include <bit>

#include "keys.hpp"
#include "orrery/base/text.hpp"
#include "orrery/config/units.hpp"

namespace orrery::config {
namespace {

using collective::Algorithm;
using topology::Dimension;

using Algorithms = std::vector<Algorithm>;

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
  if (given.size() != entries.size())
    throw Error(ErrorCode::bad_input, value.place(path), fmt::format("found {}", value.description()), expected);
  Algorithms algorithms;
  for (std::size_t i = 0; i < entries.size(); ++i) algorithms.insert(algorithms.end(), entries[i], given[i]);
  return algorithms;
}

Type<Algorithms> algorithm_list() {
  return {{"list of algorithms", "a list of algorithms, one for each dimension", "-", "one for each dimension",
           algorithm_words()},
          as_algorithms,
          [](const Algorithms& algorithms) -> std::optional<std::string> {
            std::vector<std::string> names;
            for (const auto& algorithm : algorithms) names.push_back(name(algorithm));
            return names.empty() ? std::nullopt : std::optional(fmt::format("[{}]", fmt::join(names, ", ")));
          }};
}

/// Rounds as the rules say, which are read before.
Type<Time> endpoint_delay() {
  Type<Time> type = duration();
  type.read = [](const Value& value, const std::string& path, const Reading& reading) {
    return duration_from_ns(as_nanoseconds(value, path), reading.configuration.execution.network.rules.rounding);
  };
  // Whole picoseconds are read back without rounding.
  type.text = [](const Time& delay) -> std::optional<std::string> {
    return delay.ps() % 1000 == 0 ? fmt::format("{} ns", delay.ps() / 1000) : fmt::format("{} ps", delay.ps());
  };
  return type;
}

void add_algorithms(Keys<Configuration>& keys) {
  keys.add(
          {.path = "system.collectives.all-reduce",
           .help = "algorithm of each dimension, or one for the whole communicator, as `[oneRing]`",
           .example = "[ring]",
           .otherwise = Default::described("by shape"),
           .see = "collectives.md"},
          algorithm_list(), [](auto& c) -> auto& { return c.collectives.all_reduce; })
      .prepare([](Configuration& c) { c.collectives.all_reduce = natural_algorithms(c.dimensions, false); });
  keys.add(
          {.path = "system.collectives.all-gather",
           .help = "the same for all-gather",
           .example = "[ring]",
           .otherwise = Default::described("by shape")},
          algorithm_list(), [](auto& c) -> auto& { return c.collectives.all_gather; })
      .prepare([](Configuration& c) { c.collectives.all_gather = natural_algorithms(c.dimensions, false); });
  keys.add(
          {.path = "system.collectives.reduce-scatter",
           .help = "the same for reduce-scatter",
           .example = "[ring]",
           .otherwise = Default::described("by shape")},
          algorithm_list(), [](auto& c) -> auto& { return c.collectives.reduce_scatter; })
      .prepare([](Configuration& c) { c.collectives.reduce_scatter = natural_algorithms(c.dimensions, false); });
  keys.add(
          {.path = "system.collectives.all-to-all",
           .help = "the same for all-to-all",
           .example = "[direct]",
           .otherwise = Default::described("by shape")},
          algorithm_list(), [](auto& c) -> auto& { return c.collectives.all_to_all; })
      .prepare([](Configuration& c) { c.collectives.all_to_all = natural_algorithms(c.dimensions, true); });
  keys.add(
      {.path = "system.collectives.broadcast",
       .help = "the same for broadcast",
       .example = "[binomialTree]",
       .otherwise = Default::described("as an all-reduce")},
      algorithm_list(), [](auto& c) -> auto& { return c.collectives.broadcast; });
  keys.add(
      {.path = "system.collectives.reduce",
       .help = "the same for reduce",
       .example = "[binomialTree]",
       .otherwise = Default::described("as an all-reduce")},
      algorithm_list(), [](auto& c) -> auto& { return c.collectives.reduce; });
}

void add_scheduling(Keys<Configuration>& keys) {
  keys.add(
      {.path = "system.collectives.optimization",
       .help = "phases of an all-reduce over several dimensions",
       .example = "baseline",
       .otherwise = Default::built_in()},
      word(collective_optimizations()), [](auto& c) -> auto& { return c.collectives.chunks.optimization; });
  keys.add(
      {.path = "system.collectives.dimension-order",
       .help = "order in which a chunk takes the dimensions",
       .example = "themis",
       .otherwise = Default::built_in()},
      word(dimension_orders()), [](auto& c) -> auto& { return c.collectives.chunks.dimension_order; });
  keys.add(
      {.path = "system.collectives.chunk-order",
       .help = "chunk that a dimension serves first if several wait for it",
       .example = "smallest-chunk-first",
       .otherwise = Default::built_in()},
      word(chunk_orders()), [](auto& c) -> auto& { return c.collectives.chunks.chunk_order; });
  keys.add(
      {.path = "system.collectives.overlap-latency",
       .help = "let a chunk hold its dimension for its bytes only, not for its latencies and endpoint delays",
       .example = "true",
       .otherwise = Default::built_in()},
      boolean(), [](auto& c) -> auto& { return c.collectives.chunks.overlap_latency; });
  keys.add(
      {.path = "system.collectives.chunks",
       .help = "pieces into which a collective is cut",
       .example = "8",
       .otherwise = Default::built_in()},
      count(), [](auto& c) -> auto& { return c.collectives.chunks.splits; });
  keys.add(
      {.path = "system.collectives.active-chunks",
       .help = "chunks that are in service at a time in each dimension",
       .example = "2",
       .otherwise = Default::built_in()},
      count(), [](auto& c) -> auto& { return c.collectives.chunks.active_chunks; });
  keys.add(
      {.path = "system.collectives.queues",
       .help = "queues of each dimension",
       .example = "2",
       .otherwise = Default::built_in()},
      count(), [](auto& c) -> auto& { return c.collectives.chunks.queues; });
  keys.add(
      {.path = "system.collectives.endpoint-delay",
       .help = "time between the arrival of a message and the next send; whole ns with `rules: astra-sim`",
       .example = "20 ns",
       .otherwise = Default::built_in()},
      endpoint_delay(), [](auto& c) -> auto& { return c.collectives.endpoint_delay; });
  keys.add(
      {.path = "system.collectives.compute-share",
       .help = "share of an NPU's compute units that a collective takes: compute beside it takes longer",
       .example = "0.1",
       .otherwise = Default::built_in(),
       .see = "model.md, *Streams*"},
      share(), [](auto& c) -> auto& { return c.execution.compute.collectives_share; });
}

}  // namespace

std::vector<Algorithm> parse_algorithms(const std::vector<Value>& items, const std::string& key,
                                        std::string_view expected, Faults& faults) {
  Algorithms algorithms(items.size());
  for (std::size_t i = 0; i < items.size(); ++i)
    faults.attempt([&] { algorithms[i] = parse_algorithm(as_text(items[i], key, expected), items[i].place(key)); });
  return algorithms;
}

const Keys<Configuration>& collective_keys() {
  static const Keys<Configuration> all = [] {
    Keys<Configuration> keys("system.collectives");
    add_algorithms(keys);
    add_scheduling(keys);
    return keys;
  }();
  return all;
}

}  // namespace orrery::config
