#include "cells.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "dimension_of.hpp"
#include "graph_builder.hpp"

namespace orrery::model {
namespace {

using test_support::GraphBuilder;
using topology::dimension_of;
using topology::Shape;
using Cells = std::vector<std::uint32_t>;

/// Eight NPUs that all do the same: collectives of a group of their own, collectives of the world, and sends to a peer.
class CellsOfLinks : public testing::Test {
 protected:
  struct Work {
    int in_group = 0, in_world = 0, to_peer = 0;  ///< nodes
  };

  /// `groups`: those of group slot 0. `peers`: [NPUs] of peer slot 0. `rank_of`: [NPUs]; all are on rank 0 if it is
  /// empty.
  Cells find(const std::vector<topology::Dimension>& dimensions, const std::vector<std::vector<std::uint32_t>>& groups,
             const Cells& peers, const Work& work, std::uint32_t cell_size, const std::vector<int>& rank_of = {}) {
    const network::DelayModel delays{topology::Topology(dimensions)};
    collective::Engine engine(delays, {});
    npu::Options options;
    options.network.model = network::ModelName("congestion-aware");
    const auto network = network::make_network(delays.topology(), options.network);
    const memory::RemoteMemory memory({}, num_npus);
    const npu::Program program = npu::make_program(graph_of(work), options, {1});
    const trace::Group world{};
    std::vector<trace::Group> named;
    for (const auto& group : groups) {
      trace::Group& made = named.emplace_back(trace::Group{"group", {}});
      for (const std::uint32_t member : group) made.members.emplace_back(member);
    }
    std::vector<communicator::CommunicatorSpec> communicators{{GroupId(0), &world, trace::all_dimensions, 0, Rank(0)}};
    for (std::uint32_t i = 0; i < named.size(); ++i)
      communicators.push_back({GroupId(i + 1), &named[i], trace::all_dimensions, 0, Rank(0)});
    std::vector<Rank> hosts;
    for (std::uint32_t npu = 0; npu < num_npus; ++npu) hosts.emplace_back(rank_of.empty() ? 0 : rank_of[npu]);
    std::vector<trace::NpuTrace> traces(num_npus);
    std::vector<npu::NpuSpec> npus;
    for (std::uint32_t npu = 0; npu < num_npus; ++npu) {
      traces[npu].graph = program.graph;
      traces[npu].peers = {NpuId(peers[npu])};
      npu::NpuSpec spec{NpuId(npu), &traces[npu], &program, {}};
      for (const auto& use : program.uses) spec.groups.push_back(use.group_slot == 1 ? GroupId(0) : own(groups, npu));
      if (hosts[npu] == Rank(0)) npus.push_back(spec);
    }
    npu::RunContext run{options, delays, memory, engine, communicators, npus, {Rank(0), hosts, {}}, {}};
    run.cell_size = cell_size;
    run.links = network.get();
    const Cells cells = cells_of_links(run);
    run.cell_of = cells;
    check_links(run);
    return cells;
  }

  static constexpr std::uint32_t num_npus = 8;
  const std::vector<topology::Dimension> fours{dimension_of(Shape("FullyConnected"), 4),
                                               dimension_of(Shape("Switch"), 2)};
  const std::vector<std::vector<std::uint32_t>> in_fours{{0, 1, 2, 3}, {4, 5, 6, 7}};
  const Cells next{1, 2, 3, 0, 5, 6, 7, 4}, across{4, 5, 6, 7, 0, 1, 2, 3};  // peers

