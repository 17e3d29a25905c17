// Collectives from files: random ones against a simulation of every message, and well-known ones against the algorithms
// that they spell out.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <optional>
#include <random>
#include <tuple>

#include "custom_collective_builder.hpp"
#include "orrery/collective/custom_collective.hpp"
#include "random_case.hpp"
#include "random_custom_collective.hpp"

namespace orrery::collective::test {
namespace {

using topology::Shape;
using OperationKind = CustomCollective::OperationKind;
using Random = std::mt19937_64;

const Shape line_shapes[] = {Shape("Ring"), Shape("Mesh"), Shape("FullyConnected"), Shape("Switch")};
constexpr Ps per_hop = 700'000, endpoint = 11'000;  // ps; bandwidth and memory: a byte a ps

Options options_with(std::shared_ptr<const CustomCollective> custom, Kind kind) {
  Options options;
  options.endpoint_delay = Time::from_ps(endpoint);
  options.local_memory = Bandwidth::from_bytes_per_ns(1000);
  if (custom) options.custom.of_kind[kind] = {std::move(custom)};
  return options;
}

network::DelayModel line_of(Shape shape, std::uint32_t size) {
  return test_support::delays({{shape, size, Bandwidth::from_bytes_per_ns(1000), per_hop / 1e3}});
}

std::vector<Ps> finish(Engine& engine, Kind kind, Bytes size, const std::vector<Ps>& arrivals) {
  std::vector<Time> times, completions(arrivals.size());
  for (const Ps at : arrivals) times.push_back(Time::from_ps(at));
  const auto layout = engine.layout({}, all_dimensions);
  engine.validate(*layout, kind);
  engine.finish(*layout, kind, size, times, completions);
  std::vector<Ps> result;
  for (const Time time : completions) result.push_back(time.ps());
  return result;
}

std::vector<Ps> arrivals_of(Random& random, std::uint32_t count) {
  std::vector<Ps> arrivals;
  for (std::uint32_t i = 0; i < count; ++i) arrivals.push_back(static_cast<Ps>(draw(random, 0, 4'000'000)));
  return arrivals;
}

/// Every message by itself, over links that serve who comes first. Members start together.
class Messages {
 public:
  Messages(const CustomCollective& custom, Shape shape) : custom_(custom), shape_(shape) {}

  std::vector<Ps> run() {
    const auto n = static_cast<std::uint32_t>(custom_.operations().size());
    ready_.assign(n, endpoint);
    waits_.resize(n);
    there_.resize(n);
    end_.resize(n);
    in_flight_.resize(n);
    for (std::uint32_t o = 0; o < n; ++o) waits_[o] = custom_[o].dependencies;
    finish_.assign(custom_.num_positions(), endpoint);
    while (step(n)) {
    }
    return finish_;
  }
  /// Bytes of each link, of sender and receiver apart.
  const std::map<std::tuple<bool, std::uint32_t, std::uint32_t>, Ps>& carried() const { return carried_; }

 private:
  bool step(std::uint32_t n) {
    for (std::uint32_t o = 0; o < n; ++o) {  // what waits for no link
      if (end_[o] || waits_[o] > 0) continue;
      const CustomCollective::Operation& of = custom_[o];
      const auto size = static_cast<Ps>(of.fixed.count());
      if (of.kind == OperationKind::receive && there_[o]) return finish(o, std::max(ready_[o], *there_[o]) + endpoint);
      if (of.kind == OperationKind::reduce) return finish(o, ready_[o] + 3 * size);
      if (of.kind == OperationKind::copy) return finish(o, ready_[o] + 2 * size);
      if (of.kind == OperationKind::compute) return finish(o, ready_[o] + size);
      if (of.kind == OperationKind::nothing) return finish(o, ready_[o]);
    }
    std::optional<std::tuple<Ps, int, std::uint32_t>> next;  // the earliest of those that come to a link
    for (std::uint32_t o = 0; o < n; ++o) {
      std::optional<std::tuple<Ps, int, std::uint32_t>> candidate;
      if (custom_[o].kind == OperationKind::send && !end_[o] && waits_[o] == 0) candidate = {ready_[o], 0, o};
      if (in_flight_[o])  // by its first byte, and by who sends it
        candidate = {*in_flight_[o] - static_cast<Ps>(custom_[o].fixed.count()), 1, custom_[o].partner};
      if (candidate && (!next || *candidate < *next)) next = candidate;
    }
    if (!next) return false;
    const auto [when, kind, which] = *next;
    const std::uint32_t o = kind == 0 ? which : custom_[which].partner;
    const Ps time = kind == 0 ? when : *in_flight_[o];
    const std::uint32_t here = custom_[o].position, other = custom_[custom_[o].partner].position;
    const auto size = static_cast<Ps>(custom_[o].fixed.count());
    const std::tuple link{kind == 0, here, link_of(here, other, kind == 0)};
    carried_[link] += size;
    Ps& free = free_[link];
    if (kind == 1) {
      free = std::max(time, free + size);
      there_[o] = free;
      in_flight_[o].reset();
      return true;
    }
    const Ps leaves = std::max(time, free);
    free = leaves + size;
    in_flight_[custom_[o].partner] = leaves + hops(here, other) * per_hop + size;
    finish_[here] = std::max(finish_[here], free);
    return finish(o, time);
  }
  bool finish(std::uint32_t o, Ps time) {
    end_[o] = time;
    for (const std::uint32_t next : custom_.successors(o)) {
      --waits_[next];
      ready_[next] = std::max(ready_[next], time);
    }
    Ps& at = finish_[custom_[o].position];
    at = std::max(at, time);
    return true;
  }
  std::uint32_t up(std::uint32_t from, std::uint32_t to) const {
    return (to + custom_.num_positions() - from) % custom_.num_positions();
  }
  Ps hops(std::uint32_t from, std::uint32_t to) const {
    if (shape_ == Shape("Switch")) return 2;
    if (shape_ == Shape("FullyConnected")) return 1;
    if (shape_ == Shape("Mesh")) return std::abs(static_cast<Ps>(from) - static_cast<Ps>(to));
    return std::min(up(from, to), up(to, from));
  }
  std::uint32_t link_of(std::uint32_t here, std::uint32_t other, bool sends) const {
    if (shape_ == Shape("Switch")) return 0;
    if (shape_ == Shape("FullyConnected")) return other;
    if (shape_ == Shape("Mesh")) return (here < other) == sends ? 0 : 1;
    const auto [from, to] = sends ? std::pair(here, other) : std::pair(other, here);
    return up(from, to) <= up(to, from) ? 0 : 1;
  }

