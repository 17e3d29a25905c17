// The file of a checkpoint: a mark, then blocks with checksums. The first block is the head, the last one says how many
// there are; those between hold pieces, each within one block.
#include "orrery/checkpoint/file.hpp"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "orrery/base/error.hpp"
#include "orrery/base/output_file.hpp"

namespace orrery::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view mark = "orrery checkpoint 2\n";

enum class BlockKind : std::uint32_t { head = 1, pieces = 2, end = 3 };

struct BlockHeader {
  BlockKind kind = BlockKind::end;
  std::uint32_t checksum = 0;  ///< checksum of the kind, the size and the contents: CRC-32
  std::uint64_t size = 0;      ///< size of the contents, bytes; of the end: the number of blocks before it
};
static_assert(sizeof(BlockHeader) == 16);

struct PieceHeader {
  LpId lp;
  std::uint32_t simulation = 0;
  std::uint64_t size = 0;
};

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::uint32_t checksum_of(const BlockHeader& header, std::span<const std::byte> contents) {
  const auto add = [](uLong sum, const void* bytes, std::size_t size) {
    return crc32_z(sum, static_cast<const Bytef*>(bytes), size);
  };
  uLong sum = add(0, &header.kind, sizeof header.kind);
  sum = add(sum, &header.size, sizeof header.size);
  return static_cast<std::uint32_t>(contents.empty() ? sum : add(sum, contents.data(), contents.size()));
}

/// Takes the header of the first piece off a block; nothing if the block does not hold all of the piece.
std::optional<PieceHeader> take_header(std::span<const std::byte>& block) {
  PieceHeader header;
  if (block.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, block.data(), sizeof header);
  block = block.subspan(sizeof header);
  return header.size <= block.size() ? std::optional(header) : std::nullopt;
}

/// Says whether a block consists of whole pieces.
bool holds_pieces(std::span<const std::byte> block) {
  while (!block.empty()) {
    const auto header = take_header(block);
    if (!header) return false;
    block = block.subspan(header->size);
  }
  return true;
}

/// Writes the blocks of a file, on rank 0.
class BlockWriter {
 public:
  explicit BlockWriter(const fs::path& path) : file_(path) { file_.write(mark); }

  void write(BlockKind kind, std::span<const std::byte> contents) {
    write({kind, 0, contents.size()}, contents);
    ++num_blocks_;
  }
  /// Ends the file and puts it in place of the one before.
  void commit(const fs::path& path, Older older) {
    write({BlockKind::end, 0, num_blocks_}, {});
    file_.sync_contents();
    std::error_code failure, ignored;
    const bool is_there = fs::exists(path, ignored);
    if (older == Older::none && is_there)
      throw Error(ErrorCode::output, {.file = path.string()}, "has appeared during the run", {},
                  "Does another run write it?");
    const bool has_older = older == Older::whole && is_there;
    if (has_older) fs::rename(path, previous(path), failure);
    if (failure)
      throw Error(ErrorCode::output, {.file = path.string()},
                  fmt::format("cannot be kept as '{}': {}", previous(path).string(), failure.message()));
    try {
      file_.commit_synced();
    } catch (const Error&) {
      if (has_older) fs::rename(previous(path), path, ignored);
      throw;
    }
  }

 private:
  void write(BlockHeader header, std::span<const std::byte> contents) {
    header.checksum = checksum_of(header, contents);
    file_.append(as_text(std::as_bytes(std::span(&header, 1))));
    file_.append(as_text(contents));
  }

  PartialFile file_;
  std::uint64_t num_blocks_ = 0;
};

/// Reads the blocks of a file one after the other and checks them.
class BlockReader {
 public:
  explicit BlockReader(const fs::path& path) : path_(path) {
    std::error_code ignored;
    if (fs::exists(path, ignored) && !fs::is_regular_file(path, ignored)) fail("it is no regular file");
    errno = 0;
    stream_.open(path, std::ios::binary);
    const int code = errno;
    std::error_code failure;
    left_ = fs::file_size(path, failure);
    if (!stream_ || failure)
      fail(fmt::format("it cannot be opened: {}", std::strerror(stream_ ? failure.value() : code)));
    std::string begin(mark.size(), '\0');
    take(begin.data(), begin.size());
    if (begin != mark) fail("it is no checkpoint of this format");
  }

