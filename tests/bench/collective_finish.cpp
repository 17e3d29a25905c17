// One 64 MiB all-reduce of the world in 4 chunks, as a pure function: the cost of a call of Engine::finish.
#include <benchmark/benchmark.h>

#include <random>
#include <vector>

#include "orrery/collective/collective.hpp"

namespace {

using namespace orrery;
using topology::Shape;

enum class System : std::int64_t { stack, one_ring };
enum class Arrivals : std::int64_t { equal, skewed };

network::DelayModel make_delays(System system, std::uint32_t num_npus) {
  const auto dimension = [](Shape shape, std::uint32_t size, double bandwidth, double latency_ns) {
    return topology::Dimension{shape, size, Bandwidth::from_bytes_per_ns(bandwidth), latency_ns};
  };
  if (system == System::one_ring)
    return network::DelayModel(topology::Topology({dimension(Shape("Ring"), num_npus, 50, 500)}));
  return network::DelayModel(
      topology::Topology({dimension(Shape("Ring"), 2, 250, 50), dimension(Shape("FullyConnected"), 8, 200, 500),
                          dimension(Shape("Switch"), num_npus / 16, 50, 1000)}));
}

collective::Options make_options(System system) {
  using collective::Algorithm;
  collective::Options options;
  options.all_reduce = {Algorithm{}};
  if (system == System::stack) options.all_reduce = {{}, {"direct", 0, false}, {"halvingDoubling", 0, false}};
  options.chunks.splits = 4;
  options.local_memory = Bandwidth::from_bytes_per_ns(1600);
  return options;
}

std::vector<Time> make_arrivals(Arrivals kind, std::uint32_t num_npus, std::mt19937_64& random) {
  std::vector<Time> arrivals(num_npus);
  if (kind == Arrivals::equal) return arrivals;
  std::uniform_int_distribution<std::int64_t> microseconds(0, 100'000'000);
  for (Time& time : arrivals) time = Time::from_ps(microseconds(random));
  return arrivals;
}

/// Calls after the first: what a training step pays for each collective.
void finish(benchmark::State& state) {
  const auto system = static_cast<System>(state.range(0));
  const auto num_npus = static_cast<std::uint32_t>(state.range(2));
  std::mt19937_64 random(1);
  const std::vector<Time> arrivals = make_arrivals(static_cast<Arrivals>(state.range(1)), num_npus, random);
  std::vector<Time> completions(num_npus);
  collective::Engine engine(make_delays(system, num_npus), make_options(system));
  const auto layout = engine.layout({}, collective::all_dimensions);
  for (auto _ : state) {
    engine.finish(*layout, collective::Kind::all_reduce, Bytes(64U << 20U), arrivals, completions);
    benchmark::DoNotOptimize(completions.data());
  }
  state.counters["NPUs/s"] = benchmark::Counter(num_npus, benchmark::Counter::kIsIterationInvariantRate);
}

/// From nothing: the engine, the world's layout, the plan and the first call.
void first_finish(benchmark::State& state) {
  const auto system = static_cast<System>(state.range(0));
  const auto num_npus = static_cast<std::uint32_t>(state.range(2));
  std::mt19937_64 random(1);
  const std::vector<Time> arrivals = make_arrivals(static_cast<Arrivals>(state.range(1)), num_npus, random);
  std::vector<Time> completions(num_npus);
  for (auto _ : state) {
    collective::Engine engine(make_delays(system, num_npus), make_options(system));
    const auto layout = engine.layout({}, collective::all_dimensions);
    engine.finish(*layout, collective::Kind::all_reduce, Bytes(64U << 20U), arrivals, completions);
    benchmark::DoNotOptimize(completions.data());
  }
}

/// system: 0 = Ring(2)_FullyConnected(8)_Switch(N/16), 1 = one ring; arrivals: 0 = equal, 1 = skewed.
void arguments(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"system", "arrivals", "npus"})->Unit(benchmark::kMicrosecond);
  benchmark->ArgsProduct({{0, 1}, {0, 1}, {1024, 4096, 16384}});
}

BENCHMARK(finish)->Apply(arguments);
BENCHMARK(first_finish)->Apply(arguments);

}  // namespace

BENCHMARK_MAIN();
