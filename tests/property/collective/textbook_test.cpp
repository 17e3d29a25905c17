#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <tuple>

#include "random_case.hpp"
#include "textbook_program.hpp"

// Compares algorithms, kinds and sizes of dimension groups with messages that are written down from the literature, and
// with the formulas of docs/collectives.md: the messages carry the right data; the engine gives the bytes and times of
// the messages; and both are what the formulas say.

namespace orrery::collective::test {
namespace {

using topology::Shape;

constexpr std::uint64_t piece = 977;
constexpr Ps e = 7'000;           // endpoint delay
constexpr Ps hop = 90'000;        // latency
constexpr double bandwidth = 10;  // bytes per ns
constexpr double memory = 150;

Ps transfer(std::uint64_t bytes) { return delay(0, Bytes(bytes), Bandwidth::from_bytes_per_ns(bandwidth), {}).ps(); }
Ps time_to_add(std::uint64_t bytes) {
  return 3 * delay(0, Bytes(bytes), Bandwidth::from_bytes_per_ns(memory), {}).ps();
}

struct Entry {
  Algorithm algorithm;
  Kind asked = Kind::all_reduce;  ///< of the engine
  Kind kind = Kind::all_reduce;   ///< whose shape it has
  bool reduces = true;
  std::uint32_t size = 2;
  Shape shape = Shape("Switch");

