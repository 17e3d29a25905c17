// Hierarchical pools against a plain program that takes every round through every stage, and against the closed form
// of an access by all NPUs together (docs/memory.md). Times of the plain program are exact but for long double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "hierarchical_pool.hpp"

namespace orrery::memory {
namespace {

using Exact = long double;  // ps

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  std::uint64_t whole(std::uint64_t least, std::uint64_t most) {
    return std::uniform_int_distribution<std::uint64_t>(least, most)(engine_);
  }
  template <class T>
  T one_of(std::initializer_list<T> all) {
    return all.begin()[whole(0, all.size() - 1)];
  }
  template <class T>
  void shuffle(std::vector<T>& all) {
    std::ranges::shuffle(all, engine_);
  }

 private:
  std::mt19937_64 engine_;
};

struct System {
  RemoteMemoryOptions options;
  std::uint32_t num_npus = 0;

  HierarchicalPool pool() const { return {options, num_npus, Rounding::up_to_ps}; }
  std::uint32_t node_of(NpuId npu) const { return npu.value() / options.npus_per_node; }
  // ps per byte.
  Exact group() const { return 1000 / (Exact{options.bandwidth.bytes_per_ns()} * options.hierarchy.groups); }
  Exact link() const { return 1000 / (Exact{options.hierarchy.link.bytes_per_ns()} * options.hierarchy.switches); }
  Exact fabric() const { return 1000 / Exact{options.hierarchy.fabric.bytes_per_ns()}; }
  Exact group_latency() const { return Exact{options.latency_ns} * 1000; }
  Exact link_latency() const { return Exact{options.hierarchy.link_latency_ns} * 1000; }
  Exact fabric_latency() const { return Exact{options.hierarchy.fabric_latency_ns} * 1000; }
  Exact latency() const { return group_latency() + link_latency() + fabric_latency(); }
};

System random_system(Random& random) {
  System system;
  auto& options = system.options;
  const auto bandwidth = [&] {
    return Bandwidth::from_bytes_per_ns(random.one_of({0.5, 1.0, 3.0, 25.0, 100.0, 512.0}));
  };
  const auto latency = [&] { return random.one_of({0.0, 1.0, 12.5, 500.0}); };
  options.kind = RemoteMemoryKind("hierarchical-pool");
  options.npus_per_node = static_cast<std::uint32_t>(random.whole(1, 8));
  system.num_npus = options.npus_per_node * static_cast<std::uint32_t>(random.whole(1, 8));
  options.bandwidth = bandwidth();
  options.latency_ns = latency();
  auto& hierarchy = options.hierarchy;
  hierarchy.switches = static_cast<std::uint32_t>(random.whole(1, 4));
  hierarchy.groups = hierarchy.switches * static_cast<std::uint32_t>(random.whole(1, 8));
  hierarchy.link = bandwidth();
  hierarchy.link_latency_ns = latency();
  hierarchy.fabric = bandwidth();
  hierarchy.fabric_latency_ns = latency();
  hierarchy.chunk = Bytes(random.whole(system.num_npus, 4000));
  options.validate(system.num_npus);
  return system;
}

/// An access that keeps what it refers to.
struct Request {
  std::vector<NpuId> npus;
  Bytes size;
  PathCollective collective = PathCollective::none;
  std::vector<Time> done = {};

  std::uint64_t passages() const { return collective == PathCollective::all_reduce ? 2 : 1; }
};

std::vector<Request> random_requests(Random& random, const System& system, Bytes piece) {
  std::vector<Request> requests(random.whole(1, 6));
  for (Request& request : requests) {
    std::vector<NpuId> all;
    for (std::uint32_t i = 0; i < system.num_npus; ++i) all.emplace_back(i);
    random.shuffle(all);
    request.size = Bytes(random.one_of({random.whole(1, 9 * piece.count()), random.whole(1, 9) * piece.count()}));
    request.collective = random.one_of({PathCollective::none, PathCollective::none, PathCollective::all_gather,
                                        PathCollective::reduce_scatter, PathCollective::all_reduce});
    all.resize(request.collective == PathCollective::none ? 1 : random.whole(1, system.num_npus));
    request.npus = std::move(all);
  }
  return requests;
}

void serve(HierarchicalPool& pool, Time now, std::vector<Request>& requests) {
  std::vector<HierarchicalPool::Access> accesses;
  for (Request& request : requests) {
    request.done.assign(request.npus.size(), Time::zero());
    accesses.push_back({request.npus, request.size, request.collective, request.done});
  }
  pool.serve(now, accesses);
}

/// Every round through every stage, one after the other.
class PlainProgram {
 public:
  explicit PlainProgram(const System& system, Bytes piece)
      : system_(system), piece_(piece), links_(system.num_npus), fabrics_(system.num_npus) {}

