// Libraries of collectives: their times by hand, and what nccl-tests print.
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "orrery/base/error.hpp"
#include "orrery/collective/library.hpp"
#include "orrery/collective/options.hpp"

namespace orrery::collective {
namespace {

LibraryOptions options(std::string_view name, std::string_view fabric = "infiniband") {
  LibraryOptions result;
  result.library = LibraryName(name);
  result.fabric = FabricName(fabric);
  return result;
}

/// Nodes of 8 with a link of so many bytes per second and a NIC for each NPU, on the links that H100 was measured with.
LibraryGroup nodes(std::uint32_t count, double link = 450e9, double nic = 50e9) {
  LibraryGroup group{.ranks = 8 * count, .nodes = count, .nic = nic, .link = link, .hop_latency = 468e-9};
  group.outer_latency = 1e-6;
  if (count > 1) group.outer.push_back({1, nic, nic, 8, 8.0 * count});
  group.npus_of_node = 8;
  return group;
}

double ramp(double bytes, double delta, double small, double filling, double large) {
  return delta * bytes / (bytes + small) + filling * bytes / (bytes + large);
}

// In a node of H100 the switch carries out an all-reduce of 1 GiB at 0.604 of 450 GB/s. Its latency is that of a tree:
// 6.8 us and 14 steps of 0.6 us. Half the link takes twice the time for the bytes, and the ramp is paid at half the
// size.
TEST(Library, ReducesInTheSwitch) {
  const double bytes = 1 << 30;
  const auto time = library_time(options("nccl-h100"), Kind::all_reduce, nodes(1), bytes);
  EXPECT_EQ(time.algorithm, "NVLS");
  EXPECT_NEAR(time.latency, 15.0e-6, 1e-12);
  EXPECT_NEAR(time.seconds, bytes / (0.604 * 450e9) + 15.0e-6 + ramp(bytes, 25e-6, 12.6e3, 60e-6, 24e6), 1e-12);
  const auto slow = library_time(options("nccl-h100"), Kind::all_reduce, nodes(1, 225e9), bytes);
  EXPECT_NEAR(slow.seconds, bytes / (0.604 * 225e9) + 15.0e-6 + ramp(bytes, 25e-6, 6.3e3, 60e-6, 12e6), 1e-12);
  EXPECT_EQ(name(slow.bound), "links in the node");
}

// Shares and figures of a fabric stand in the place of those of the library: each changes what its algorithm takes.
TEST(Library, TakesGivenShares) {
  const double bytes = 64.0 * (1 << 30);
  const auto transfer = [&](const LibraryOptions& of, Kind kind, const LibraryGroup& group) {
    return library_time(of, kind, group, bytes).transfer;
  };
  LibraryOptions given = options("nccl-h100");
  given.shares = {.ring = 0.5, .nvls = 0.4, .nvls_tree = 0.1, .tree = 0.2, .all_to_all = 0.3};
  given.nic_shares = {.ring = 0.25, .tree = 0.35, .all_to_all = 0.45};
  EXPECT_DOUBLE_EQ(transfer(given, Kind::all_gather, nodes(1)), 7.0 / 8 * bytes / (0.5 * 450e9));
  EXPECT_DOUBLE_EQ(transfer(given, Kind::all_reduce, nodes(1)), bytes / (0.4 * 450e9));
  EXPECT_DOUBLE_EQ(transfer(given, Kind::all_to_all, nodes(1)), 7.0 / 8 * bytes / (0.3 * 450e9));
  EXPECT_DOUBLE_EQ(transfer(given, Kind::all_gather, nodes(4)), 31.0 / 32 * bytes / 8 / (0.25 * 50e9));
  EXPECT_DOUBLE_EQ(transfer(given, Kind::all_to_all, nodes(4)), 0.75 * bytes / (0.45 * 50e9));
  // Over two nodes a ring is faster than a tree that reaches little of the links in the nodes, and slower than others.
  EXPECT_DOUBLE_EQ(transfer(given, Kind::all_reduce, nodes(2)), 2 * 15.0 / 16 * bytes / 8 / (0.25 * 50e9));
  given.shares.nvls_tree = 0.9;
  EXPECT_DOUBLE_EQ(transfer(given, Kind::all_reduce, nodes(2)), bytes / 8 / (0.35 * 50e9));
  given.fabric_figures = {Time::from_ns(10'000), Time::from_ns(1'000'000), Bytes(1), {}};
  const auto own = library_time(options("nccl-h100"), Kind::all_gather, nodes(4), bytes);
  const auto other = library_time(given, Kind::all_gather, nodes(4), bytes);
  EXPECT_NEAR(other.ramp - own.ramp, 2 * (1e-3 - 100e-6 * bytes / (bytes + 8e6)), 1e-9);
  EXPECT_NEAR(other.latency - own.latency, 2 * 10e-6, 1e-12);
  given.fabric_figures.nic = Bandwidth::from_bytes_per_ns(200);
  EXPECT_GT(library_range(given, nodes(4), bytes, other).error,
            library_range(options("nccl-h100"), nodes(4), bytes, own).error);
}

// An A100 has no such switch: a ring sends 2 * 7/8 of the buffer at 0.783 of 300 GB/s. So does an all-gather with 7/8
// of it, whose 7 steps beside 8.4 us are a share of the 14 of an all-reduce.
TEST(Library, TakesARing) {
  LibraryGroup node = nodes(1, 300e9);
  node.hop_latency = 500e-9;
  const double bytes = 1e9, filled = ramp(bytes, 21e-6, 270e3, 220e-6, 20e6);
  const auto reduced = library_time(options("nccl-a100"), Kind::all_reduce, node, bytes);
  EXPECT_EQ(reduced.algorithm, "ring");
  EXPECT_NEAR(reduced.seconds, 2 * 7.0 / 8 * bytes / (0.783 * 300e9) + 15.0e-6 + filled, 1e-12);
  EXPECT_NEAR(library_time(options("nccl-a100"), Kind::all_gather, node, bytes).seconds,
              7.0 / 8 * bytes / (0.783 * 300e9) + (6.6 + 7 * 0.6) * 1e-6 + (8.4 + 7 * 3.4) / (8.4 + 14 * 3.4) * filled,
              1e-12);
}

// Over eight nodes a ring passes 0.955 of each NIC. Links within the nodes that are ten times slower bind instead: of 8
// hops of a ring 7 stay in the node.
TEST(Library, TheSlowestResourceBinds) {
  const double bytes = 1e9, latency = (6.8 + 2 * (7 * 0.6 + 3 * 5)) * 1e-6, sent = 2 * 63.0 / 64 * bytes;
  const auto ring = library_time(options("nccl-h100"), Kind::all_reduce, nodes(8), bytes);
  EXPECT_EQ(ring.algorithm, "ring");
  EXPECT_EQ(name(ring.bound), "NIC");
  const auto ramp_of = [&](double scale) {
    return 25e-6 * bytes / (bytes + 12.6e3) + 3 * 100e-6 * bytes / (bytes + 8e6 * scale);
  };
  EXPECT_NEAR(ring.seconds, sent / 8 / (0.955 * 50e9) + latency + ramp_of(1), 1e-12);
  EXPECT_NEAR(library_time(options("nccl-h100"), Kind::all_reduce, nodes(8, 450e9, 25e9), bytes).seconds,
              sent / 8 / (0.955 * 25e9) + latency + ramp_of(0.5), 1e-12);
  const auto slow = library_time(options("nccl-h100"), Kind::all_gather, nodes(8, 45e9), bytes);
  EXPECT_EQ(name(slow.bound), "links in the node");
  EXPECT_NEAR(slow.transfer, 63.0 / 64 * bytes * 7 / 8 / (0.811 * 45e9), 1e-12);
}

// Links of 4.5 TB/s leave the channels of the GPU: 24 of 36.7 GB/s on H100, 32 of 40 GB/s on B200.
TEST(Library, ChannelsBindBehindFastLinks) {
  for (const auto& [name_of, channels] : {std::pair{"nccl-h100", 24 * 36.7e9}, {"nccl-b200", 32 * 40e9}}) {
    const auto time = library_time(options(name_of), Kind::all_gather, nodes(1, 4500e9), 1e10);
    EXPECT_EQ(name(time.bound), "GPU channels");
    EXPECT_NEAR(time.transfer, 7.0 / 8 * 1e10 / channels, 1e-12);
  }
}

// An all-to-all among 16 nodes of 8 under a spine that gives a member 1 GB/s: of its data 3/4 leave the unit of 32, as
// of 64 members 1/2.
TEST(Library, SpinesBindAllToAlls) {
  LibraryGroup group = nodes(16);
  group.outer = {{1, 50e9, 50e9, 8, 32}, {2, 4e9, 1e9, 32, 128}};
  const auto time = library_time(options("nccl-h100"), Kind::all_to_all, group, 1e9);
  EXPECT_EQ(name(time.bound), "dimension 2");
  EXPECT_NEAR(time.transfer, 0.75e9 / (0.85 * 1e9), 1e-12);
  LibraryGroup half = nodes(8);
  half.outer = {{1, 50e9, 50e9, 8, 32}, {2, 4e9, 1e9, 32, 64}};
  EXPECT_NEAR(library_time(options("nccl-h100"), Kind::all_to_all, half, 1e9).transfer, 0.5e9 / (0.85 * 1e9), 1e-12);
}

// Shares replace those of the library, and with `rates: reached` a ring has all of the described rate.
TEST(Library, SharesMayBeGiven) {
  LibraryOptions given = options("nccl-h100");
  given.shares.ring = 0.5;
  EXPECT_NEAR(library_time(given, Kind::all_gather, nodes(1), 1e9).transfer, 7.0 / 8 * 1e9 / (0.5 * 450e9), 1e-12);
  LibraryOptions reached = options("nccl-h100");
  reached.rates = LinkRates::reached;
  EXPECT_NEAR(library_time(reached, Kind::all_gather, nodes(1), 1e9).transfer, 7.0 / 8 * 1e9 / 450e9, 1e-12);
  EXPECT_NEAR(library_time(reached, Kind::all_gather, nodes(8), 1e9).transfer, 63.0 / 64 * 1e9 / 8 / 50e9, 1e-12);
}

// Nothing takes less than a launch.
TEST(Library, LaunchIsAFloor) {
  LibraryOptions launched = options("nccl-h100");
  launched.launch = Time::from_ns(44000);
  EXPECT_NEAR(library_time(launched, Kind::all_reduce, nodes(1), 8).seconds, 44e-6, 1e-12);
  EXPECT_DOUBLE_EQ(library_time(launched, Kind::all_reduce, nodes(1), 1e9).seconds,
                   library_time(options("nccl-h100"), Kind::all_reduce, nodes(1), 1e9).seconds);
}

// All-gathers and reduce-scatters over nodes have rings only. Over 192 nodes of A100 with 8 NICs of 25 GB/s, 1,535
// steps take longer than latency and ramp: those of LL128, which reaches 0.92 of the bandwidth, less than those of
// Simple.
TEST(Library, RingsOverManyNodesHaveManySteps) {
  LibraryGroup many = nodes(192, 300e9, 25e9);
  many.hop_latency = 500e-9;
  const double bytes = 1e9, moved = 1535.0 / 1536 * bytes / 8 / (0.955 * 25e9);
  const double ll128 = 14 + 191 * 4.0 + 1344 * 1.9, simple = 8.4 + 191 * 14.0 + 1344 * 3.4;
  ASSERT_LT(moved / 0.92 + 1e-6 * ll128, moved + 1e-6 * simple);
  for (const Kind kind : {Kind::all_gather, Kind::reduce_scatter})
    EXPECT_NEAR(library_time(options("nccl-a100"), kind, many, bytes).seconds, moved / 0.92 + 1e-6 * ll128, 1e-12);
}

// More bytes never take less time, and slower links never less either, whatever the kind, group and library.
TEST(Library, GrowsWithBytesAndFallsWithLinks) {
  for (const LibraryName library : LibraryName::all())
    for (const FabricName fabric : FabricName::all())
      for (const Kind kind : {Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter, Kind::all_to_all,
                              Kind::broadcast, Kind::reduce, Kind::gather, Kind::scatter, Kind::barrier}) {
        const LibraryOptions of = options(library.name(), fabric.name());
        for (const std::uint32_t count : {1U, 2U, 8U}) {
          double before = 0;
          for (double bytes = 1; bytes < 1e12; bytes *= 3) {
            const double one = library_time(of, kind, nodes(count), bytes).seconds;
            EXPECT_GE(one, before * (1 - 1e-12)) << library.name() << ' ' << name(kind) << ' ' << bytes;
            if (bytes > 1e8) {
              EXPECT_GE(library_time(of, kind, nodes(count, 45e9, 5e9), bytes).seconds, one) << library.name();
            }
            before = one;
          }
        }
      }
}

// With `relative: false` the links of the measured machine hold: 1 GiB at 272 GB/s, whatever the described link is.
TEST(Library, AbsoluteFiguresIgnoreTheNetwork) {
  LibraryOptions absolute = options("nccl-h100");
  absolute.relative = false;
  const double bytes = 1 << 30;
  for (const double link : {45e9, 450e9})
    EXPECT_DOUBLE_EQ(library_time(absolute, Kind::all_reduce, nodes(1, link), bytes).seconds,
                     bytes / 272e9 + 38e-6 + 60e-6 * bytes / (bytes + 12e6));
}

// A time is inside what was measured on such links, and extrapolated on others: 6 % for each doubling.
TEST(Library, SaysItsRange) {
  const auto range = [](const LibraryGroup& group, double bytes) {
    const LibraryOptions of = options("nccl-h100");
    return library_range(of, group, bytes, library_time(of, Kind::all_reduce, group, bytes));
  };
  EXPECT_TRUE(range(nodes(1), 1e9).reasons.empty());
  EXPECT_DOUBLE_EQ(range(nodes(1), 1e9).error, 0.06);
  EXPECT_DOUBLE_EQ(range(nodes(1), 1e8).error, 0.15);
  const LibraryRange slow = range(nodes(1, 112.5e9), 1e9);
  ASSERT_EQ(slow.reasons.size(), 1U);
  EXPECT_EQ(slow.reasons[0], "links of 112.5 GB/s, measured at 450 GB/s");
  EXPECT_NEAR(slow.error, std::hypot(0.06, 0.12), 1e-12);
  EXPECT_EQ(range(nodes(32), 1e9).reasons.size(), 1U);
}

constexpr std::string_view printed =
    "# nThread 1 nGpus 1 minBytes 8 maxBytes 1024\n"
    "#  Rank  0 Group  0 Pid  1 on  one device  0 [0x10] NVIDIA H100\n"
    "#  Rank  1 Group  0 Pid  2 on  two device  0 [0x10] NVIDIA H100\n"
    "#       size         count      type   redop    root     time   algbw   busbw #wrong\n"
    "        2048           512     float     sum      -1    60.0    0.03    0.03      0\n"
    "        1024           256     float     sum      -1    50.0    0.02    0.02      0\n"
    "# Avg bus bandwidth    : 0.03\n";

// The output of nccl-tests tells ranks, nodes (by the names of hosts), sizes and times.
TEST(NcclTests, AreReadAsTheyAre) {
  const MeasuredSeries series = parse_nccl_tests(printed, "nccl.txt");
  EXPECT_EQ(series.ranks, 2U);
  EXPECT_EQ(series.hosts, 2U);
  ASSERT_EQ(series.points.size(), 2U);
  EXPECT_EQ(series.points[0].bytes, 1024);
  EXPECT_DOUBLE_EQ(series.points[1].seconds, 60e-6);
}

LibraryOptions corrected_by(std::string_view text, std::optional<std::uint32_t> node) {
  LibraryOptions corrected = options("nccl-h100");
  corrected.measured[Kind::all_reduce].push_back({"nccl.txt", node, {}, parse_nccl_tests(text, "nccl.txt")});
  return corrected;
}

/// Two NPUs in two nodes.
LibraryGroup two_nodes() {
  LibraryGroup group{.ranks = 2, .nodes = 2, .nic = 50e9};
  group.outer = {{1, 50e9, 50e9, 1, 2}};
  return group;
}

// A measured series gives its own times at its sizes. Above them the ratio stays, below them the difference, and
// between them the ratio is interpolated.
TEST(NcclTests, CorrectALibrary) {
  const LibraryOptions corrected = corrected_by(printed, 1), bare = options("nccl-h100");
  const MeasuredFile* const file = correction_of(corrected, Kind::all_reduce, two_nodes()).file;
  ASSERT_NE(file, nullptr);
  const auto time = [&](double bytes) {
    return corrected_time(corrected, Kind::all_reduce, two_nodes(), bytes, file->series, two_nodes()).seconds;
  };
  const auto without = [&](double bytes) { return library_time(bare, Kind::all_reduce, two_nodes(), bytes).seconds; };
  EXPECT_NEAR(time(1024), 50e-6, 1e-15);
  EXPECT_NEAR(time(2048), 60e-6, 1e-15);
  EXPECT_NEAR(time(1e6) / without(1e6), 60e-6 / without(2048), 1e-9);
  EXPECT_NEAR(time(8) - without(8), 50e-6 - without(1024), 1e-12);
  const double between = time(1448) / without(1448);
  EXPECT_GT(between, 50e-6 / without(1024));
  EXPECT_LT(between, 60e-6 / without(2048));
}

// A series corrects groups of such nodes only, of as many members or within a factor of two.
TEST(NcclTests, CorrectGroupsLikeTheirs) {
  const auto applies = [](const LibraryGroup& group, std::optional<std::uint32_t> node) {
    const Correction found = correction_of(corrected_by(printed, node), Kind::all_reduce, group);
    return found.file == nullptr ? 'n' : found.is_near ? '~' : 'y';
  };
  EXPECT_EQ(applies(two_nodes(), 1), 'y');
  LibraryGroup four = two_nodes(), eight = two_nodes();
  four.ranks = four.nodes = 4;
  eight.ranks = eight.nodes = 8;
  EXPECT_EQ(applies(four, 1), '~');
  EXPECT_EQ(applies(eight, 1), 'n');
  EXPECT_EQ(applies(nodes(1), 1), 'n');
  // Two ranks on two hosts are one node where NVLink joins the hosts.
  const LibraryGroup domain{.ranks = 2, .nodes = 1, .link = 900e9, .npus_of_node = 2};
  EXPECT_EQ(applies(domain, {}), 'y');
  EXPECT_EQ(applies(domain, 1), 'n');
}

constexpr std::string_view json =
    R"({"version": 1, "config": {"ngpus": 1, "devices": [{"rank": 0, "hostname": "one"}, {"rank": 1, "hostname": "two"}]},
        "results": [{"size": 2048, "out_of_place": {"time": 60.0, "alg_bw": 0.03}, "in_place": {"time": 61.0}},
                    {"size": 1024, "out_of_place": null, "in_place": {"cpu_time": 50.0}}]})";

// So does what nccl-tests write with -J.
TEST(NcclTests, AreReadAsJson) {
  const MeasuredSeries series = parse_nccl_tests(json, "nccl.json");
  EXPECT_EQ(series.ranks, 2U);
  EXPECT_EQ(series.hosts, 2U);
  ASSERT_EQ(series.points.size(), 2U);
  EXPECT_DOUBLE_EQ(series.points[0].seconds, 50e-6);
  EXPECT_DOUBLE_EQ(series.points[1].seconds, 60e-6);
}

std::string message_of(std::string_view text) {
  try {
    parse_nccl_tests(text, "nccl.txt");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    return error.what();
  }
  return {};
}

// What nccl-tests did not print is refused with the file and, where it is a line, the line.
TEST(NcclTests, RefuseOtherText) {
  EXPECT_NE(message_of("nothing\n").find("nccl.txt: found 0 ranks and 0 results"), std::string::npos);
  EXPECT_NE(message_of("{\"config\": {}}").find("nccl.txt: found other JSON"), std::string::npos);
  EXPECT_NE(message_of("{\"config\"").find("nccl.txt"), std::string::npos);
  EXPECT_NE(message_of("1024 256 float sum -1 zero 0 0 0\n").find("nccl.txt:1: this is no line of results"),
            std::string::npos);
}

}  // namespace
}  // namespace orrery::collective