  std::string text() const {
    return std::string(name(asked)) + ", " + std::string(algorithm.name) + " window " +
           std::to_string(algorithm.window) + ", " + std::to_string(size) + " positions of a " +
           std::string(topology::name(shape));
  }
  /// With an algorithm of its own.
  bool goes_whole() const { return kind == Kind::broadcast || kind == Kind::reduce; }
  std::uint32_t hops(std::uint32_t from, std::uint32_t to) const {
    const std::uint32_t apart = from > to ? from - to : to - from;
    if (shape == Shape("Mesh")) return apart;
    return shape == Shape("Switch") ? 2 : shape == Shape("FullyConnected") ? 1 : std::min(apart, size - apart);
  }
  /// Messages that share the link of a position.
  std::uint64_t at_once() const { return shape == Shape("Switch") && algorithm.name == "direct" ? ports() : 1; }
  /// Messages that a position sends, or receives, at a time.
  std::uint32_t ports() const {
    if (algorithm.name == "doubleBinaryTree") return 2;
    if (algorithm.name != "direct") return 1;
    return algorithm.window == 0 ? size - 1 : std::min(algorithm.window, size - 1);
  }
  /// Returns how many messages of a step share the busiest link of one from `from` to `to`: those of all positions over
  /// the same distances, which go the shorter way round on a Ring, upwards on a tie.
  std::uint64_t load(std::uint32_t from, std::uint32_t to) const {
    const bool by_xor = algorithm.name == "halvingDoubling";
    if ((algorithm.name != "direct" && !by_xor) || (shape != Shape("Ring") && shape != Shape("Mesh"))) return 1;
    const std::uint32_t distance = by_xor ? from ^ to : (to + size - from) % size, window = by_xor ? 1 : ports();
    const std::uint32_t first = (distance - 1) / window * window + 1;
    using CarriedBytes = std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t>;  // by the ends of a link
    static std::map<std::tuple<bool, std::uint32_t, std::string_view, std::uint32_t, std::uint32_t>, CarriedBytes>
        known;
    const auto [found, is_new] = known.try_emplace({by_xor, window, topology::name(shape), size, first});
    CarriedBytes& carried = found->second;
    const auto pass = [&](std::uint32_t at, std::uint32_t end, auto visit) {
      const bool is_ring = shape == Shape("Ring");
      const bool upwards = is_ring ? (end + size - at) % size * 2 <= size : end > at;
      while (at != end) {
        const std::uint32_t next = upwards ? (at + 1) % size : (at + size - 1) % size;
        visit(carried[{at, next}]);
        at = next;
      }
    };
    for (std::uint32_t i = 0; is_new && i < size; ++i)
      for (std::uint32_t d = first; d < std::min(size, first + window); ++d)
        pass(i, by_xor ? i ^ d : (i + d) % size, [](std::uint64_t& count) { ++count; });
    std::uint64_t most = 1;
    pass(from, to, [&](const std::uint64_t& count) { most = std::max(most, count); });
    return most;
  }
  GroupCase group(std::uint32_t tree) const {
    return {algorithm,
            kind,
            reduces,
            size,
            piece,
            tree,
            e,
            [*this](std::uint32_t from, std::uint32_t to, std::uint64_t bytes) {
              return hops(from, to) * hop + transfer(at_once() * load(from, to) * bytes);
            },
            time_to_add,
            hop};
  }
};

Kind shape_of(Kind kind) {
  if (kind == Kind::broadcast || kind == Kind::reduce || kind == Kind::barrier) return Kind::all_reduce;
  if (kind == Kind::gather) return Kind::all_gather;
  return kind == Kind::scatter ? Kind::reduce_scatter : kind;
}

bool has_steps(const Entry& entry) {
  const std::string_view algorithm = entry.algorithm.name;
  if (algorithm == "halvingDoubling") return entry.kind != Kind::all_to_all && std::has_single_bit(entry.size);
  if (algorithm == "doubleBinaryTree") return entry.kind == Kind::all_reduce;
  if (algorithm == "binomialTree") return entry.kind == Kind::all_reduce || entry.goes_whole();
  if (algorithm == "inSwitch") return entry.kind != Kind::all_to_all && entry.shape == Shape("Switch");
  return true;
}

std::vector<Entry> entries() {
  std::vector<Entry> all;
  const Algorithm algorithms[] = {{"ring"},         {"direct"},          {"direct", 1},
                                  {"direct", 3},    {"halvingDoubling"}, {"doubleBinaryTree"},
                                  {"binomialTree"}, {"inSwitch"}};
  for (const Algorithm& algorithm : algorithms)
    for (int kind = 0; kind <= static_cast<int>(Kind::barrier); ++kind)
      for (std::uint32_t size = 2; size <= 17; ++size)
        for (const Shape shape : {Shape("Switch"), Shape("FullyConnected"), Shape("Ring"), Shape("Mesh")}) {
          const auto asked = static_cast<Kind>(kind);
          const bool reduces = asked != Kind::broadcast && asked != Kind::scatter;
          const Entry entry{algorithm, asked, shape_of(asked), reduces, size, shape};
          if (has_steps(entry)) all.push_back(entry);
          if (asked != Kind::broadcast && asked != Kind::reduce) continue;
          const Entry whole{algorithm, asked, asked, reduces, size, shape};
          const bool has_own = algorithm.name == "binomialTree" || algorithm.name == "inSwitch";
          if (has_own && has_steps(whole)) all.push_back(whole);
        }
  return all;
}

/// Chunks of `size` pieces, or of a shard of one piece, one after the other.
struct System {
  explicit System(const Entry& entry, std::uint32_t num_chunks = 2)
      : count(num_chunks), chunk(entry.kind == Kind::all_gather ? piece : piece * entry.size) {
    Options options;
    options.all_reduce = options.all_gather = options.reduce_scatter = options.all_to_all = {entry.algorithm};
    if (entry.goes_whole()) options.broadcast = options.reduce = {entry.algorithm};
    options.endpoint_delay = Time::from_ps(e);
    options.local_memory = Bandwidth::from_bytes_per_ns(memory);
    options.chunks.splits = num_chunks;
    topology::Dimension dimension{entry.shape, entry.size, Bandwidth::from_bytes_per_ns(bandwidth), hop / 1e3};
    if (entry.algorithm.name == "inSwitch") dimension.in_switch_operations = 1;
    engine = std::make_unique<Engine>(test_support::delays({dimension}), options);
    layout = engine->layout({}, all_dimensions);
    engine->validate(*layout, entry.asked);
  }
  std::vector<Ps> finish(Kind kind, const std::vector<Ps>& arrivals) {
    std::vector<Time> times, completions(arrivals.size());
    for (const Ps at : arrivals) times.push_back(Time::from_ps(at));
    engine->finish(*layout, kind, Bytes(count * chunk), times, completions);
    std::vector<Ps> result;
    for (const Time time : completions) result.push_back(time.ps());
    return result;
  }

