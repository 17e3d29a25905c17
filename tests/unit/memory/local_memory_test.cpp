#include "orrery/memory/local_memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "orrery/trace/builder.hpp"

namespace orrery::memory {
namespace {

Time at(std::int64_t ps) { return Time::from_ps(ps); }

/// A graph and what follows from its tensors.
struct Structure {
  trace::Graph graph;
  Lifetimes lifetimes;

  LocalMemory memory(NpuId npu, Bytes size) const { return {npu, graph.tensors, lifetimes, size}; }
};

/// Nodes with their tensors.
class Listed {
 public:
  NodeId node(const std::vector<NodeId>& after = {}) { return builder_.compute("", 0, Bytes(0), after); }
  void needs(NodeId node, const char* tensor, std::uint64_t size) { list(node, tensor, size, true, false); }
  void makes(NodeId node, const char* tensor, std::uint64_t size) { list(node, tensor, size, false, true); }
  void updates(NodeId node, const char* tensor, std::uint64_t size) { list(node, tensor, size, true, true); }
  void list(NodeId node, const std::string& tensor, std::uint64_t size, bool needs, bool makes) {
    builder_.list(node, builder_.tensor(tensor, Bytes(size)), needs, makes);
  }
  Structure structure() {
    Structure structure{builder_.finish().graph, {}};
    structure.lifetimes = lifetimes_of(structure.graph);
    return structure;
  }

 private:
  trace::Builder builder_;
};

using Steps = std::vector<std::pair<std::int64_t, std::uint64_t>>;

Steps steps(const LocalMemory& memory) {
  Steps steps;
  for (const auto& record : memory.timeline()) steps.emplace_back(record.since.ps(), record.usage.count());
  return steps;
}

/// A layer's forward and backward pass and its update: the parameters and the batch are there from the start.
struct Layer {
  Listed listed;
  NodeId forward = listed.node(), backward = listed.node({forward}), update = listed.node({backward});
  Structure structure;

  Layer() {
    listed.needs(forward, "batch", 1);
    listed.needs(forward, "weights", 100);
    listed.makes(forward, "activations", 10);
    listed.needs(backward, "activations", 10);
    listed.needs(backward, "weights", 100);
    listed.makes(backward, "gradients", 50);
    listed.needs(update, "gradients", 50);
    listed.updates(update, "weights", 100);
    listed.makes(update, "norm", 1);
    structure = listed.structure();
  }