  const CustomCollective& custom_;
  Shape shape_;
  std::vector<Ps> ready_, finish_;
  std::vector<std::uint32_t> waits_;
  std::vector<std::optional<Ps>> there_, end_, in_flight_;
  std::map<std::tuple<bool, std::uint32_t, std::uint32_t>, Ps> free_, carried_;
};

// 600 random custom collectives run in one dimension. The engine gives the times of a plain simulation, message by
// message.
TEST(CustomCollective, AgreesWithMessages) {
  Random random(1);
  for (int round = 0; round < 600; ++round) {
    SCOPED_TRACE(round);
    const auto size = static_cast<std::uint32_t>(draw(random, 2, 9));
    const Shape shape = line_shapes[draw(random, 0, std::size(line_shapes) - 1)];
    const auto custom = random_custom_collective(random, size);
    Engine engine(line_of(shape, size), options_with(custom, Kind::all_reduce));
    Messages messages(*custom, shape);
    const std::vector<Ps> together = messages.run();
    EXPECT_EQ(finish(engine, Kind::all_reduce, Bytes(1), std::vector<Ps>(size, 0)), together);

    const std::vector<Ps> arrivals = arrivals_of(random, size);
    const std::vector<Ps> skewed = finish(engine, Kind::all_reduce, Bytes(1), arrivals);
    const auto [first, last] = std::ranges::minmax(arrivals);
    std::vector<Ps> shifted = arrivals, later = arrivals;
    for (Ps& at : shifted) at += 12'345;
    for (Ps& at : later) at += static_cast<Ps>(draw(random, 0, 1) * draw(random, 0, 2'000'000));
    const std::vector<Ps> of_shifted = finish(engine, Kind::all_reduce, Bytes(1), shifted);
    const std::vector<Ps> of_later = finish(engine, Kind::all_reduce, Bytes(1), later);
    for (std::uint32_t i = 0; i < size; ++i) {
      EXPECT_EQ(of_shifted[i], skewed[i] + 12'345);
      EXPECT_GE(of_later[i], skewed[i]);
      EXPECT_GE(skewed[i], first + together[i]);
      EXPECT_LE(skewed[i], last + together[i]);
      EXPECT_GE(skewed[i], last + engine.minimum_duration(*engine.layout({}, all_dimensions)).ps());
    }
    for (const auto& [link, busy] : messages.carried())  // no schedule beats a link
      EXPECT_GE(skewed[std::get<1>(link)], arrivals[std::get<1>(link)] + (std::get<0>(link) ? endpoint + busy : 0));
  }
}

// ---- algorithms that are spelled out ----

/// A builder whose positions do one thing after the other.
class Chains {
 public:
  explicit Chains(std::uint32_t positions) : builder_(positions) {}

  /// The next position.
  void begin(std::uint32_t position) {
    position_ = position;
    last_.reset();
  }
  void send(std::uint32_t to, std::uint32_t first, std::uint32_t count) {
    follow(builder_.add_message({.kind = OperationKind::send, .position = position_}, to, 0), first, count);
  }
  void receive(std::uint32_t from, std::uint32_t first, std::uint32_t count, bool reduces) {
    follow(builder_.add_message({.kind = OperationKind::receive, .position = position_}, from, 0), first, count);
    if (reduces) follow(builder_.add({.kind = OperationKind::reduce, .position = position_}), first, count);
  }
  /// What follows waits for nothing of this position.
  void fork() { last_.reset(); }
  std::shared_ptr<const CustomCollective> finish(std::uint32_t chunks) {
    builder_.match(
        [](std::uint32_t, std::string_view found, std::string_view) { return Error(ErrorCode::internal, found); });
    return builder_.finish("chains", chunks);
  }

 private:
  void follow(std::uint32_t operation, std::uint32_t first, std::uint32_t count) {
    const CustomCollective::Range range{first, count};
    builder_.move(operation, std::span(&range, 1));
    if (last_) builder_.depend(*last_, operation);
    last_ = operation;
  }

  CustomCollectiveBuilder builder_;
  std::uint32_t position_ = 0;
  std::optional<std::uint32_t> last_;
};

std::shared_ptr<const CustomCollective> ring(std::uint32_t n, Kind kind) {
  Chains chains(n);
  const std::uint32_t steps = kind == Kind::all_reduce ? 2 * (n - 1) : n - 1;
  for (std::uint32_t i = 0; i < n; ++i) {
    chains.begin(i);
    for (std::uint32_t k = 0; k < steps; ++k) {
      chains.send((i + 1) % n, (i + 2 * n - k) % n, 1);
      chains.receive((i + n - 1) % n, (i + 2 * n - 1 - k) % n, 1, kind != Kind::all_gather && k + 1 < n);
    }
  }
  return chains.finish(n);
}

std::shared_ptr<const CustomCollective> halving_doubling(std::uint32_t n) {
  Chains chains(n);
  const auto levels = static_cast<std::uint32_t>(std::bit_width(n) - 1);
  for (std::uint32_t i = 0; i < n; ++i) {
    chains.begin(i);
    for (std::uint32_t k = 0; k < 2 * levels; ++k) {
      const std::uint32_t level = k < levels ? k : 2 * levels - 1 - k;
      const std::uint32_t count = n >> (level + 1);
      chains.send(i ^ 1U << level, 0, count);
      chains.receive(i ^ 1U << level, 0, count, k < levels);
    }
  }
  return chains.finish(n);
}

std::shared_ptr<const CustomCollective> direct_all_to_all(std::uint32_t n) {
  Chains chains(n);
  for (std::uint32_t i = 0; i < n; ++i) {
    chains.begin(i);
    for (std::uint32_t d = 1; d < n; ++d, chains.fork()) chains.send((i + d) % n, (i + d) % n, 1);
    for (std::uint32_t d = 1; d < n; ++d, chains.fork()) chains.receive((i + n - d) % n, i, 1, false);
  }
  return chains.finish(n);
}

// A custom collective spells out what an algorithm of the registry does. The engine gives both the same times and
// bytes.
TEST(CustomCollective, AgreesWithWhatItSpellsOut) {
  Random random(2);
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    const auto which = draw(random, 0, 4);
    const auto n = which == 3 ? 1U << draw(random, 1, 5) : static_cast<std::uint32_t>(draw(random, 2, 20));
    const Kind ring_kinds[] = {Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter};
    const Kind kind = which < 3 ? ring_kinds[which] : which == 3 ? Kind::all_reduce : Kind::all_to_all;
    Shape shape = which == 4 ? Shape("FullyConnected") : line_shapes[draw(random, 0, std::size(line_shapes) - 1)];
    // Elsewhere messages between others meet on links, of which a custom collective holds the first and the last.
    if (which == 3 && shape != Shape("FullyConnected")) shape = Shape("Switch");
    Options built_in = options_with(nullptr, kind);
    const std::string_view algorithm = which < 3 ? "ring" : which == 3 ? "halvingDoubling" : "direct";
    built_in.all_reduce = built_in.all_gather = built_in.reduce_scatter = built_in.all_to_all = {{algorithm, 0, false}};
    Options custom = options_with(which < 3    ? ring(n, kind)
                                  : which == 3 ? halving_doubling(n)
                                               : direct_all_to_all(n),
                                  kind);
    built_in.chunks.splits = custom.chunks.splits = static_cast<std::uint32_t>(draw(random, 1, 4));
    const Bytes size(draw(random, 1, 100'000) * n * custom.chunks.splits);
    // The algorithms' messages pass side by side where a late member sends several at once.
    for (const bool skewed : {false, true}) {
      built_in.rules.share_bandwidth = custom.rules.share_bandwidth = !skewed;
      Engine one(line_of(shape, n), built_in), other(line_of(shape, n), custom);
      const std::vector<Ps> arrivals = skewed ? arrivals_of(random, n) : std::vector<Ps>(n, 0);
      EXPECT_EQ(finish(other, kind, size, arrivals), finish(one, kind, size, arrivals)) << skewed;
      EXPECT_EQ(other.traffic(*other.layout({}, all_dimensions), kind, size),
                one.traffic(*one.layout({}, all_dimensions), kind, size));
    }
  }
}

}  // namespace
}  // namespace orrery::collective::test
