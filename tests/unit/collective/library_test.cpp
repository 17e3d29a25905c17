// Libraries of collectives: their times by hand, and what nccl-tests print.
#include <gtest/gtest.h>

#include <string>

#include "orrery/base/error.hpp"
#include "orrery/collective/library.hpp"
#include "orrery/collective/options.hpp"

namespace orrery::collective {
namespace {

LibraryOptions options(std::string_view name) {
  LibraryOptions result;
  result.library = LibraryName(name);
  return result;
}

constexpr LibraryGroup node{.ranks = 8, .nodes = 1, .nic = 50e9};
constexpr LibraryGroup two_nodes{.ranks = 16, .nodes = 2, .nic = 50e9};
constexpr LibraryGroup eight_nodes{.ranks = 64, .nodes = 8, .nic = 50e9};

// In a node of H100 the switch carries out an all-reduce: 1 GiB at 272 GB/s, and a ramp of 38 us and nearly all of 60
// us.
TEST(Library, ReducesInTheSwitch) {
  const double bytes = 1 << 30;
  const auto time = library_time(options("nccl-h100"), Kind::all_reduce, node, bytes);
  EXPECT_EQ(time.algorithm, "NVLS");
  EXPECT_DOUBLE_EQ(time.seconds, bytes / 272e9 + 38e-6 + 60e-6 * bytes / (bytes + 12e6));
}

// An A100 has no such switch: a ring sends 2 * 7/8 of the buffer at 235 GB/s. So does an all-gather with 7/8 of it,
// whose 7 steps of 3.4 us beside 8.4 us are a share of the 14 of an all-reduce.
TEST(Library, TakesARing) {
  const double bytes = 1e9, ramp = 45e-6 + 180e-6 * bytes / (bytes + 8e6);
  const auto reduced = library_time(options("nccl-a100"), Kind::all_reduce, node, bytes);
  EXPECT_EQ(reduced.algorithm, "ring");
  EXPECT_DOUBLE_EQ(reduced.seconds, 2 * 7.0 / 8 * bytes / 235e9 + ramp);
  EXPECT_DOUBLE_EQ(library_time(options("nccl-a100"), Kind::all_gather, node, bytes).seconds,
                   7.0 / 8 * bytes / 235e9 + (8.4 + 7 * 3.4) / (8.4 + 14 * 3.4) * ramp);
}

// Over eight nodes a ring passes each node's NICs, 8 * 50 GB/s, of which it gets 0.96. Each of three doublings of the
// nodes adds a ramp. Over two nodes a tree through the switches is faster.
TEST(Library, PassesNics) {
  const double bytes = 1e9;
  const auto ring = library_time(options("nccl-h100"), Kind::all_reduce, eight_nodes, bytes);
  EXPECT_EQ(ring.algorithm, "ring");
  const double between = 15e-6 + 100e-6 * bytes / (bytes + 16e6);
  EXPECT_NEAR(ring.seconds, 2 * 63.0 / 64 * bytes / 365e9 + 38e-6 + 3 * between, 1e-12);
  const LibraryGroup slow{.ranks = 64, .nodes = 8, .nic = 25e9};
  EXPECT_NEAR(library_time(options("nccl-h100"), Kind::all_reduce, slow, bytes).seconds,
              2 * 63.0 / 64 * bytes / (0.96 * 200e9) + 38e-6 + 3 * between, 1e-12);
  EXPECT_EQ(library_time(options("nccl-h100"), Kind::all_reduce, two_nodes, bytes).algorithm, "NVLSTree");
}

// All-gathers and reduce-scatters over nodes have rings only. Over 192 nodes of A100 with 8 NICs of 25 GB/s, 1,535
// steps take longer than the ramps: those of LL128, which reaches 0.92 of the bandwidth, less than those of Simple.
// Over two nodes the ramps are longer.
TEST(Library, RingsOverManyNodesHaveManySteps) {
  const LibraryGroup many{.ranks = 1536, .nodes = 192, .nic = 25e9}, few{.ranks = 16, .nodes = 2, .nic = 25e9};
  const double bytes = 1e9, moved = 1535.0 / 1536 * bytes / (0.96 * 200e9);
  const double ll128 = 14 + 191 * 4.0 + 1344 * 1.9, simple = 8.4 + 191 * 14.0 + 1344 * 3.4;
  ASSERT_LT(moved / 0.92 + 1e-6 * ll128, moved + 1e-6 * simple);
  for (const Kind kind : {Kind::all_gather, Kind::reduce_scatter})
    EXPECT_NEAR(library_time(options("nccl-a100"), kind, many, bytes).seconds, moved / 0.92 + 1e-6 * ll128, 1e-12);
  const double between = 15e-6 + 100e-6 * bytes / (bytes + 16e6);
  EXPECT_NEAR(library_time(options("nccl-a100"), Kind::all_gather, few, bytes).seconds,
              15.0 / 16 * bytes / (0.96 * 200e9) + 45e-6 + between, 1e-12);
}

// More bytes never take less time, whatever the kind, group and library; neither do more nodes, unless rings over nodes
// are faster, as measured on MI300X.
TEST(Library, GrowsWithBytesAndNodes) {
  for (const LibraryName library : LibraryName::all())
    for (const Kind kind : {Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter, Kind::all_to_all, Kind::broadcast,
                            Kind::reduce, Kind::gather, Kind::scatter, Kind::barrier}) {
      LibraryOptions of;
      of.library = library;
      double before = 0;
      for (double bytes = 1; bytes < 1e12; bytes *= 3) {
        const double one = library_time(of, kind, node, bytes).seconds;
        EXPECT_GE(one, before) << library.name() << ' ' << name(kind) << ' ' << bytes;
        if (library->ring_over_nodes == 0) {
          EXPECT_GE(library_time(of, kind, eight_nodes, bytes).seconds, one) << library.name() << ' ' << name(kind);
        }
        before = one;
      }
    }
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
  EXPECT_EQ(series.nodes, 2U);
  ASSERT_EQ(series.points.size(), 2U);
  EXPECT_EQ(series.points[0].bytes, 1024);
  EXPECT_DOUBLE_EQ(series.points[1].seconds, 60e-6);
}

// A measured series gives its own times at its sizes. Beyond them the ratio stays, and between them it is interpolated.
TEST(NcclTests, CorrectALibrary) {
  LibraryOptions corrected = options("nccl-h100");
  corrected.measured[Kind::all_reduce].push_back(parse_nccl_tests(printed, "nccl.txt"));
  const LibraryGroup pair{.ranks = 2, .nodes = 2, .nic = 50e9};
  const auto time = [&](const LibraryOptions& of, double bytes) {
    return library_time(of, Kind::all_reduce, pair, bytes).seconds;
  };
  EXPECT_NEAR(time(corrected, 1024), 50e-6, 1e-15);
  EXPECT_NEAR(time(corrected, 2048), 60e-6, 1e-15);
  const LibraryOptions bare = options("nccl-h100");
  EXPECT_NEAR(time(corrected, 1e6) / time(bare, 1e6), 60e-6 / time(bare, 2048), 1e-9);
  const double between = time(corrected, 1448) / time(bare, 1448);
  EXPECT_GT(between, 50e-6 / time(bare, 1024));
  EXPECT_LT(between, 60e-6 / time(bare, 2048));
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
  EXPECT_NE(message_of("1024 256 float sum -1 zero 0 0 0\n").find("nccl.txt:1: this is no line of results"),
            std::string::npos);
}

}  // namespace
}  // namespace orrery::collective