 private:
  static std::shared_ptr<const trace::Graph> graph_of(const Work& work) {
    GraphBuilder graph;
    for (int i = 0; i < work.in_group; ++i) graph.collective(0, trace::all_dimensions, {});
    for (int i = 0; i < work.in_world; ++i) graph.collective(1, trace::all_dimensions, {});
    for (int i = 0; i < work.to_peer; ++i) graph.message(trace::NodeKind::send, 0, {});
    return graph.build();
  }
  static GroupId own(const std::vector<std::vector<std::uint32_t>>& groups, std::uint32_t npu) {
    const auto found =
        std::ranges::find_if(groups, [&](const auto& group) { return std::ranges::count(group, npu) > 0; });
    return GroupId(static_cast<std::uint32_t>(found - groups.begin()) + 1);
  }
  /// Each link must be in the cell of the NPU that it belongs to.
  static void check_links(const npu::RunContext& run) {
    const Cells of_lps = cells_of_lps(run);
    EXPECT_EQ(of_lps.empty(), run.cell_of.empty());
    if (run.cell_of.empty()) return;
    ASSERT_EQ(of_lps.size(), run.first_link().value() + run.links->num_processes());
    EXPECT_TRUE(std::equal(run.cell_of.begin(), run.cell_of.end(), of_lps.begin()));
    for (std::uint32_t link = 0; link < run.links->num_processes(); ++link)
      EXPECT_EQ(of_lps[run.first_link().value() + link], run.cell_of[run.links->owner_of(link)->index()]);
  }
};

// Two groups of four are two cells of four. With room for eight their sends across join them, and one cell is none.
TEST_F(CellsOfLinks, AreGroupsAsLongAsTheyHaveRoom) {
  const Work work{.in_group = 3, .in_world = 0, .to_peer = 1};
  EXPECT_EQ(find(fours, in_fours, across, work, 4), (Cells{0, 0, 0, 0, 1, 1, 1, 1}));
  EXPECT_EQ(find(fours, in_fours, across, work, 7), (Cells{0, 0, 0, 0, 1, 1, 1, 1}));
  EXPECT_TRUE(find(fours, in_fours, across, work, 8).empty());
  EXPECT_TRUE(find(fours, in_fours, across, work, 0).empty()) << "the default has room for eight";
}

// Groups of four do not fit cells of three, and cells of one NPU keep nothing.
TEST_F(CellsOfLinks, AreNotMadeIfNothingFits) {
  const Work work{.in_group = 3, .in_world = 0, .to_peer = 0};
  EXPECT_TRUE(find(fours, in_fours, across, work, 3).empty());
  EXPECT_TRUE(find(fours, in_fours, across, work, 1).empty());
}

// Pairs of peers come before groups if they have more nodes: pairs 0-4, 1-5 and so on, of which no group is a part.
TEST_F(CellsOfLinks, AreMadeOfTheClosestFirst) {
  EXPECT_EQ(find(fours, in_fours, across, {.in_group = 1, .in_world = 0, .to_peer = 5}, 4),
            (Cells{0, 1, 2, 3, 0, 1, 2, 3}));
}

// As many collectives of the world as of the groups: half of the nodes stay, which is not most of them.
TEST_F(CellsOfLinks, AreNotMadeIfMostWorkLeavesThem) {
  EXPECT_TRUE(find(fours, in_fours, next, {.in_group = 2, .in_world = 2, .to_peer = 0}, 4).empty());
  EXPECT_FALSE(find(fours, in_fours, next, {.in_group = 3, .in_world = 2, .to_peer = 0}, 4).empty());
}

// On a ring of eight, NPUs 0, 2, 4 and 6 reach each other by links of the others.
TEST_F(CellsOfLinks, AreNotMadeIfMessagesPassLinksOfOthers) {
  const std::vector<topology::Dimension> ring{dimension_of(Shape("Ring"), 8)};
  const std::vector<std::vector<std::uint32_t>> every_other{{0, 2, 4, 6}, {1, 3, 5, 7}};
  const Work work{.in_group = 3, .in_world = 0, .to_peer = 0};
  EXPECT_TRUE(find(ring, every_other, next, work, 4).empty());
  const std::vector<topology::Dimension> all_joined{dimension_of(Shape("FullyConnected"), 8)};
  EXPECT_EQ(find(all_joined, every_other, next, work, 4), (Cells{0, 1, 0, 1, 0, 1, 0, 1}));
}

// NPUs 4 to 7 are on another rank, and so is NPU 3 in the second case: the group of NPUs 0 to 3 is not of one rank
// then.
TEST_F(CellsOfLinks, AreOfOneRank) {
  const Work work{.in_group = 3, .in_world = 0, .to_peer = 0};
  const std::vector<std::vector<std::uint32_t>> pairs{{0, 1}, {2, 3}, {4, 5}, {6, 7}};
  EXPECT_EQ(find(fours, pairs, next, work, 2, {0, 0, 0, 0, 1, 1, 1, 1}), (Cells{0, 0, 1, 1, 0, 0, 0, 0}));
  EXPECT_TRUE(find(fours, in_fours, next, work, 4, {0, 0, 0, 1, 1, 1, 1, 1}).empty());
}

}  // namespace
}  // namespace orrery::model