  /// Reads the next block into `contents`. Returns its kind.
  BlockKind next(std::vector<std::byte>& contents) {
    BlockHeader header;
    take(&header, sizeof header);
    const bool is_end = header.kind == BlockKind::end;
    if (!is_end && header.size > left_) fail("it is cut off");
    contents.resize(is_end ? 0 : header.size);
    take(contents.data(), contents.size());
    if (header.checksum != checksum_of(header, contents)) fail("a checksum is wrong");
    if (is_end && (header.size != num_blocks_ || left_ > 0)) fail("it has not all of its blocks");
    const BlockKind expected = num_blocks_ == 0 ? BlockKind::head : BlockKind::pieces;
    if (header.kind != expected && (!is_end || num_blocks_ == 0)) fail("its blocks are not in order");
    if (header.kind == BlockKind::pieces && !holds_pieces(contents)) fail("a block of it does not consist of pieces");
    ++num_blocks_;
    return header.kind;
  }

 private:
  void take(void* bytes, std::size_t size) {
    if (size > left_) fail("it is cut off");
    if (size > 0 && !stream_.read(static_cast<char*>(bytes), static_cast<std::streamsize>(size)))
      fail("it cannot be read");
    left_ -= size;
  }
  [[noreturn]] void fail(std::string_view why) const {
    throw Error(ErrorCode::bad_input, {.file = path_.string()}, std::string(why), "a whole checkpoint",
                "Give one that a run has written with --checkpoint, or start the run anew without --restart.");
  }

  fs::path path_;
  std::ifstream stream_;
  std::uint64_t left_ = 0, num_blocks_ = 0;
};

/// Packs pieces into blocks of at most so many bytes each, but for larger pieces. It frees each piece as it goes, so
/// that little exists twice.
class BlockPacker {
 public:
  BlockPacker(std::vector<Piece> pieces, std::size_t most) : pieces_(std::move(pieces)), most_(most) {}

  std::int64_t num_blocks() const {
    std::int64_t count = 0;
    for (std::size_t next = 0; next < pieces_.size(); next = end_of_block(next)) ++count;
    return count;
  }
  /// Returns the next block; an empty one if no piece is left.
  std::vector<std::byte> next() {
    std::vector<std::byte> block;
    for (const std::size_t end = end_of_block(next_); next_ < end; ++next_) {
      const Piece piece = std::exchange(pieces_[next_], {});
      const PieceHeader header{piece.lp, piece.simulation, piece.bytes.size()};
      const auto bytes = std::as_bytes(std::span(&header, 1));
      block.insert(block.end(), bytes.begin(), bytes.end());
      block.insert(block.end(), piece.bytes.begin(), piece.bytes.end());
    }
    return block;
  }

 private:
  std::size_t end_of_block(std::size_t first) const {
    std::size_t end = first, size = 0;
    for (; end < pieces_.size(); ++end) {
      const std::size_t more = sizeof(PieceHeader) + pieces_[end].bytes.size();
      if (end > first && more > most_ - std::min(size, most_)) break;
      size += more;
    }
    return end;
  }

  std::vector<Piece> pieces_;
  std::size_t most_, next_ = 0;
};

/// Calls visit(piece) for each piece of a block.
template <class Visit>
void for_each_piece(std::span<const std::byte> block, Visit&& visit) {
  while (!block.empty()) {
    const auto header = take_header(block);
    ensure(header.has_value(), "a block of a checkpoint that does not consist of pieces");
    const auto bytes = block.first(header->size);
    visit(Piece{header->lp, {bytes.begin(), bytes.end()}, header->simulation});
    block = block.subspan(header->size);
  }
}

