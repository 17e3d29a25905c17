#include "nccl_tuning.hpp"

#include <gtest/gtest.h>

#include "rccl_tuning.hpp"

namespace orrery::collective {
namespace {

constexpr double kib = 1024, mib = 1024 * kib, gib = 1024 * mib;
constexpr auto ampere = NcclGeneration::ampere;
constexpr auto hopper = NcclGeneration::hopper;

LibraryGroup nodes(std::uint32_t count) { return {.ranks = 8 * count, .nodes = count, .nic = 50e9}; }

/// Expects a choice, and the microseconds that the tables give for it.
void expect_choice(const std::optional<LibraryChoice>& choice, std::string_view algorithm, std::string_view protocol,
                   double us) {
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->algorithm, algorithm);
  EXPECT_EQ(choice->protocol, protocol);
  EXPECT_NEAR(choice->seconds * 1e6, us, 1e-6 * us);
}

// Latency and bandwidth by hand from the published tables, in us and GB/s of the buffer.
TEST(NcclTuning, ChoosesAsTheTablesSay) {
  const auto choose = [](NcclGeneration generation, Kind kind, const LibraryGroup& group, double bytes) {
    return nccl_choice(generation, kind, group, bytes, false);
  };
  const auto sum = [](double latency, double bytes, double bandwidth) { return latency + bytes / (1e3 * bandwidth); };
  // 8 H100: a ring of 14 steps, LL at most 141; the switch at 0.85 of 370.8, 15 of 16 channels, twice for a reduction.
  expect_choice(choose(hopper, Kind::all_reduce, nodes(1), kib), "ring", "LL",
                sum(6.6 + 14 * 0.6, kib, 141 * 8.0 / 14));
  expect_choice(choose(hopper, Kind::all_reduce, nodes(1), gib), "NVLS", "Simple",
                sum(25, gib, 370.8 * 0.85 * 15 / 16 * 2 * 8 / 14));
  // 8 A100 have no such switch: rings, LL128 at 0.92 of 240.
  expect_choice(choose(ampere, Kind::all_reduce, nodes(1), gib), "ring", "Simple",
                sum(8.4 + 14 * 3.4, gib, 240 * 8.0 / 14));
  expect_choice(choose(ampere, Kind::all_reduce, nodes(1), 8 * mib), "ring", "LL128",
                sum(14 + 14 * 1.9, 8 * mib, 240 * 0.92 * 8 / 14));
  expect_choice(choose(ampere, Kind::all_gather, nodes(1), gib), "ring", "Simple",
                sum(8.4 + 7 * 3.4, gib, 240 * 8.0 / 7));
  // Two nodes of H100: trees of switches, of which each byte passes two.
  expect_choice(choose(hopper, Kind::all_reduce, nodes(2), gib), "NVLSTree", "Simple",
                sum(25 + 2 * 20.9, gib, 370.8 * 0.85 * 15 / 16 * 2 / 2));
  // Eight nodes: a tree with LL128 reaches 0.92 x 120 / 128 of 370.8, and 0.6 of that at 1 MiB.
  expect_choice(choose(hopper, Kind::all_reduce, nodes(8), mib), "tree", "LL128",
                sum(14 + 2 * (7 * 1.25 + 3 * 8.5), mib, 370.8 * 0.92 * 120 / 128 * 0.6 / 2));
  expect_choice(choose(hopper, Kind::all_reduce, nodes(8), kib), "tree", "LL",
                sum(6.8 + 2 * (7 * 0.6 + 3 * 5.0), kib, 20.4 * 0.9 / 2));
  // A reduce-scatter among 64 has 63 steps, 7 of them between nodes. Within nodes LL takes the host's 1 us at least.
  expect_choice(choose(hopper, Kind::reduce_scatter, nodes(8), kib), "ring", "LL",
                sum(6.6 + 7 * 2.7 + 56 * 1, kib, 20.4 * 64 / 63));
  // 256 nodes of one A100: a parallel aggregated tree.
  expect_choice(choose(ampere, Kind::all_gather, {.ranks = 256, .nodes = 256, .nic = 25e9}, 4 * mib), "PAT", "Simple",
                sum(8 + 8 * 14 / 3.5 + 2.8 * 256, 4 * mib, 25 * 0.75 * 256 / 255));
}

// Switches between nodes are used only where they are said to reduce; and an all-to-all is no matter of choice.
TEST(NcclTuning, UsesOnlyWhatIsThere) {
  EXPECT_EQ(nccl_choice(hopper, Kind::all_reduce, nodes(8), mib, true)->algorithm, "CollNetChain");
  for (double bytes = kib; bytes <= 16 * gib; bytes *= 2) {
    EXPECT_NE(nccl_choice(hopper, Kind::all_reduce, nodes(8), bytes, false)->algorithm.substr(0, 7), "CollNet");
    EXPECT_NE(nccl_choice(ampere, Kind::all_reduce, nodes(8), bytes, true)->algorithm.substr(0, 4), "NVLS");
  }
  EXPECT_FALSE(nccl_choice(hopper, Kind::all_to_all, nodes(1), mib, false));
}

// Larger buffers never go back to a protocol for smaller ones, and never take less time.
TEST(NcclTuning, ProtocolsFollowEachOther) {
  const auto rank = [](std::string_view protocol) { return protocol == "LL" ? 0 : protocol == "LL128" ? 1 : 2; };
  for (const auto generation : {ampere, hopper, NcclGeneration::blackwell})
    for (const auto kind : {Kind::all_reduce, Kind::all_gather, Kind::reduce_scatter, Kind::broadcast})
      for (const std::uint32_t count : {1U, 2U, 4U, 64U}) {
        int before = 0;
        double seconds = 0;
        for (double bytes = kib; bytes <= 16 * gib; bytes *= 2) {
          const auto choice = nccl_choice(generation, kind, nodes(count), bytes, false);
          EXPECT_GE(rank(choice->protocol), before) << name(kind) << ' ' << count << ' ' << bytes;
          EXPECT_GE(choice->seconds, seconds) << name(kind) << ' ' << count << ' ' << bytes;
          before = rank(choice->protocol);
          seconds = choice->seconds;
        }
      }
}

// MI300X by hand: 8 of them in a ring of 14 steps with 7 links of 48; and over 4 nodes, where LL ends at 1 MiB.
TEST(RcclTuning, ChoosesAsTheTablesSay) {
  expect_choice(rccl_choice(Kind::all_reduce, nodes(1), gib), "ring", "Simple",
                17 + 14 * 2.1 + gib / (1e3 * 7 * 48 * 8 / 14));
  expect_choice(rccl_choice(Kind::all_reduce, nodes(1), kib), "ring", "LL",
                12 + 14 * 0.8 + kib / (1e3 * 7 * 48 * 0.08 * 8 / 14));
  EXPECT_EQ(rccl_choice(Kind::all_reduce, nodes(4), mib)->protocol, "LL");
  EXPECT_EQ(rccl_choice(Kind::all_reduce, nodes(4), 2 * mib)->protocol, "Simple");
  EXPECT_FALSE(rccl_choice(Kind::all_to_all, nodes(1), mib));
}

// Public runs of all_reduce_perf on one and two nodes of MI300X, in us: within 8 % where bandwidth counts.
TEST(RcclTuning, TimesAreThoseOfPublicRuns) {
  LibraryOptions options;
  options.library = LibraryName("rccl-mi300x");
  options.fabric = FabricName("roce-rccl-2.22");
  options.launch = Time::from_ns(26000);
  const auto mesh = [](std::uint32_t ranks, std::uint32_t count) {
    LibraryGroup group{.ranks = ranks, .nodes = count, .nic = 50e9, .link = 64e9 * (ranks / count - 1)};
    if (count > 1) group.outer.push_back({1, 50e9, 50e9, 8, 8.0 * count});
    return group;
  };
  const auto error = [&](std::uint32_t count, double bytes, double us) {
    return library_time(options, Kind::all_reduce, mesh(8 * count, count), bytes).seconds * 1e6 / us - 1;
  };
  for (const auto& [bytes, us] : {std::pair{mib, 28.39}, {16 * mib, 149.9}, {64 * mib, 432.5}, {gib, 5990.7}})
    EXPECT_NEAR(error(1, bytes, us), 0, 0.08) << bytes;
  // Two of the eight have one link in place of seven.
  const auto two = library_time(options, Kind::all_reduce, mesh(2, 1), gib);
  EXPECT_NEAR(two.seconds, gib / (316e9 / 7), 0.01 * two.seconds);
  for (const auto& [bytes, us] : {std::pair{256 * kib, 248.8}, {gib, 5908.3}, {16 * gib, 90115.0}})
    EXPECT_NEAR(error(2, bytes, us), 0, 0.08) << bytes;
}

}  // namespace
}  // namespace orrery::collective