  /// [requests][npus] when each is through.
  std::vector<std::vector<Exact>> serve(Exact now, const std::vector<Request>& requests) {
    std::vector<std::vector<Exact>> done;
    std::uint64_t rounds = 0;
    for (const Request& request : requests) {
      done.emplace_back(request.npus.size());
      rounds = std::max(rounds, rounds_of(request));
    }
    for (std::uint64_t round = 0; round < rounds; ++round) pass(now, round, requests, done);
    for (std::size_t r = 0; r < requests.size(); ++r) {
      const auto collective = requests[r].collective;
      if (collective == PathCollective::all_reduce)
        for (Exact& time : done[r]) time += system_.link_latency() + system_.fabric_latency();
      if (collective == PathCollective::all_reduce || collective == PathCollective::reduce_scatter)
        std::ranges::fill(done[r], std::ranges::max(done[r]));
    }
    return done;
  }

 private:
  std::uint64_t rounds_of(const Request& request) const {
    return (request.size.count() + piece_.count() - 1) / piece_.count();
  }
  std::uint64_t piece_of(const Request& request, std::uint64_t round) const {
    if (round >= rounds_of(request)) return 0;
    return std::min(piece_.count(), request.size.count() - round * piece_.count());
  }

  void pass(Exact now, std::uint64_t round, const std::vector<Request>& requests,
            std::vector<std::vector<Exact>>& done) {
    std::uint64_t read = 0;
    std::vector<std::uint64_t> to_node(system_.num_npus), to_npu(system_.num_npus);
    for (const Request& request : requests) {
      const auto bytes = piece_of(request, round);
      read += bytes;
      std::vector<char> has(system_.num_npus);
      for (const NpuId npu : request.npus) {
        const auto node = system_.node_of(npu);
        to_npu[npu.index()] += bytes * request.passages();
        if (!has[node]) to_node[node] += bytes * request.passages();
        has[node] = 1;
      }
    }
    groups_ = std::max(groups_, now) + Exact(read) * system_.group();
    for (std::uint32_t node = 0; node < system_.num_npus; ++node)
      if (to_node[node] > 0)
        links_[node] =
            std::max(links_[node], groups_ + system_.group_latency()) + Exact(to_node[node]) * system_.link();
    for (std::uint32_t i = 0; i < system_.num_npus; ++i)
      if (to_npu[i] > 0)
        fabrics_[i] = std::max(fabrics_[i], links_[system_.node_of(NpuId(i))] + system_.link_latency()) +
                      Exact(to_npu[i]) * system_.fabric();
    for (std::size_t r = 0; r < requests.size(); ++r)
      if (piece_of(requests[r], round) > 0)
        for (std::size_t i = 0; i < done[r].size(); ++i)
          done[r][i] = fabrics_[requests[r].npus[i].index()] + system_.fabric_latency();
  }

  const System& system_;
  Bytes piece_;
  Exact groups_ = 0;
  std::vector<Exact> links_, fabrics_;
};

/// Each stage rounds up once for each run of rounds: `roundings` times at most.
void expect_close(Time computed, Exact exact, std::size_t roundings) {
  const auto ps = static_cast<Exact>(computed.ps());
  EXPECT_GE(ps, exact - 1e-6L * std::max<Exact>(exact * 1e-9L, 1));
  EXPECT_LE(ps, exact + static_cast<Exact>(roundings) + 1e-3L);
}

// sum of the stages for the first chunk + (chunks - 1) x the slowest + latencies, with W NPUs / (G chunk) chunks: a
// piece is G chunk / NPUs.
TEST(HierarchicalPool, AllNpusTogetherTakeTheClosedForm) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    System system = random_system(random);
    auto& hierarchy = system.options.hierarchy;
    hierarchy.chunk = Bytes(system.num_npus * random.whole(1, 200));  // whole pieces
    const Exact chunk = static_cast<Exact>(hierarchy.chunk.count()), groups = hierarchy.groups;
    const Exact nodes = system.num_npus / system.options.npus_per_node;
    const std::uint64_t chunks = random.whole(1, 50);
    auto pool = system.pool();
    const Bytes size = pool.piece() * chunks;
    ASSERT_EQ(static_cast<Exact>(size.count()) * system.num_npus / (groups * chunk), static_cast<Exact>(chunks));