std::vector<std::byte> head_of(const fs::path& path) {
  BlockReader reader(path);
  std::vector<std::byte> head, contents;
  (void)reader.next(head);
  while (reader.next(contents) != BlockKind::end) continue;
  return head;
}

/// Runs a step on rank 0 unless something has failed there before. A failure must not end the run, so that ranks do not
/// agree on it until the end.
template <class Step>
void attempt(const parallel::Communicator& world, std::string& failure, Step step) {
  if (!world.is_root() || !failure.empty()) return;
  try {
    step();
  } catch (const Error& error) {
    failure = error.what();
  }
}

}  // namespace

fs::path previous(const fs::path& path) { return path.string() + ".previous"; }

bool is_checkpoint(const fs::path& path) {
  if (std::error_code failure; !fs::is_regular_file(path, failure)) return false;
  std::string begin(mark.size(), '\0');
  std::ifstream stream(path, std::ios::binary);
  return stream.read(begin.data(), static_cast<std::streamsize>(begin.size())) && begin == mark;
}

std::string write(const fs::path& path, Older older, std::span<const std::byte> head, std::vector<Piece> mine,
                  parallel::Communicator& world) {
  constexpr std::size_t most_at_root = std::size_t{256} << 20U, least_block = std::size_t{64} << 10U;
  BlockPacker blocks(std::move(mine), std::max(most_at_root / static_cast<std::size_t>(world.size()), least_block));
  auto rounds = blocks.num_blocks();
  world.maximum(std::span(&rounds, 1));
  std::string failure;
  std::optional<BlockWriter> writer;
  attempt(world, failure, [&] {
    writer.emplace(path);
    writer->write(BlockKind::head, head);
  });
  for (std::int64_t round = 0; round < rounds; ++round) {
    std::vector<std::size_t> sizes;
    const auto all = world.gather_bytes(blocks.next(), Rank(0), sizes);
    attempt(world, failure, [&] {
      auto left = std::span<const std::byte>(all);
      for (const std::size_t size : sizes) {
        if (size > 0) writer->write(BlockKind::pieces, left.first(size));
        left = left.subspan(size);
      }
    });
  }
  attempt(world, failure, [&] { writer->commit(path, older); });
  writer.reset();
  world.broadcast(failure, Rank(0));
  return failure;
}

Found find(const fs::path& path) {
  Found found{path, {}, {}};
  try {
    found.head = head_of(path);
    return found;
  } catch (const Error& error) {
    std::error_code ignored;
    found.file = previous(path);
    if (!fs::exists(found.file, ignored)) throw;
    found.why_not_newest = error.what();
  }
  found.head = head_of(found.file);
  return found;
}

std::vector<Piece> read(const fs::path& file, std::uint32_t simulation, const std::function<Rank(LpId)>& host_of,
                        parallel::Communicator& world) {
  std::optional<BlockReader> reader;
  std::vector<std::byte> contents;
  std::vector<Piece> mine;
  world.agree([&] {
    if (!world.is_root()) return;
    reader.emplace(file);
    reader->next(contents);
  });
  for (;;) {
    std::vector<std::vector<std::byte>> outgoing(static_cast<std::size_t>(world.size()));
    std::int64_t is_over = 0;
    world.agree([&] {
      if (!world.is_root()) return;
      is_over = reader->next(contents) == BlockKind::end ? 1 : 0;
      if (is_over != 0) return;
      std::vector<std::vector<Piece>> of_rank(outgoing.size());
      for_each_piece(contents, [&](Piece piece) {
        if (piece.simulation == simulation) of_rank[host_of(piece.lp).index()].push_back(std::move(piece));
      });
      for (std::size_t rank = 0; rank < outgoing.size(); ++rank)
        outgoing[rank] = BlockPacker(std::move(of_rank[rank]), ~std::size_t{0}).next();
    });
    world.maximum(std::span(&is_over, 1));
    if (is_over != 0) return mine;
    const auto incoming = world.exchange_bytes(outgoing);
    for_each_piece(incoming.front(), [&](Piece piece) { mine.push_back(std::move(piece)); });
  }
}

}  // namespace orrery::checkpoint
