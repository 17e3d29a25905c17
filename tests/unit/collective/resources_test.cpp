// What a library meets on the described network: links, NICs, uplinks, and who shares them.
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "system.hpp"

namespace orrery::collective {
namespace {

topology::Dimension described(topology::Shape shape, std::uint32_t size, double gigabytes,
                              double oversubscription = 1) {
  topology::Dimension dimension{shape, size, Bandwidth::from_bytes_per_ns(gigabytes), 468};
  dimension.oversubscription = oversubscription;
  return dimension;
}

/// Nodes of 8 H100, 4 of them under a leaf, and 2 leaves.
std::vector<topology::Dimension> pod(double link = 450, double nic = 50, double spine = 50, double leaf_over = 1,
                                     double spine_over = 1) {
  return {described(topology::Shape("Switch"), 8, link), described(topology::Shape("Switch"), 4, nic, leaf_over),
          described(topology::Shape("Switch"), 2, spine, spine_over)};
}

Options with_library(std::string_view name = "nccl-h100") {
  Options options;
  options.library.library = LibraryName(name);
  return options;
}

LibraryTime time_of(System& system, Kind kind, std::uint64_t bytes, const std::vector<NpuId>& members = {}) {
  const auto layout = system.engine.layout(members, all_dimensions);
  const auto figures = system.engine.figures(*layout, kind, Bytes(bytes));
  EXPECT_TRUE(figures.phases.at(0).library);
  return figures.phases.at(0).library->time;
}

constexpr std::uint64_t one_gib = std::uint64_t{1} << 30U;

std::vector<NpuId> first(std::uint32_t count, std::uint32_t step = 1) {
  std::vector<NpuId> members;
  for (std::uint32_t i = 0; i < count; ++i) members.emplace_back(i * step);
  return members;
}

const Resource& resource(const LibraryTime& time, ResourceKind kind, std::uint32_t dimension = 0) {
  for (const Resource& of : time.resources)
    if (of.kind == kind && of.dimension == dimension) return of;
  ADD_FAILURE() << "no such resource";
  return time.bound;
}

// An all-gather of 64 MiB of each of 64 members, 4 GiB in all: of 63/64 of it 7/8 stay in the nodes, and each of the 8
// NICs of a node has 1/8.
TEST(Resources, AreThoseOfTheDimensions) {
  System system(pod(), with_library());
  const LibraryTime time = time_of(system, Kind::all_gather, one_gib / 16);
  const double sent = 63.0 / 64 * 4 * one_gib;
  EXPECT_DOUBLE_EQ(resource(time, ResourceKind::links).bytes, sent * 7 / 8);
  EXPECT_DOUBLE_EQ(resource(time, ResourceKind::links).capacity, 450e9);
  EXPECT_DOUBLE_EQ(resource(time, ResourceKind::nic).bytes, sent / 8);
  EXPECT_DOUBLE_EQ(resource(time, ResourceKind::nic).capacity, 50e9);
  EXPECT_EQ(name(time.bound), "NIC");
}

// The uplinks of a unit of 32 are pooled: oversubscribed 4 times they have for each of the 8 NICs of a node what the
// NIC has, 16 times a quarter of it.
TEST(Resources, UplinksArePooledForRings) {
  System same(pod(450, 50, 50, 1, 4), with_library()), less(pod(450, 50, 50, 1, 16), with_library());
  EXPECT_DOUBLE_EQ(resource(time_of(same, Kind::all_gather, one_gib), ResourceKind::dimension, 2).capacity, 50e9);
  EXPECT_DOUBLE_EQ(resource(time_of(less, Kind::all_gather, one_gib), ResourceKind::dimension, 2).capacity, 12.5e9);
  // Every member of an all-to-all sends half of its data to the other unit, over its own uplink.
  const Resource up = resource(time_of(less, Kind::all_to_all, one_gib), ResourceKind::dimension, 2);
  EXPECT_DOUBLE_EQ(up.capacity, 50e9 / 16);
  EXPECT_DOUBLE_EQ(up.bytes, one_gib / 2.0);
}

// A leaf that is oversubscribed twice halves what leaves a node. A group within a node has nothing of it.
TEST(Resources, LeavesBindWhatLeavesNodes) {
  System system(pod(450, 50, 50, 2), with_library());
  EXPECT_DOUBLE_EQ(resource(time_of(system, Kind::all_gather, one_gib), ResourceKind::dimension, 1).capacity, 25e9);
  const LibraryTime inside = time_of(system, Kind::all_reduce, one_gib, first(8));
  EXPECT_EQ(inside.algorithm, "NVLS");
  EXPECT_EQ(inside.resources.size(), 2U);  // links and channels
}

// FullyConnected of 8 with links of 64 GB/s: 7 of them, among 4 members 3. One that has failed is missing.
TEST(Resources, MeshesHaveLinksToMembers) {
  const std::vector mesh{described(topology::Shape("FullyConnected"), 8, 64)};
  System whole(mesh, with_library("rccl-mi300x"));
  EXPECT_DOUBLE_EQ(resource(time_of(whole, Kind::all_reduce, one_gib), ResourceKind::links).capacity, 448e9);
  EXPECT_DOUBLE_EQ(resource(time_of(whole, Kind::all_reduce, one_gib, first(4)), ResourceKind::links).capacity, 192e9);
  topology::Links links(mesh);
  links.add({0, {NpuId(0), NpuId(1)}, {}, true});
  System failed(mesh, with_library("rccl-mi300x"), {}, links);
  EXPECT_DOUBLE_EQ(resource(time_of(failed, Kind::all_reduce, one_gib), ResourceKind::links).capacity, 384e9);
}

// A ring of 4 with links of 100 GB/s each way: both ways, or one as `directions` says.
TEST(Resources, RingsHaveTwoDirections) {
  for (const auto& [directions, capacity] : {std::pair{Directions::both, 200e9}, {Directions::one, 100e9}}) {
    Options options = with_library();
    options.chunks.directions = directions;
    System system({described(topology::Shape("Ring"), 4, 100)}, options);
    EXPECT_DOUBLE_EQ(resource(time_of(system, Kind::all_gather, one_gib), ResourceKind::links).capacity, capacity);
  }
}

// The slowest port of the members counts: a tenth at NPU 3, whose node others do not have.
TEST(Resources, TheSlowestPortCounts) {
  topology::Links links(pod());
  links.add({0, {NpuId(3)}, {0.1, 1}, false});
  links.add({1, {NpuId(9)}, {0.5, 1}, false});
  System system(pod(), with_library(), {}, links);
  EXPECT_DOUBLE_EQ(resource(time_of(system, Kind::all_reduce, one_gib, first(8)), ResourceKind::links).capacity, 45e9);
  EXPECT_DOUBLE_EQ(resource(time_of(system, Kind::all_reduce, one_gib), ResourceKind::nic).capacity, 25e9);
  std::vector<NpuId> others;
  for (std::uint32_t i = 16; i < 24; ++i) others.emplace_back(i);
  EXPECT_DOUBLE_EQ(resource(time_of(system, Kind::all_reduce, one_gib, others), ResourceKind::links).capacity, 450e9);
}

// Four NICs for eight NPUs halve what an NPU sends to other nodes; a rail of one NPU of each node has no links in
// nodes.
TEST(Resources, NicsMayBeFewer) {
  Options options = with_library();
  options.library.nics_per_node = 4;
  System system(pod(), options);
  EXPECT_DOUBLE_EQ(resource(time_of(system, Kind::all_gather, one_gib), ResourceKind::nic).capacity, 25e9);
  const LibraryTime rail = time_of(system, Kind::all_reduce, one_gib, first(8, 8));
  EXPECT_DOUBLE_EQ(resource(rail, ResourceKind::nic).bytes, 2 * 7.0 / 8 * one_gib);
  for (const Resource& of : rail.resources) EXPECT_NE(of.kind, ResourceKind::links);
}

// Two dimensions may be one node: a domain of 32, whose slower dimension binds.
TEST(Resources, NodesMayHaveSeveralDimensions) {
  Options options = with_library("nccl-b200");
  options.library.node_dimensions = 2;
  System system(pod(900, 400), options);
  const LibraryTime time = time_of(system, Kind::all_gather, one_gib, first(32));
  EXPECT_DOUBLE_EQ(resource(time, ResourceKind::links).capacity, 400e9);
  EXPECT_EQ(time.resources.size(), 2U);
  options.library.node_dimensions = 0;
  System single({described(topology::Shape("Switch"), 2, 25)}, options);
  EXPECT_EQ(name(time_of(single, Kind::all_reduce, one_gib).bound), "NIC");
}

// Two collectives of an NPU at a time have half of everything each.
TEST(Resources, CollectivesAtATimeShare) {
  System system(pod(), with_library());
  system.engine.share_among({{2, 2, 2}});
  const LibraryTime time = time_of(system, Kind::all_gather, one_gib);
  EXPECT_DOUBLE_EQ(resource(time, ResourceKind::links).capacity, 225e9);
  EXPECT_DOUBLE_EQ(resource(time, ResourceKind::nic).capacity, 25e9);
}

// Two ports of an NPU carry what leads through them: of an all-to-all among 64, 24 members are behind the first one and
// 32 behind the second. A port with a given rate is no faster, and dimensions without a name have one port.
TEST(Resources, PortsMayBeApart) {
  std::vector<topology::Dimension> dimensions = pod(450, 50, 20);
  dimensions[1].port = "near";
  dimensions[2].port = "far";
  const topology::Topology apart(dimensions, {}, {{"near", Bandwidth::from_bytes_per_ns(40)}});
  System system(network::DelayModel(apart), with_library());
  const LibraryTime time = time_of(system, Kind::all_to_all, one_gib);
  std::vector<Resource> ports;
  for (const Resource& of : time.resources)
    if (of.kind == ResourceKind::nic) ports.push_back(of);
  ASSERT_EQ(ports.size(), 2U);
  EXPECT_DOUBLE_EQ(ports[0].bytes, one_gib * 24.0 / 64);
  EXPECT_DOUBLE_EQ(ports[0].capacity, 40e9);
  EXPECT_DOUBLE_EQ(ports[1].bytes, one_gib * 32.0 / 64);
  EXPECT_DOUBLE_EQ(ports[1].capacity, 20e9);
  EXPECT_DOUBLE_EQ(resource(time, ResourceKind::dimension, 1).bytes, one_gib * 24.0 / 64);
  System shared(pod(450, 50, 20), with_library());
  const LibraryTime of_one = time_of(shared, Kind::all_to_all, one_gib);
  EXPECT_DOUBLE_EQ(resource(of_one, ResourceKind::nic).bytes, one_gib * 56.0 / 64);
  EXPECT_DOUBLE_EQ(resource(of_one, ResourceKind::dimension, 1).bytes, one_gib * 56.0 / 64);
}

// Ten percent more bandwidth saves a tenth of what the NIC binds, and nothing elsewhere; where the spine is as narrow
// as the leaf, neither alone saves anything.
TEST(Resources, MoreBandwidthSavesWhereItBinds) {
  System system(pod(900, 50, 100), with_library()), narrow(pod(900), with_library());
  const auto layout = system.engine.layout({}, all_dimensions);
  const auto savings = effect_of(system.engine, *layout, Kind::all_gather, Bytes(one_gib)).savings;
  ASSERT_EQ(savings.size(), 3U);
  EXPECT_DOUBLE_EQ(savings[0], 0);
  EXPECT_NEAR(savings[1], 1 - 1 / 1.1, 0.005);
  EXPECT_DOUBLE_EQ(savings[2], 0);
  const auto of_narrow = narrow.engine.layout({}, all_dimensions);
  EXPECT_NEAR(effect_of(narrow.engine, *of_narrow, Kind::all_gather, Bytes(one_gib)).savings[1], 0, 1e-3);
  // A cut within dimension 1 consists of its links, which have ten percent more too.
  Options with_cut = with_library();
  constexpr double unlimited = std::numeric_limits<double>::infinity();
  with_cut.library.cuts = {{unlimited, unlimited}, {10e9, unlimited}, {unlimited, unlimited}};
  System cut(pod(900, 50, 100), with_cut);
  const auto of_cut = cut.engine.layout({}, all_dimensions);
  EXPECT_NEAR(effect_of(cut.engine, *of_cut, Kind::all_to_all, Bytes(one_gib)).savings[1], 1 - 1 / 1.1, 0.005);
  System of_node({described(topology::Shape("Switch"), 8, 450)}, with_library());
  const auto inside = of_node.engine.layout({}, all_dimensions);
  EXPECT_NEAR(effect_of(of_node.engine, *inside, Kind::all_reduce, Bytes(one_gib)).savings[0], 1 - 1 / 1.1, 0.005);
}

// Rings run on the 24 channels of H100, and what the switch reduces on 16.
TEST(Resources, CollectivesHaveChannels) {
  System system(pod(), with_library());
  const auto inside = system.engine.layout(first(8), all_dimensions);
  EXPECT_EQ(effect_of(system.engine, *inside, Kind::all_gather, Bytes(one_gib)).num_channels, 24U);
  EXPECT_EQ(effect_of(system.engine, *inside, Kind::all_reduce, Bytes(one_gib)).num_channels, 16U);
}

// Members that fill no grid: 5 of one node and 3 of another count as two nodes of 4.
TEST(Resources, GroupsMayFillNoGrid) {
  System system(pod(), with_library());
  const std::vector<NpuId> members{NpuId(0), NpuId(1), NpuId(2), NpuId(3), NpuId(4), NpuId(8), NpuId(9), NpuId(10)};
  const LibraryTime time = time_of(system, Kind::all_gather, one_gib, members);
  EXPECT_DOUBLE_EQ(resource(time, ResourceKind::nic).bytes, 7.0 / 8 * 8 * one_gib / 4);
}

// What members send is what passes the resources: 7/8 of a ring in the nodes, and 1/8 over NICs, of which a quarter
// crosses to the other unit. No dimension carries more than it has in the time of the collective.
TEST(Resources, TrafficRespectsTheLinks) {
  System system(pod(45, 5, 5), with_library());
  const auto layout = system.engine.layout({}, all_dimensions);
  for (const Kind kind :
       {Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter, Kind::all_to_all, Kind::broadcast}) {
    const CollectiveTraffic& sent = system.engine.traffic(*layout, kind, Bytes(one_gib));
    const double seconds = time_of(system, kind, one_gib).seconds;
    EXPECT_LE(static_cast<double>(sent[0].count()), 45e9 * seconds) << name(kind);
    EXPECT_LE(static_cast<double>(sent[1].count() + sent[2].count()), 5e9 * seconds) << name(kind);
    EXPECT_GT(sent[2].count(), 0U);
  }
  const CollectiveTraffic& ring_sent = system.engine.traffic(*layout, Kind::all_gather, Bytes(one_gib));
  EXPECT_NEAR(static_cast<double>(ring_sent[2].count()) / static_cast<double>(ring_sent[1].count()), 1.0 / 3, 1e-6);
}

}  // namespace
}  // namespace orrery::collective