    const Exact from_group = chunk / system.options.bandwidth.bytes_per_ns() * 1000;
    const Exact to_node = groups * chunk / (nodes * hierarchy.switches * hierarchy.link.bytes_per_ns()) * 1000;
    const Exact to_npu =
        groups * chunk / (nodes * system.options.npus_per_node * hierarchy.fabric.bytes_per_ns()) * 1000;
    const Exact expected = from_group + to_node + to_npu +
                           static_cast<Exact>(chunks - 1) * std::max({from_group, to_node, to_npu}) + system.latency();

    std::vector<Request> requests;
    for (std::uint32_t i = 0; i < system.num_npus; ++i) requests.push_back({{NpuId(i)}, size});
    random.shuffle(requests);
    const Time now = Time::from_ps(static_cast<std::int64_t>(random.whole(0, 1'000'000)));
    serve(pool, now, requests);
    for (const Request& request : requests) expect_close(request.done[0] - now, expected, 6);
  }
}

// NPUs make random accesses at five moments. Their ends are those that a plain program gives,
// which goes round by round through the stages.
TEST(HierarchicalPool, PartialUseGoesRoundByRoundThroughTheStages) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const System system = random_system(random);
    auto pool = system.pool();
    PlainProgram plain(system, pool.piece());
    Time now;
    std::size_t roundings = 3;
    for (int moment = 0; moment < 5; ++moment) {
      auto requests = random_requests(random, system, pool.piece());
      roundings += 6 * requests.size();
      serve(pool, now, requests);
      const auto exact = plain.serve(static_cast<Exact>(now.ps()), requests);
      Time last;
      for (std::size_t r = 0; r < requests.size(); ++r)
        for (std::size_t i = 0; i < requests[r].npus.size(); ++i) {
          expect_close(requests[r].done[i], exact[r][i], roundings);
          last = std::max(last, requests[r].done[i]);
        }
      const auto span = static_cast<std::uint64_t>((last - now).ps());
      now += Time::from_ps(static_cast<std::int64_t>(random.one_of({std::uint64_t{1}, random.whole(1, 2 * span)})));
    }
  }
}

// HierarchicalPool::alone says what an access of one NPU takes when nothing else goes on.
TEST(HierarchicalPool, AloneIsWhatOneNpuTakesInAnIdlePool) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    const System system = random_system(random);
    auto pool = system.pool();
    std::vector<Request> requests{{{NpuId(static_cast<std::uint32_t>(random.whole(0, system.num_npus - 1)))},
                                   Bytes(random.whole(1, 20 * pool.piece().count()))}};
    const Time now = Time::from_ps(17);
    serve(pool, now, requests);
    EXPECT_EQ(requests[0].done[0] - now, pool.alone(requests[0].size)) << seed;
  }
}

// Lower bound: the bytes that have passed a stage took at least what its bandwidth allows. Upper bound: no stage idles
// while it has work, so all accesses end before all bytes could have passed all stages one after the other.
TEST(HierarchicalPool, BoundsInPartialUse) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const System system = random_system(random);
    auto pool = system.pool();
    auto requests = random_requests(random, system, pool.piece());
    serve(pool, Time::zero(), requests);
    Exact last = 0;
    std::vector<Exact> to_npu(system.num_npus);
    for (const Request& request : requests) {
      for (std::size_t i = 0; i < request.npus.size(); ++i) {
        const auto done = static_cast<Exact>(request.done[i].ps());
        last = std::max(last, done);
        to_npu[request.npus[i].index()] += static_cast<Exact>(request.size.count() * request.passages());
        const Exact slowest = std::max({system.group(), system.link(), system.fabric()});
        EXPECT_GE(done + 1e-3L, system.latency() + static_cast<Exact>(request.size.count()) * slowest);
      }
    }
    const auto stages = pool.stages();
    const Exact groups = static_cast<Exact>(stages[0].bytes.count()) * system.group();
    const Exact nodes = system.num_npus / system.options.npus_per_node;
    const Exact links = static_cast<Exact>(stages[1].bytes.count()) * system.link();
    const Exact fabrics = static_cast<Exact>(stages[2].bytes.count()) * system.fabric();
    EXPECT_GE(last + 1e-3L, groups + system.latency());
    EXPECT_GE(last + 1e-3L, links / nodes + system.latency());
    EXPECT_GE(last + 1e-3L, std::ranges::max(to_npu) * system.fabric() + system.latency());
    EXPECT_LE(last, groups + links + fabrics + 2 * system.latency() + static_cast<Exact>(6 * requests.size() + 3));
  }
}

