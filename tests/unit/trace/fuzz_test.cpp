// Damaged files end in a trace or in a refusal, never in a crash, a hang or a large allocation. The damage is drawn
// with a fixed seed.
#include <zlib.h>

#include <random>

#include "fixture.hpp"
#include "sanitized.hpp"

namespace orrery::trace {
namespace {

class Damaged : public TraceTest {
 protected:
  /// True if it was read.
  bool survives(const std::string& bytes) {
    // A new file each time: some file systems write a file that is truncated to the disk at once.
    std::filesystem::remove(folder_ / "t.0.et");
    Store store = make_store({{"a", npus({0, 1})}});
    try {
      const NpuTrace trace = store.read(write(bytes), NpuId(0));
      EXPECT_EQ(trace.graph->nodes.back().first_successor, trace.graph->successors.size());
      EXPECT_EQ(trace.labels->ids.size(), trace.graph->num_nodes());
      EXPECT_EQ(trace.labels->tensors.size(), trace.graph->tensors.sizes.size());
      return true;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_input) << error.what();
      EXPECT_HAS(std::string(error.what()), "NPU 0");
      return false;
    }
  }

  void damage(const std::string& bytes, std::uint64_t seed, int rounds) {
    std::mt19937_64 random(seed);
    const auto below = [&random](std::size_t bound) { return static_cast<std::size_t>(random() % bound); };
    int read = 0;
    if (orrery::test::sanitized) rounds /= 3;
    for (int round = 0; round < rounds; ++round) {
      std::string bad = bytes;
      for (std::size_t flips = 1 + below(3); flips > 0; --flips)
        bad[below(bad.size())] ^= static_cast<char>(1u << below(8));
      if (round % 4 == 1) bad.resize(below(bad.size()));
      if (round % 4 == 2) bad.insert(below(bad.size()), std::string(1 + below(9), static_cast<char>(below(256))));
      if (round % 8 == 3) bad.erase(below(bad.size()), 1 + below(9));
      read += survives(bad) ? 1 : 0;
    }
    EXPECT_LT(read, rounds);
  }

  static et::File sample() {
    et::File file;
    file.metadata();
    et::Node init(1, "## process_group:init ##", et::metadata);
    init.message(8, et::Message().bytes(1, R"([{"pg_name": "tp", "ranks": [0, 2]}])"));
    file.add(init);
    file.add(et::compute(2, "first").data({1}).micros(12).inputs({"x", "16.0", "w", "5"}).outputs({"y", "7"}));
    file.add(et::collective(3, "sum", 0, 4096)
                 .text("pg_name", "tp")
                 .data({2})
                 .bools("involved_dim", {1, 0})
                 .inputs({"y", "7"})
                 .outputs({}));
    file.add(et::collective(4, "gather", 2, 4096).text("pg_name", "a").data({2}).ctrl({3}));
    file.add(et::send(5, "send", 1, 64, 3).data({3, 4}));
    file.add(et::receive(6, "receive", 2, 64, 3).data({3}));
    file.add(et::Node(7, "load", et::mem_load).uint64("tensor_size", 99).data({5, 6}));
    file.add(et::compute(8, "host").boolean("is_cpu_op", true).micros(3).data({7}));
    return file;
  }
};

TEST_F(Damaged, TheCurrentLayout) {
  // A trace of the current layout with nodes of every kind, damaged in 5,000 ways: every file must be read or
  // refused.
  ASSERT_TRUE(survives(sample().text()));
  damage(sample().text(), 1, 5000);
}

TEST_F(Damaged, Version001) {
  // A trace of version 0.0.1 with collectives, damaged in 1,000 ways: every file must be read or refused.
  et::File file;
  for (std::uint64_t id = 0; id < 6; ++id)
    file.add(
        et::Message().varint(1, id).bytes(2, "sum").varint(3, 6).varint(4, id + 1).varint(13, 1).varint(14, 1).varint(
            18, 64));
  ASSERT_TRUE(survives(file.text()));
  damage(file.text(), 2, 1000);
}

TEST_F(Damaged, Version003) {
  // A trace of version 0.0.3 with collectives, damaged in 1,000 ways: every file must be read or refused.
  et::File file;
  for (std::uint64_t id = 0; id < 6; ++id) {
    et::Message node = et::Message().varint(1, id).bytes(2, "sum").varint(3, 7).varint(4, id + 1);
    node.message(11, et::Message().bytes(1, "comm_type").varint(2, 3).varint(7, 0));
    node.message(11, et::Message().bytes(1, "comm_size").varint(2, 2).varint(6, 64));
    node.message(11, et::Message().bytes(1, "involved_dim").varint(2, 5).varint(9, 1).varint(9, 1));
    file.add(node);
  }
  ASSERT_TRUE(survives(file.text()));
  damage(file.text(), 3, 1000);
}

TEST_F(Damaged, GzipData) {
  // A packed trace, damaged in 1,000 ways: every file must be read or refused.
  const auto path = folder_ / "packed";
  const gzFile packed = gzopen(path.c_str(), "wb");
  const std::string bytes = sample().text();
  gzwrite(packed, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(packed);
  std::ifstream in(path, std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  ASSERT_TRUE(survives(all));
  damage(all, 4, 1000);
}

TEST_F(Damaged, RandomBytes) {
  // 1,000 files of random bytes: every file must be read or refused.
  std::mt19937_64 random(5);
  for (int round = 0; round < (orrery::test::sanitized ? 333 : 1000); ++round) {
    std::string noise(1 + random() % 300, '\0');
    for (char& byte : noise) byte = static_cast<char>(random());
    survives(noise);
  }
}

TEST_F(Damaged, AHugeLengthAllocatesNothing) {
  // A file of ten bytes that says that its first message has 2 GiB: it must be refused without an allocation of that
  // size (a sanitizer would report it).
  EXPECT_FALSE(survives(std::string("\xf0\xff\xff\xff\x07", 5) + "short"));
  EXPECT_FALSE(survives(std::string("\xff\xff\xff\xff\x7f", 5) + "short"));
}

}  // namespace
}  // namespace orrery::trace
