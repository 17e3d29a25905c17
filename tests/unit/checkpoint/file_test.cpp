// Checkpoints of several ranks: each rank has some pieces, and each piece goes to the rank of its number.
#include "orrery/checkpoint/file.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "mpi_world.hpp"
#include "orrery/base/error.hpp"
#include "temporary_folder.hpp"

namespace orrery::checkpoint {
namespace {

namespace fs = std::filesystem;
using test::TemporaryFolder;
using test::world;

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

/// Piece `i` of 20, of up to 100,000 bytes, of simulation 0 or 1.
Piece piece(std::uint32_t i) {
  return {LpId(i), std::vector<std::byte>(i * i * 263, static_cast<std::byte>(i)), i % 2};
}

class CheckpointFile : public ::testing::Test {
 protected:
  static constexpr std::uint32_t num_pieces = 20;

  CheckpointFile() {
    std::string name = folder_.path().string();
    world().broadcast(name, Rank(0));
    path_ = fs::path(name) / "run.chk";
  }
  ~CheckpointFile() override { world().barrier(); }

  std::string write(const std::string& head, Older older = Older::none) {
    std::vector<Piece> mine;
    for (std::uint32_t i = 0; i < num_pieces; ++i)
      if (i % static_cast<std::uint32_t>(world().size()) == static_cast<std::uint32_t>(world().rank().value()))
        mine.push_back(piece(i));
    return checkpoint::write(path_, older, bytes_of(head), mine, world());
  }
  /// Spoils one byte of a file, on rank 0.
  void spoil(const fs::path& path, std::uint64_t at) {
    if (world().is_root()) {
      std::fstream stream(path, std::ios::in | std::ios::out | std::ios::binary);
      stream.seekg(static_cast<std::streamoff>(at));
      const char old = static_cast<char>(stream.get());
      stream.seekp(static_cast<std::streamoff>(at));
      stream.put(static_cast<char>(old ^ 1));
    }
    world().barrier();
  }

  TemporaryFolder folder_;
  fs::path path_;
};

// 20 pieces of all ranks, half of them of each simulation, are read again on the last rank, with the head and all of
// their bytes.
TEST_F(CheckpointFile, GivesEachRankItsPieces) {
  ASSERT_EQ(write("the head"), "");
  const Found found = find(path_);
  EXPECT_EQ(found.head, bytes_of("the head"));
  EXPECT_EQ(found.why_not_newest, "");
  const auto last = [&](LpId) { return Rank(world().size() - 1); };
  for (std::uint32_t simulation = 0; simulation < 2; ++simulation) {
    auto mine = read(found.file, simulation, last, world());
    EXPECT_EQ(mine.size(), world().rank() == last(LpId(0)) ? num_pieces / 2 : 0);
    std::ranges::sort(mine, {}, &Piece::lp);
    for (std::uint32_t i = 0; i < mine.size(); ++i) {
      EXPECT_EQ(mine[i].lp, LpId(2 * i + simulation));
      EXPECT_EQ(mine[i].bytes, piece(2 * i + simulation).bytes);
    }
  }
}

// Of two checkpoints under one name both are there. If the newer one is spoilt, the older one is found.
TEST_F(CheckpointFile, KeepsTheGenerationBefore) {
  ASSERT_EQ(write("first"), "");
  ASSERT_EQ(write("second", Older::whole), "");
  EXPECT_EQ(find(path_).head, bytes_of("second"));
  EXPECT_EQ(find(previous(path_)).head, bytes_of("first"));
  world().barrier();
  spoil(path_, fs::file_size(path_) / 2);
  const Found found = find(path_);
  EXPECT_EQ(found.head, bytes_of("first"));
  EXPECT_EQ(found.file, previous(path_));
  EXPECT_NE(found.why_not_newest, "");
  world().barrier();
}

// A run that goes on from the generation before does not know the newest one as whole: the next checkpoint replaces
// that one, and the generation before stays.
TEST_F(CheckpointFile, ADamagedOneNeverBecomesTheGenerationBefore) {
  ASSERT_EQ(write("first"), "");
  ASSERT_EQ(write("second", Older::whole), "");
  spoil(path_, fs::file_size(path_) / 2);
  ASSERT_EQ(write("third", Older::replaced), "");
  EXPECT_EQ(find(path_).head, bytes_of("third"));
  EXPECT_EQ(find(previous(path_)).head, bytes_of("first"));
  world().barrier();
}

// A file that has come to the place of the first checkpoint stays, and all ranks hear of it.
TEST_F(CheckpointFile, AFileThatAppearsIsKept) {
  ASSERT_EQ(write("of another run"), "");
  EXPECT_NE(write("mine").find("has appeared during the run"), std::string::npos);
  EXPECT_EQ(find(path_).head, bytes_of("of another run"));
  EXPECT_TRUE(is_checkpoint(path_));
  world().barrier();
  spoil(path_, 0);
  EXPECT_FALSE(is_checkpoint(path_));
  world().barrier();
}

// A wrong byte in the mark, in a header of a block, in the head or in the end is found, each in turn.
TEST_F(CheckpointFile, FindsEveryWrongByteOfItsFrame) {
  ASSERT_EQ(write("the head"), "");
  const auto size = fs::file_size(path_);
  std::vector<std::uint64_t> places;
  for (std::uint64_t at = 0; at < 100; ++at) places.push_back(at);
  for (std::uint64_t at = size - 40; at < size; ++at) places.push_back(at);
  world().barrier();
  for (const std::uint64_t at : places) {
    spoil(path_, at);
    EXPECT_THROW(find(path_), Error) << at;
    world().barrier();
    spoil(path_, at);
  }
  EXPECT_EQ(find(path_).head, bytes_of("the head"));
}

// A write into a folder that is not there fails on all ranks without an error, and another file stays as it was.
TEST_F(CheckpointFile, AFailedWriteLeavesWhatWasThere) {
  ASSERT_EQ(write("kept"), "");
  const fs::path whole = path_;
  path_ = folder_.path() / "missing" / "run.chk";
  EXPECT_NE(write("lost"), "") << "on all ranks";
  path_ = whole;
  EXPECT_EQ(find(path_).head, bytes_of("kept"));
}

}  // namespace
}  // namespace orrery::checkpoint