// The accesses of a moment come in two orders. Each of them ends at the same time in both.
TEST(HierarchicalPool, TheOrderOfAMomentDoesNotMatter) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const System system = random_system(random);
    auto pool = system.pool(), other = system.pool();
    for (int moment = 0; moment < 3; ++moment) {
      auto requests = random_requests(random, system, pool.piece());
      std::vector<std::size_t> order(requests.size());
      std::iota(order.begin(), order.end(), 0U);
      random.shuffle(order);
      std::vector<Request> shuffled;
      for (const auto i : order) shuffled.push_back(requests[i]);
      const Time now = Time::from_ns(moment);
      serve(pool, now, requests);
      serve(other, now, shuffled);
      for (std::size_t i = 0; i < order.size(); ++i) EXPECT_EQ(shuffled[i].done, requests[order[i]].done);
    }
  }
}

// With more bytes, less bandwidth, or other accesses at the same moment, no access ends earlier. (This does not hold
// for the time at which an access begins: docs/memory.md.)
TEST(HierarchicalPool, MoreWorkOrLessBandwidthEndsNothingEarlier) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const System system = random_system(random);
    System slower = system;
    auto pool = system.pool();
    auto requests = random_requests(random, system, pool.piece()), more = requests;
    switch (random.whole(0, 4)) {
      case 0:
        slower.options.bandwidth = Bandwidth::from_bytes_per_ns(system.options.bandwidth.bytes_per_ns() / 2);
        break;
      case 1:
        slower.options.hierarchy.link = Bandwidth::from_bytes_per_ns(system.options.hierarchy.link.bytes_per_ns() / 3);
        break;
      case 2:
        slower.options.hierarchy.fabric = Bandwidth::from_bytes_per_ns(0.1);
        break;
      case 3:
        more.front().size += Bytes(random.whole(1, 3 * pool.piece().count()));
        break;
      default:
        more.push_back(random_requests(random, system, pool.piece()).front());
    }
    auto slow = slower.pool();
    serve(pool, Time::zero(), requests);
    serve(slow, Time::zero(), more);
    const Time rounding = Time::from_ps(static_cast<std::int64_t>(6 * more.size()));
    for (std::size_t r = 0; r < requests.size(); ++r)
      for (std::size_t i = 0; i < requests[r].npus.size(); ++i)
        EXPECT_LE(requests[r].done[i], more[r].done[i] + rounding);
  }
}

// A collective of n NPUs in k nodes loads W bytes, or n accesses load W each. Each stage passes the bytes that
// docs/memory.md says.
TEST(HierarchicalPool, VolumesOfEachStage) {
  System system = [] {
    Random random(1);
    return random_system(random);
  }();
  system.num_npus = 16;
  system.options.npus_per_node = 4;
  system.options.hierarchy.chunk = Bytes(1024);
  const std::vector<NpuId> npus{NpuId(0), NpuId(1), NpuId(2), NpuId(6), NpuId(7), NpuId(12)};  // in 3 nodes
  const Bytes size(100'000);
  const auto volumes = [&](PathCollective collective) {
    auto pool = system.pool();
    std::vector<Request> requests;
    if (collective == PathCollective::none)
      for (const NpuId npu : npus) requests.push_back({{npu}, size});
    else
      requests.push_back({npus, size, collective});
    serve(pool, Time::zero(), requests);
    const auto v = pool.stages();
    return std::vector<Bytes>{v[0].bytes, v[1].bytes, v[2].bytes};
  };
  EXPECT_EQ(volumes(PathCollective::none), (std::vector{size * 6, size * 6, size * 6}));
  EXPECT_EQ(volumes(PathCollective::all_gather), (std::vector{size * 1, size * 3, size * 6}));
  EXPECT_EQ(volumes(PathCollective::reduce_scatter), (std::vector{size * 1, size * 3, size * 6}));
  EXPECT_EQ(volumes(PathCollective::all_reduce), (std::vector{size * 1, size * 6, size * 12}));
}

}  // namespace
}  // namespace orrery::memory
