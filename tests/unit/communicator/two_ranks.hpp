#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fake_scheduler.hpp"
#include "orrery/communicator/setup.hpp"

namespace orrery::communicator::test {

constexpr Time ns(std::int64_t count) { return Time::from_ns(count); }

constexpr GroupId world(0), pair(1), alone(2);

/// A ring of four NPUs with ring all-reduces, as one rank sees it. NPUs 0 to 2 are on rank 0, NPU 3 is on rank 1. Group
/// `world` has all NPUs, `pair` NPUs 0 and 1, `alone` NPU 3. Their hosts are ranks 0, 0 and 1.
class System {
 public:
  explicit System(int here, Execution execution = Execution::at_host)
      : setup{.kernel = kernel,
              .engine = engine,
              .network = network,
              .specs = specs,
              .hosting = {Rank(here), of_npu, {}},
              .first_lp = LpId(4),
              .place_of = place_of,
              .execution = execution} {}
  System(const System&) = delete;
  System& operator=(const System&) = delete;

  static collective::Options algorithms() {
    collective::Options options;
    options.all_reduce = options.all_gather = options.reduce_scatter = {{}};
    return options;
  }

  /// Returns when the members of the world complete an all-reduce of 1024 bytes that they join at these times.
  std::vector<Time> completions(const std::vector<Time>& arrivals) {
    std::vector<Time> completions(arrivals.size());
    engine.finish(*engine.layout({}, trace::all_dimensions), collective::Kind::all_reduce, Bytes(1024), arrivals,
                  completions);
    return completions;
  }

  test_support::FakeScheduler kernel;
  network::DelayModel delays{topology::Topology({{topology::Shape("Ring"), 4, Bandwidth::from_bytes_per_ns(50), 500}})};
  collective::Engine engine{delays, algorithms()};
  network::Analytical network{delays};
  std::vector<Rank> of_npu{Rank(0), Rank(0), Rank(0), Rank(1)};
  trace::Group everybody{}, of_pair{"pair", {NpuId(0), NpuId(1)}}, of_one{"alone", {NpuId(3)}};
  std::vector<CommunicatorSpec> specs{{world, &everybody, trace::all_dimensions, 0, Rank(0)},
                                      {pair, &of_pair, trace::all_dimensions, 0, Rank(0)},
                                      {alone, &of_one, trace::all_dimensions, 0, Rank(1)}};
  PlaceOf place_of = [](NpuId npu, std::uint64_t node) {
    return Place{.file = "trace." + std::to_string(npu.value()), .node_name = "node " + std::to_string(node)};
  };
  Setup setup;
};

/// A report that one side has sent.
struct SentReport {
  Rank to;
  Report report;
  std::vector<Time> times;
};

/// Returns a SendReport that keeps reports in a list.
inline SendReport keep_in(std::vector<SentReport>& reports) {
  return [&reports](Rank to, const Report& report, std::span<const Time> times) {
    reports.push_back({to, report, {times.begin(), times.end()}});
  };
}

}  // namespace orrery::communicator::test