  /// Each node takes 10 ps.
  void run(LocalMemory& memory, std::int64_t begin) const {
    for (const NodeId node : {forward, backward, update}) {
      memory.start(node, at(begin));
      memory.complete(node, at(begin += 10));
    }
  }
};

// A layer begins with the iteration. Activations leave after the backward pass, gradients after the update.
TEST(LocalMemory, TensorsLiveFromTheirMakerToTheLastThatNeedsThem) {
  const Layer layer;
  LocalMemory memory = layer.structure.memory(NpuId(3), Bytes(0));
  memory.begin_iteration(at(0), true);
  layer.run(memory, 0);
  memory.end(at(30));
  EXPECT_EQ(steps(memory), (Steps{{0, 111}, {10, 160}, {20, 151}, {30, 0}}));
  EXPECT_EQ(memory.peak(), Bytes(160));
  EXPECT_EQ(memory.peak_time(), at(10));
  EXPECT_FALSE(memory.excess());
  EXPECT_EQ(memory.timeline()[0].npu, NpuId(3));
}

// The layer begins 7 ps after the iteration. Its parameters and its batch are in the memory from the beginning.
TEST(LocalMemory, WhatNoNodeMakesIsThereBeforeTheFirstOne) {
  const Layer layer;
  EXPECT_EQ(layer.structure.lifetimes.initial, Bytes(101));
  LocalMemory memory = layer.structure.memory(NpuId(0), Bytes(0));
  memory.begin_iteration(at(0), true);
  layer.run(memory, 7);
  memory.end(at(40));
  EXPECT_EQ(steps(memory), (Steps{{0, 101}, {7, 111}, {17, 160}, {27, 151}, {37, 101}, {40, 0}}));
}

// Three iterations, of which two are recorded. Each begins with the initial tensors only.
TEST(LocalMemory, AnIterationBeginsAfresh) {
  const Layer layer;
  LocalMemory memory = layer.structure.memory(NpuId(0), Bytes(0));
  for (const std::int64_t begin : {0, 30, 60}) {
    memory.begin_iteration(at(begin), begin < 60);
    layer.run(memory, begin);
  }
  memory.end(at(90));
  EXPECT_EQ(steps(memory), (Steps{{0, 111}, {10, 160}, {20, 151}, {30, 111}, {40, 160}, {50, 151}, {60, 0}}));
  EXPECT_EQ(memory.peak_time(), at(10));
}

// A node begins when another one ends. For no time both have their tensors, which exceeds the 8 bytes of the memory.
TEST(LocalMemory, WhatLastsNoTimeDoesNotCount) {
  Listed listed;
  const NodeId first = listed.node(), second = listed.node();
  listed.makes(first, "a", 5);
  listed.needs(first, "b", 3);
  listed.makes(second, "c", 1);
  listed.needs(second, "a", 5);
  const Structure structure = listed.structure();
  LocalMemory memory = structure.memory(NpuId(0), Bytes(8));
  memory.begin_iteration(at(0), true);
  memory.start(first, at(0));
  memory.start(second, at(4));  // 9 bytes, but for no time
  memory.complete(first, at(4));
  memory.complete(second, at(6));
  memory.end(at(6));
  EXPECT_EQ(steps(memory), (Steps{{0, 8}, {4, 6}, {6, 0}}));
  EXPECT_FALSE(memory.excess());
}

// The memory has 23 bytes. The first node exceeds it by 1 byte, the second one by more. The first excess is kept.
TEST(LocalMemory, TheFirstExcessIsKeptWithItsLargestTensors) {
  Listed listed;
  const NodeId first = listed.node(), second = listed.node({first});
  for (const auto& [name, size] : {std::pair("a", 2), {"b", 7}, {"c", 4}, {"d", 7}, {"e", 1}, {"f", 3}})
    listed.list(first, name, static_cast<std::uint64_t>(size), true, false);
  listed.makes(second, "g", 5);
  listed.makes(second, "h", 30);
  const Structure structure = listed.structure();
  LocalMemory memory = structure.memory(NpuId(9), Bytes(23));
  memory.begin_iteration(at(0), false);
  memory.start(first, at(0));
  EXPECT_FALSE(memory.excess());
  memory.complete(first, at(5));
  EXPECT_TRUE(memory.timeline().empty());
  ASSERT_TRUE(memory.excess());
  EXPECT_EQ(memory.excess()->since, at(0));
  EXPECT_EQ(memory.excess()->npu, NpuId(9));
  EXPECT_EQ(memory.excess()->usage, Bytes(24));
  EXPECT_EQ(memory.excess()->tensors.largest, (std::vector<std::uint32_t>{1, 3, 2, 5, 0}));
  EXPECT_EQ(memory.excess()->tensors.count, 6U);
  memory.start(second, at(5));
  memory.complete(second, at(6));
  memory.end(at(6));
  EXPECT_EQ(memory.excess()->usage, Bytes(24));
  EXPECT_EQ(memory.peak(), Bytes(35));
}

// The layer needs 160 bytes. A memory of 160 bytes is enough, one of 159 bytes is not.
TEST(LocalMemory, JustWhatThereIsRoomForIsNoExcess) {
  const Layer layer;
  for (const std::uint64_t size : {160, 159}) {
    LocalMemory memory = layer.structure.memory(NpuId(0), Bytes(size));
    memory.begin_iteration(at(0), false);
    layer.run(memory, 0);
    memory.end(at(30));
    EXPECT_EQ(memory.excess() != nullptr, size == 159);
    if (size == 160) continue;
    EXPECT_EQ(memory.excess()->since, at(10));
  }
}

// Many nodes list a tensor, also more than a byte can count.
TEST(LocalMemory, ATensorMayBeListedManyTimes) {
  for (const std::uint32_t times : {254U, 255U, 256U, 1000U}) {
    Listed listed;
    for (std::uint32_t i = 0; i < times; ++i) listed.needs(listed.node(), "w", 8);
    listed.makes(listed.node(), "last", 1);
    const Structure structure = listed.structure();
    LocalMemory memory = structure.memory(NpuId(0), Bytes(0));
    memory.begin_iteration(at(0), true);
    for (std::uint32_t i = 0; i < times; ++i) {
      memory.start(NodeId(i), at(i));
      memory.complete(NodeId(i), at(i + 1));
    }
    memory.end(at(times + 5));
    EXPECT_EQ(steps(memory), (Steps{{0, 8}, {times, 0}})) << times;
  }
}

/// What happens at one moment, in any order in which a node starts before it completes.
struct Occurrence {
  std::int64_t time;
  std::uint32_t draw;
  NodeId node;
  bool completes;
};

/// Nodes without dependencies: their order is that of their ids.
TEST(LocalMemory, AsAPlainModelWhateverTheOrderWithinAMoment) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const auto draw = [&](std::uint32_t below) { return static_cast<std::uint32_t>(random() % below); };
    const std::uint32_t num_nodes = 1 + draw(30), num_tensors = 1 + draw(20);
    Listed listed;
    std::vector<std::int64_t> start, finish;
    std::map<std::uint32_t, std::map<std::uint32_t, std::pair<bool, bool>>> uses;  // of tensors, by node: needs, makes
    for (std::uint32_t i = 0; i < num_nodes; ++i) {
      const NodeId node = listed.node();
      start.push_back(draw(12));
      finish.push_back(start.back() + draw(5));
      for (std::uint32_t k = draw(5); k > 0; --k) {
        auto& [needs, makes] = uses[draw(num_tensors)][i];
        (draw(2) == 0 ? needs : makes) = true;
      }
      for (const auto& [tensor, nodes] : uses)
        if (const auto use = nodes.find(i); use != nodes.end())
          listed.list(node, std::to_string(tensor), 1 + tensor * tensor, use->second.first, use->second.second);
    }
    const std::int64_t end = *std::ranges::max_element(finish) + draw(3);
    std::map<std::int64_t, std::int64_t> change;
    for (const auto& [tensor, nodes] : uses) {
      std::int64_t from = std::numeric_limits<std::int64_t>::max(), to = 0;
      bool is_made = false;
      for (const auto& [node, use] : nodes) {
        from = std::min(from, start[node]);
        to = std::max(to, finish[node]);
        is_made = is_made || (use.second && !use.first);
      }
      if (nodes.rbegin()->second.second) to = end;
      change[is_made ? from : 0] += 1 + tensor * tensor;
      change[to] -= 1 + tensor * tensor;
    }
    Steps expected;
    std::uint64_t usage = 0, peak = 0;
    std::int64_t peak_time = 0;
    change.try_emplace(0, 0);
    for (const auto& [time, by] : change) {
      usage += static_cast<std::uint64_t>(by);
      if (time < end && (expected.empty() || expected.back().second != usage)) expected.emplace_back(time, usage);
      if (time < end && usage > peak) std::tie(peak, peak_time) = std::tie(usage, time);
    }
    if (expected.empty() || expected.back().second != 0) expected.emplace_back(end, 0);

    std::vector<Occurrence> occurrences;
    for (std::uint32_t i = 0; i < num_nodes; ++i) {
      const std::uint32_t first = draw(1000);
      occurrences.push_back({start[i], first, NodeId(i), false});
      occurrences.push_back({finish[i], start[i] == finish[i] ? first + draw(1000) : draw(1000), NodeId(i), true});
    }
    std::ranges::sort(occurrences, {}, [](const Occurrence& o) { return std::tuple(o.time, o.draw, o.completes); });
    const Structure structure = listed.structure();
    LocalMemory memory = structure.memory(NpuId(0), Bytes(0));
    memory.begin_iteration(at(0), true);
    for (const auto& o : occurrences)
      o.completes ? memory.complete(o.node, at(o.time)) : memory.start(o.node, at(o.time));
    memory.end(at(end));
    if (structure.graph.tensors.sizes.empty()) continue;
    EXPECT_EQ(steps(memory), expected) << "seed " << seed;
    EXPECT_EQ(memory.peak(), Bytes(peak)) << "seed " << seed;
    EXPECT_EQ(memory.peak_time(), at(peak_time)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace orrery::memory
