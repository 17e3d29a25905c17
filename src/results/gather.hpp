#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "orrery/base/error.hpp"
#include "orrery/parallel/communicator.hpp"

namespace orrery::results {

/// Rank 0 holds at most about this many bytes of gathered records at a time (more if one key alone has more).
constexpr std::size_t block_bytes = 32 << 20;

/// Consecutive keys [first, last) whose rows are gathered together.
struct Block {
  std::size_t first_key, last_key;
  std::uint64_t first_row, num_rows;
};

/// Cuts keys 0, 1, ... with `rows[key]` rows each into blocks of at most `limit` rows, or of one key. The result does
/// not depend on the rank or the number of ranks.
std::vector<Block> blocks(std::span<const std::int64_t> rows, std::uint64_t limit);

/// Gathers the records of all ranks on rank 0, one block at a time, in the order of `key` (a number below rows.size())
/// and then of `before`, and calls `consume(first_row, records)` there. `mine` ascends in key; `rows[key]` is the
/// number of records of a key over all ranks. If several ranks have records of one key, `before` must order these
/// totally. Records of one rank that `before` does not order keep their order. Collective; if `consume` throws, all
/// ranks throw.
template <class Record, class Key, class Before, class Consume>
void gather_in_order(parallel::Communicator& world, std::span<const Record> mine, std::span<const std::int64_t> rows,
                     Key key, Before before, Consume consume) {
  auto position = mine.begin();
  for (const Block& block : blocks(rows, block_bytes / sizeof(Record))) {
    const auto end =
        std::partition_point(position, mine.end(), [&](const Record& record) { return key(record) < block.last_key; });
    auto records = world.gather<Record>(std::span(position, end), Rank(0));
    position = end;
    world.agree([&] {
      if (!world.is_root()) return;
      ensure(records.size() == block.num_rows, "a block of results has all its rows");
      std::stable_sort(records.begin(), records.end(), [&](const Record& a, const Record& b) {
        return key(a) != key(b) ? key(a) < key(b) : before(a, b);
      });
      consume(block.first_row, std::span<const Record>(records));
    });
  }
}

/// Returns the texts of all ranks in rank order on rank 0. Collective.
std::vector<std::string> gather_texts(parallel::Communicator& world, std::span<const std::string> mine);

/// Numbers the distinct texts of all ranks in sorted order. Returns the number of each of `mine` and sets `all` to the
/// sorted texts on every rank. Collective. O(all texts).
std::vector<std::uint32_t> intern(parallel::Communicator& world, std::span<const std::string> mine,
                                  std::vector<std::string>& all);

}  // namespace orrery::results
