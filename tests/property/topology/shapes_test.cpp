// Every shape of the registry, without naming any: its routes over its links, and what it declares against what follows
// from the routes. A new shape is held to all of this as soon as it is in the registry.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "orrery/base/error.hpp"
#include "orrery/topology/fabric.hpp"
#include "orrery/topology/symmetry.hpp"
#include "orrery/topology/topology.hpp"

namespace orrery::topology {
namespace {

constexpr std::uint32_t most_npus = 40;

using Random = std::mt19937;

std::uint32_t draw(Random& random, std::uint32_t least, std::uint32_t most) {
  return std::uniform_int_distribution<std::uint32_t>(least, most)(random);
}

/// Draws dimensions of the shape until one is valid. It has two NPUs or more.
Dimension random_dimension(Shape shape, Random& random) {
  for (int attempt = 0; attempt < 10'000; ++attempt) {
    Dimension dimension{shape, draw(random, 2, most_npus), Bandwidth::from_bytes_per_ns(10), 100};
    for (const ShapeParameter& parameter : shape->parameters)
      dimension.parameters[std::string(parameter.name)] = draw(random, 1, 8);
    if (shape->may_be_oversubscribed) dimension.oversubscription = draw(random, 1, 3);
    try {
      validate(dimension, 0, shape.name());
      return dimension;
    } catch (const Error&) {
    }
  }
  ADD_FAILURE() << "no dimension of the shape " << shape.name() << " is valid";
  return {};
}

std::string text(const Dimension& dimension) {
  std::string text(dimension.shape.name());
  text += " of " + std::to_string(dimension.size) + ", oversubscribed by " + std::to_string(dimension.oversubscription);
  for (const auto& [name, value] : dimension.parameters) text += ", " + name + " " + std::to_string(value);
  return text;
}

/// Calls check(dimension, random) for many dimensions of each shape.
template <class Check>
void for_many_dimensions(Check check) {
  for (const Shape shape : Shape::all()) {
    Random random(7);
    for (int sample = 0; sample < 60; ++sample) {
      const Dimension dimension = random_dimension(shape, random);
      SCOPED_TRACE(text(dimension));
      check(dimension, random);
      if (testing::Test::HasFailure()) return;
    }
  }
}

/// Calls visit(a, b) for each ordered pair of different positions.
template <class Visit>
void for_each_pair(std::uint32_t size, Visit visit) {
  for (std::uint32_t a = 0; a < size; ++a)
    for (std::uint32_t b = 0; b < size; ++b)
      if (a != b) visit(a, b);
}

std::uint32_t num_switches(const Wiring& wiring) {
  std::uint32_t count = 0;
  for (const SwitchTier& tier : wiring.switch_tiers()) count += tier.count;
  return count;
}

// A configuration names a shape, or a shorthand for several dimensions of one, by a word that nothing else has.
TEST(Shapes, HaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (const Shape shape : Shape::all()) {
    EXPECT_TRUE(names.insert(shape.name()).second) << shape.name();
    EXPECT_EQ(Shape(shape.name()), shape);
    EXPECT_FALSE(shape->help.empty());
    for (const ShapeShorthand& shorthand : shape->shorthands) {
      EXPECT_TRUE(names.insert(shorthand.name).second) << shorthand.name;
      EXPECT_GE(shorthand.dimensions, 1U);
    }
  }
  EXPECT_FALSE(Shape::find("Ring of rings"));
}

// A route is a chain of links that are there, from the source to the destination, and passes no device twice.
TEST(Shapes, RoutesAreChainsOfLinksThatAreThere) {
  for_many_dimensions([](const Dimension& dimension, Random&) {
    const auto wiring = make_wiring(dimension);
    for_each_pair(dimension.size, [&](std::uint32_t from, std::uint32_t to) {
      Device at{Device::Kind::position, from};
      std::set<std::pair<Device::Kind, std::uint32_t>> passed{{at.kind, at.number}};
      while (!(at == Device{Device::Kind::position, to})) {
        const GroupLink link = wiring->towards(at, to);
        ASSERT_LT(link.position, dimension.size);
        ASSERT_LT(link.number, wiring->links_per_position());
        EXPECT_TRUE(wiring->exists(link));
        EXPECT_EQ(wiring->from(link), at);
        at = wiring->to(link);
        EXPECT_LT(at.number, at.kind == Device::Kind::position ? dimension.size : num_switches(*wiring));
        ASSERT_TRUE(passed.insert({at.kind, at.number}).second) << "from " << from << " to " << to;
      }
    });
  });
}

// Packets that change to the second one of two virtual channels at links that turn them never wait in a circle: the
// channels of links can be put in an order in which all routes ascend.
TEST(Shapes, RoutesOverTwoChannelsHaveNoCircles) {
  for_many_dimensions([](const Dimension& dimension, Random&) {
    const auto wiring = make_wiring(dimension);
    const std::uint32_t per_position = wiring->links_per_position();
    std::vector<std::set<std::uint32_t>> behind(std::size_t{2} * dimension.size * per_position);
    for_each_pair(dimension.size, [&](std::uint32_t from, std::uint32_t to) {
      std::optional<std::uint32_t> before;
      std::uint32_t turned = 0;
      for (Device at{Device::Kind::position, from}; !(at == Device{Device::Kind::position, to});) {
        const GroupLink link = wiring->towards(at, to);
        if (wiring->turns_channel(link)) turned = 1;
        const std::uint32_t channel = 2 * (link.position * per_position + link.number) + turned;
        if (before) behind[*before].insert(channel);
        before = channel;
        at = wiring->to(link);
      }
    });
    std::vector<std::uint32_t> num_before(behind.size()), ready;
    for (const auto& next : behind)
      for (const std::uint32_t channel : next) ++num_before[channel];
    for (std::uint32_t channel = 0; channel < behind.size(); ++channel)
      if (num_before[channel] == 0) ready.push_back(channel);
    for (std::size_t i = 0; i < ready.size(); ++i)
      for (const std::uint32_t next : behind[ready[i]])
        if (--num_before[next] == 0) ready.push_back(next);
    EXPECT_EQ(ready.size(), behind.size());
  });
}

// Closed forms equal what the base class finds by following the routes and counting the links.
TEST(Shapes, ClosedFormsFollowFromTheRoutes) {
  for_many_dimensions([](const Dimension& dimension, Random&) {
    const auto wiring = make_wiring(dimension);
    for_each_pair(dimension.size, [&](std::uint32_t from, std::uint32_t to) {
      ASSERT_EQ(wiring->hops(from, to), wiring->Wiring::hops(from, to)) << "from " << from << " to " << to;
      ASSERT_EQ(wiring->last_link(from, to), wiring->Wiring::last_link(from, to)) << "from " << from << " to " << to;
      EXPECT_GE(wiring->hops(from, to), wiring->fewest_hops());
      EXPECT_LE(wiring->hops(from, to), wiring->most_hops());
    });
    EXPECT_EQ(wiring->fewest_hops(), wiring->Wiring::fewest_hops());
    EXPECT_EQ(wiring->num_injection_links(), wiring->Wiring::num_injection_links());
    EXPECT_EQ(directed_links(dimension), wiring->num_injection_links());
    if (!dimension.shape->is_of_links_only) {
      EXPECT_EQ(wiring->most_hops(), wiring->Wiring::most_hops());
    }
  });
}

// The bound of hops is not loose: some dimension of each shape has positions that are so far apart.
TEST(Shapes, SomePositionsAreAsFarApartAsTheBoundSays) {
  for (const Shape shape : Shape::all()) {
    Random random(7);
    bool is_reached = false;
    for (int sample = 0; sample < 60 && !is_reached; ++sample) {
      const auto wiring = make_wiring(random_dimension(shape, random));
      is_reached = wiring->most_hops() == wiring->Wiring::most_hops();
    }
    EXPECT_TRUE(is_reached) << shape.name();
  }
}

// Every link out of a position that is there is taken by a route of that position.
TEST(Shapes, EveryLinkOutOfAPositionIsTaken) {
  for_many_dimensions([](const Dimension& dimension, Random&) {
    const auto wiring = make_wiring(dimension);
    std::set<std::pair<std::uint32_t, std::uint32_t>> taken;
    for_each_pair(dimension.size, [&](std::uint32_t from, std::uint32_t to) {
      const GroupLink first = wiring->first_link(from, to);
      taken.insert({first.position, first.number});
    });
    EXPECT_EQ(taken.size(), wiring->num_injection_links());
    if (dimension.size > 2) {
      EXPECT_EQ(dimension.shape->sends_over_one_link, taken.size() == dimension.size);
    }
  });
}

// Delays are computed with the hops of the route, or with the bound in a shape of links only. They are the same in both
// directions, and the renumberings that the shape declares leave them as they are.
TEST(Shapes, HopsHaveTheSymmetryThatTheShapeDeclares) {
  for_many_dimensions([](const Dimension& dimension, Random&) {
    const Topology topology({dimension});
    const Wiring& wiring = topology.wiring(0);
    const std::uint32_t n = dimension.size;
    const HopSymmetry symmetry = dimension.shape->symmetry;
    for_each_pair(n, [&](std::uint32_t a, std::uint32_t b) {
      const std::uint32_t hops = topology.hops(0, a, b);
      EXPECT_EQ(hops, dimension.shape->is_of_links_only ? wiring.most_hops() : wiring.hops(a, b));
      EXPECT_EQ(hops, topology.hops(0, b, a));
      if (symmetry >= HopSymmetry::translations && a + 1 < n && b + 1 < n) {
        EXPECT_EQ(hops, topology.hops(0, a + 1, b + 1));
      }
      if (symmetry >= HopSymmetry::rotations) {
        EXPECT_EQ(hops, topology.hops(0, (a + 1) % n, (b + 1) % n));
      }
      if (symmetry == HopSymmetry::permutations) {
        EXPECT_EQ(hops, topology.hops(0, 0, 1));
      }
    });
    EXPECT_EQ(topology.hops(0, n - 1, n - 1), 0U);
  });
}

std::vector<std::uint32_t> random_positions(const Dimension& dimension, Random& random) {
  std::vector<std::uint32_t> positions(dimension.size);
  std::iota(positions.begin(), positions.end(), 0U);
  if (draw(random, 0, 1) == 0) std::ranges::shuffle(positions, random);
  const std::uint32_t step = draw(random, 1, 3), begin = draw(random, 0, step - 1);
  std::vector<std::uint32_t> chosen;
  for (std::size_t i = begin; i < positions.size(); i += step) chosen.push_back(positions[i]);
  return chosen;
}

// Positions in normal form are as far apart as the positions themselves, and messages of one position share a first
// link, or a last one, just where those of the position itself do.
TEST(Shapes, TheNormalFormKeepsHopsAndTheSharingOfLinks) {
  for_many_dimensions([](const Dimension& dimension, Random& random) {
    const Topology topology({dimension});
    const Wiring& wiring = topology.wiring(0);
    const std::vector<std::uint32_t> positions = random_positions(dimension, random);
    if (positions.empty()) return;
    std::vector<std::uint32_t> normal;
    append_normal_form(dimension, positions, normal);
    ASSERT_EQ(normal.size(), positions.size());
    const auto count = static_cast<std::uint32_t>(positions.size());
    for_each_pair(count, [&](std::uint32_t i, std::uint32_t j) {
      EXPECT_EQ(topology.hops(0, positions[i], positions[j]), topology.hops(0, normal[i], normal[j]));
      for (std::uint32_t k = 0; k < j; ++k) {
        if (k == i) continue;
        const auto share_first = [&](const std::vector<std::uint32_t>& of) {
          return wiring.first_link(of[i], of[j]) == wiring.first_link(of[i], of[k]);
        };
        const auto share_last = [&](const std::vector<std::uint32_t>& of) {
          return wiring.last_link(of[j], of[i]) == wiring.last_link(of[k], of[i]);
        };
        EXPECT_EQ(share_first(positions), share_first(normal));
        EXPECT_EQ(share_last(positions), share_last(normal));
      }
    });
  });
}

// Where positions are called circulant, the hops between two of them depend on their distance in the list alone.
TEST(Shapes, CirculantPositionsAreSo) {
  for_many_dimensions([](const Dimension& dimension, Random& random) {
    const Topology topology({dimension});
    std::vector<std::uint32_t> all(dimension.size);
    std::iota(all.begin(), all.end(), 0U);
    const auto expect_circulant = [&](const std::vector<std::uint32_t>& positions) {
      const auto count = static_cast<std::uint32_t>(positions.size());
      for_each_pair(count, [&](std::uint32_t i, std::uint32_t j) {
        EXPECT_EQ(topology.hops(0, positions[i], positions[j]),
                  topology.hops(0, positions[0], positions[(j + count - i) % count]));
      });
    };
    if (is_circulant(dimension)) expect_circulant(all);
    EXPECT_EQ(is_circulant(dimension), is_circulant(dimension, all));
    for (int list = 0; list < 10; ++list)
      if (const auto positions = random_positions(dimension, random); is_circulant(dimension, positions))
        expect_circulant(positions);
  });
}

// Links fail one after the other, and those that a shape cannot do without are refused. Between any two NPUs a message
// then has a way over links that work, of as many links as are counted. Shapes without detours refuse every failed
// link.
TEST(Shapes, MessagesGoAroundFailedLinks) {
  for_many_dimensions([](const Dimension& dimension, Random& random) {
    Links links(std::vector{dimension});
    FailedLinks failed;
    for (int fault = 0; fault < 6; ++fault) {
      const std::uint32_t a = draw(random, 0, dimension.size - 1);
      const std::uint32_t b = draw(random, 0, 1) == 0 ? (a + 1) % dimension.size : draw(random, 0, dimension.size - 1);
      try {
        links.add({0, {NpuId(a), NpuId(b)}, {}, true});
        failed.emplace_back(std::min(a, b), std::max(a, b));
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::bad_input);
      }
    }
    if (!dimension.shape->has_detours) {
      EXPECT_TRUE(failed.empty());
    }
    const Topology topology({dimension}, links);
    const Fabric fabric(topology);
    for_each_pair(dimension.size, [&](std::uint32_t from, std::uint32_t to) {
      if (dimension.shape->is_of_links_only) return;
      std::uint32_t hops = 0;
      topology.for_each_leg(NpuId(from), NpuId(to), [&](std::uint32_t, std::uint32_t count, const Port&) {
        hops += count;
        return true;
      });
      std::uint32_t passed = 0;
      for (std::optional<LinkId> at = fabric.first(NpuId(from), NpuId(to)); at;
           at = fabric.next(fabric.find(*at), NpuId(to))) {
        const Fabric::Link link = fabric.find(*at);
        passed += fabric.role(link) == LinkRole::core ? 0 : 1;
        const auto [begin, end] = fabric.ends(link);
        if (begin >= 0 && end >= 0) {
          EXPECT_FALSE(has_failed(failed, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)));
        }
        ASSERT_LE(passed, hops) << "from " << from << " to " << to;
      }
      EXPECT_EQ(passed, hops) << "from " << from << " to " << to;
    });
  });
}

}  // namespace
}  // namespace orrery::topology
