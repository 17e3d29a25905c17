#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "all_rules.hpp"
#include "orrery/base/error.hpp"
#include "orrery/collective/collective.hpp"

namespace orrery::collective {

using test_support::AllRules;

constexpr Algorithm ring{};
constexpr Algorithm direct{"direct"};
constexpr Algorithm halving_doubling{"halvingDoubling"};
constexpr Algorithm double_binary_tree{"doubleBinaryTree"};
constexpr Algorithm binomial_tree{"binomialTree"};
constexpr Algorithm in_switch{"inSwitch"};

/// Links of 10 B/ns and 100 ns a hop.
inline topology::Dimension dimension(topology::Shape shape, std::uint32_t size) {
  return {shape, size, Bandwidth::from_bytes_per_ns(10), 100};
}

/// An endpoint delay of 7 ns and a memory of 100 B/ns: reducing m bytes takes 3 m / 100 ns.
inline Options options_of(std::vector<Algorithm> list) {
  Options options;
  options.all_reduce = options.all_gather = options.reduce_scatter = options.all_to_all = std::move(list);
  options.endpoint_delay = Time::from_ns(7);
  options.local_memory = Bandwidth::from_bytes_per_ns(100);
  return options;
}

/// An engine and what the tests ask it.
struct System {
  System(std::vector<topology::Dimension> dimensions, Options options, const AllRules& rules = {},
         topology::Links links = {})
      : engine(test_support::delays(std::move(dimensions), rules, std::move(links)), rules.with(std::move(options))) {}
  System(const network::DelayModel& delays, Options options) : engine(delays, std::move(options)) {}

  std::vector<Time> finish(Kind kind, std::uint64_t bytes, const std::vector<Time>& arrivals,
                           const std::vector<NpuId>& members = {}, std::uint64_t mask = all_dimensions) {
    const auto layout = engine.layout(members, mask);
    engine.validate(*layout, kind);
    std::vector<Time> completions(arrivals.size());
    engine.finish(*layout, kind, Bytes(bytes), arrivals, completions);
    return completions;
  }
  /// Of all members, which must complete together.
  Time together(Kind kind, std::uint64_t bytes, std::size_t count) {
    const std::vector<Time> completions = finish(kind, bytes, std::vector<Time>(count));
    for (const Time time : completions) EXPECT_EQ(time, completions[0]);
    return completions[0];
  }
  std::string refusal(Kind kind, const std::vector<NpuId>& members = {}) {
    try {
      engine.validate(*engine.layout(members, all_dimensions), kind);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_input);
      return error.what();
    }
    return "accepted";
  }

  /// Returns what is refused and why, without the algorithms that are possible instead.
  std::string fault(Kind kind, const std::vector<NpuId>& members = {}) {
    const std::string text = refusal(kind, members);
    return text.substr(0, text.find("; possible: ring, direct"));
  }

  /// Returns the bytes of a member in dimension 0.
  std::uint64_t sent(Kind kind, std::uint64_t bytes) {
    return engine.traffic(*engine.layout({}, all_dimensions), kind, Bytes(bytes))[0].count();
  }

  Engine engine;
};

inline std::vector<NpuId> npus(std::initializer_list<std::uint32_t> ids) {
  std::vector<NpuId> result;
  for (const std::uint32_t id : ids) result.emplace_back(id);
  return result;
}

inline std::vector<Time> at_ns(std::initializer_list<std::int64_t> values) {
  std::vector<Time> result;
  for (const std::int64_t ns : values) result.push_back(Time::from_ns(ns));
  return result;
}

}  // namespace orrery::collective