  std::uint32_t count;
  std::uint64_t chunk;
  std::unique_ptr<Engine> engine;
  std::shared_ptr<const GroupLayout> layout;
};

/// Before the collective: all positions have their own vector, shard or blocks; of broadcast and scatter only the root.
Holdings initial(const Entry& entry, std::uint32_t root) {
  const std::uint32_t n = entry.size;
  Holdings holdings(n, std::vector<Contributors>(entry.kind == Kind::all_to_all ? n * n : n, 0));
  for (std::uint32_t i = 0; i < n; ++i)
    for (std::uint32_t b = 0; b < holdings[i].size(); ++b) {
      bool has = entry.reduces || i == root;
      if (entry.kind == Kind::all_gather) has = b == i;
      if (entry.kind == Kind::all_to_all) has = b / n == i;
      if (has) holdings[i][b] = Contributors{1} << i;
    }
  return holdings;
}

/// What position i must hold in block b; nothing if it does not matter.
std::optional<Contributors> wanted(const Entry& entry, std::uint32_t root, std::uint32_t i, std::uint32_t b) {
  const Contributors all = (Contributors{1} << entry.size) - 1;
  switch (entry.asked) {
    case Kind::all_reduce:
    case Kind::barrier:
      return all;
    case Kind::broadcast:
      return Contributors{1} << root;
    case Kind::reduce:
      return i == root ? std::optional(all) : std::nullopt;
    case Kind::reduce_scatter:
      return b == i ? std::optional(all) : std::nullopt;
    case Kind::scatter:
      return b == i ? std::optional(Contributors{1} << root) : std::nullopt;
    case Kind::all_gather:
      return Contributors{1} << b;
    case Kind::gather:
      return i == root ? std::optional(Contributors{1} << b) : std::nullopt;
    case Kind::all_to_all:
      return b % entry.size == i ? std::optional(Contributors{1} << (b / entry.size)) : std::nullopt;
    case Kind::expert_dispatch:
    case Kind::expert_combine:
      break;  // which no algorithm carries out
  }
  return std::nullopt;
}

/// Trees of their own have their root in position 0. In a switch only the root of a broadcast or scatter sends, which
/// the messages take to be position 0.
bool can_be_root(const Entry& entry, std::uint32_t position) {
  if (entry.goes_whole()) return position == 0;
  return position == 0 || entry.reduces || entry.algorithm.name != "inSwitch";
}

// The messages of each algorithm are written down from the literature. When they carry the data, each member ends with
// what the collective promises, and nothing is added twice.
TEST(Textbook, EveryMemberEndsWithTheRightData) {
  for (const Entry& entry : entries())
    for (const std::uint32_t tree : {0U, 1U}) {
      if (tree == 1 && entry.algorithm.name != "doubleBinaryTree") continue;
      const TextbookProgram program(entry.group(tree));
      for (std::uint32_t root = 0; root < entry.size && can_be_root(entry, root); ++root) {
        int twice = 0;
        const Holdings found = program.carry(initial(entry, root), twice);
        EXPECT_EQ(twice, 0) << entry.text();
        for (std::uint32_t i = 0; i < entry.size; ++i)
          for (std::uint32_t b = 0; b < found[i].size(); ++b) {
            const auto contributors = wanted(entry, root, i, b);
            EXPECT_EQ(found[i][b], contributors.value_or(found[i][b])) << entry.text() << ": " << i << ", " << b;
          }
      }
    }
}

// The messages from the literature are timed one by one. The engine gives the same times, and the same bytes.
TEST(Textbook, MessagesTakeTheTimeAndTheBytesOfTheEngine) {
  std::mt19937_64 random(9);
  for (const Entry& entry : entries()) {
    if (entry.asked == Kind::barrier) continue;  // its size is its own
    System system(entry);
    const TextbookProgram even(entry.group(0)), odd(entry.group(1));
    EXPECT_EQ(system.engine->traffic(*system.layout, entry.asked, Bytes(2 * system.chunk))[0].count(),
              (even.bytes() + odd.bytes()) / entry.size)
        << entry.text();
    for (int round = 0; round < 4; ++round) {
      std::vector<Ps> arrivals(entry.size, 0);
      if (round > 0)
        for (std::size_t i = 0; const Time time : random_arrivals(random, entry.size)) arrivals[i++] = time.ps();
      EXPECT_EQ(system.finish(entry.asked, arrivals), odd.finish(even.finish(arrivals))) << entry.text();
    }
  }
}

/// A row of the table.
struct Row {
  std::uint64_t steps = 0;  ///< messages of which each waits for the one before
  std::uint64_t sent = 0;   ///< bytes, by all positions together
  Ps duration = 0;          ///< when all start together
  bool exact = true;        ///< false: no more than this
};

std::uint64_t levels(std::uint32_t n) { return static_cast<std::uint64_t>(std::bit_width(n - 1)); }

/// L of a message to a position at this distance.
Ps link(const Entry& entry, std::uint64_t bytes, std::uint64_t distance) {
  const auto to = static_cast<std::uint32_t>(distance);
  return entry.hops(0, to) * hop + transfer(entry.at_once() * entry.load(0, to) * bytes);
}

Row ring_row(const Entry& entry) {
  const std::uint64_t n = entry.size;
  const bool adds = entry.reduces && (entry.kind == Kind::all_reduce || entry.kind == Kind::reduce_scatter);
  std::uint64_t steps = n - 1;
  if (entry.kind == Kind::all_reduce) steps = 2 * (n - 1);
  if (entry.kind == Kind::all_to_all) steps = n * (n - 1) / 2;
  const Ps reductions = adds ? static_cast<Ps>(n - 1) * time_to_add(piece) : 0;
  Row row{steps, n * steps * piece, e + static_cast<Ps>(steps) * (link(entry, piece, 1) + e) + reductions};
  // In a row what the last position sends goes all the way back to the first: once in n steps.
  if (entry.shape == Shape("Mesh")) row.duration += static_cast<Ps>((steps + n - 1) / n * (n - 2)) * hop;
  return row;
}

Row direct_row(const Entry& entry) {
  const std::uint64_t n = entry.size;
  const bool adds = entry.reduces && (entry.kind == Kind::all_reduce || entry.kind == Kind::reduce_scatter);
  const std::uint64_t window = entry.algorithm.window == 0 ? n - 1 : entry.algorithm.window;
  const std::uint64_t halves = entry.kind == Kind::all_reduce ? 2 : 1;
  Row row{0, halves * n * (n - 1) * piece, e, entry.shape != Shape("Mesh") || window >= n - 1};
  for (std::uint64_t first = 1; first < n; first += window) {
    Ps longest = 0;
    for (std::uint64_t d = first; d < std::min(n, first + window); ++d)
      for (std::uint32_t from = 0; from < n; ++from) {
        const auto to = static_cast<std::uint32_t>((from + d) % n);
        longest =
            std::max(longest, entry.hops(from, to) * hop + transfer(entry.at_once() * entry.load(from, to) * piece));
      }
    row.steps += halves;
    row.duration += static_cast<Ps>(halves) * (longest + e) + (adds ? time_to_add(piece) : 0);
  }
  return row;
}

Row halving_doubling_row(const Entry& entry) {
  const std::uint64_t n = entry.size;
  Row row{0, 0, e};
  for (std::uint64_t distance = 1; distance < n; distance *= 2) {
    const std::uint64_t bytes = n / (2 * distance) * piece;
    const std::uint64_t halves = entry.kind == Kind::all_reduce ? 2 : 1;
    row.steps += halves;
    row.sent += halves * n * bytes;
    row.duration += static_cast<Ps>(halves) * (link(entry, bytes, distance) + e);
    if (entry.kind != Kind::all_gather && entry.reduces) row.duration += time_to_add(bytes);
  }
  return row;
}

/// `halves`: ways up and down. The closed forms are of lines of 2^k positions that are all equally far apart; others
/// have no more than the next 2^k.
Row tree_row(const Entry& entry, std::uint64_t halves, std::uint64_t reductions) {
  const std::uint64_t k = levels(entry.size);
  const std::uint64_t bytes = entry.size * piece;
  Ps farthest = 0;
  for (std::uint32_t d = 1; d < entry.size; ++d) farthest = std::max(farthest, link(entry, bytes, d));
  const Ps adding = entry.reduces ? static_cast<Ps>(reductions) * time_to_add(bytes) : 0;
  return {halves * k, halves * (entry.size - 1) * bytes, e + static_cast<Ps>(halves * k) * (farthest + e) + adding,
          std::has_single_bit(entry.size) && entry.shape != Shape("Ring") && entry.shape != Shape("Mesh")};
}

Row in_switch_row(const Entry& entry) {
  const std::uint64_t n = entry.size;
  std::uint64_t senders = n, up = n * piece, down = n * piece;
  if (entry.kind == Kind::broadcast || (entry.kind == Kind::all_reduce && !entry.reduces)) senders = 1;
  if (entry.kind == Kind::reduce_scatter) down = piece;
  if (entry.kind == Kind::reduce_scatter && !entry.reduces) senders = 1, up = (n - 1) * piece;
  if (entry.kind == Kind::all_gather) up = piece, down = (n - 1) * piece;
  return {2, senders * up, e + 2 * hop + transfer(std::max(up, down)) + e};
}

Row row_of(const Entry& entry) {
  const std::uint64_t k = levels(entry.size);
  const std::string_view algorithm = entry.algorithm.name;
  if (algorithm == "ring") return ring_row(entry);
  if (algorithm == "direct") return direct_row(entry);
  if (algorithm == "halvingDoubling") return halving_doubling_row(entry);
  if (algorithm == "doubleBinaryTree") return tree_row(entry, 2, 2 * k - 1);
  if (algorithm == "binomialTree")
    return tree_row(entry, entry.goes_whole() ? 1 : 2, entry.kind == Kind::broadcast ? 0 : k);
  return in_switch_row(entry);
}

// docs/collectives.md gives a formula of steps and bytes for each algorithm. The durations and bytes of the engine
// equal it, or stay below it where it is a bound.
TEST(Textbook, FormulasAreThoseOfTheEngine) {
  for (const Entry& entry : entries()) {
    if (entry.asked == Kind::barrier) continue;
    const Row row = row_of(entry);
    System system(entry, 1);
    const Ps duration = std::ranges::max(system.finish(entry.asked, std::vector<Ps>(entry.size, 0)));
    GroupCase unit = entry.group(0);
    unit.endpoint_delay = 0;
    unit.reduction = [](std::uint64_t) { return 0; };
    unit.link = [&](std::uint32_t, std::uint32_t, std::uint64_t) { return entry.algorithm.name == "inSwitch" ? 2 : 1; };
    unit.hop = 1;
    const Ps steps = std::ranges::max(TextbookProgram(unit).finish(std::vector<Ps>(entry.size, 0)));
    EXPECT_EQ(system.engine->traffic(*system.layout, entry.asked, Bytes(system.chunk))[0].count(),
              row.sent / entry.size)
        << entry.text();
    if (row.exact) {
      EXPECT_EQ(duration, row.duration) << entry.text();
      EXPECT_EQ(steps, static_cast<Ps>(row.steps)) << entry.text();
    } else {
      EXPECT_LE(duration, row.duration) << entry.text();
      EXPECT_LE(steps, static_cast<Ps>(row.steps)) << entry.text();
    }
  }
}

/// Bytes that some position has to send or to receive, whatever the algorithm: Chan et al., 2007, table 2; for
/// all-reduce in the switch, which adds up for the positions, what a position has and what it gets.
std::uint64_t least_bytes(const Entry& entry) {
  const std::uint64_t n = entry.size;
  const bool adds_elsewhere = entry.algorithm.name == "inSwitch";
  switch (entry.asked) {
    case Kind::all_reduce:
      return adds_elsewhere ? n * piece : 2 * (n - 1) * piece;
    case Kind::broadcast:
    case Kind::reduce:
      return n * piece;
    default:
      return (n - 1) * piece;
  }
}

// No collective can be faster than its number of rounds, or than its bytes take over the links of a member. The engine
// keeps to these bounds.
TEST(Textbook, NothingIsFasterThanItsLowerBounds) {
  for (const Entry& entry : entries()) {
    if (entry.asked == Kind::barrier) continue;
    System system(entry, 1);
    const Ps duration = std::ranges::max(system.finish(entry.asked, std::vector<Ps>(entry.size, 0)));
    const std::uint32_t p = entry.ports();
    // Who sends p messages at a time can have told (p + 1)^k after k of them.
    Ps rounds = 0;
    for (std::uint64_t told = 1; told < entry.size; told *= p + 1) ++rounds;
    const bool in_switch = entry.algorithm.name == "inSwitch";
    EXPECT_GE(duration, (in_switch ? 1 : rounds) * (entry.shape == Shape("Switch") ? 2 : 1) * hop) << entry.text();
    const std::uint64_t links = p / entry.at_once();
    EXPECT_GE(duration, transfer(TextbookProgram(entry.group(0)).most_bytes() / links)) << entry.text();
    EXPECT_GE(duration, transfer(least_bytes(entry) / links)) << entry.text();
  }
}

}  // namespace
}  // namespace orrery::collective::test
