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

/// Cuts keys 0, 1, ... with `rows[key]` rows each into blocks of at most `limit` rows, or of one key. The same on all
/// ranks, for any number of them.
std::vector<Block> blocks(std::span<const std::int64_t> rows, std::uint64_t limit);

/// Brings the records of all ranks to rank 0 in the order of `key` (a number below rows.size()), then of `before`, a
/// block at a time, and calls `consume(first_row, records)` there. `mine` ascends in key; `rows[key]` is the number of
/// records of a key over all ranks. Collective; if `consume` throws, all ranks throw. `before` must be total over equal
/// keys of different ranks, or a key be of one rank only (the order within a rank is kept where `before` does not
/// tell).
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

/// The texts of all ranks in rank order, on rank 0. Collective.
std::vector<std::string> gather_texts(parallel::Communicator& world, std::span<const std::string> mine);

/// Gives the distinct texts of all ranks one numbering that depends on the texts alone: sorted. Returns the index of
/// each of `mine`; `all` becomes the sorted texts on every rank. Collective, O(all texts).
std::vector<std::uint32_t> intern(parallel::Communicator& world, std::span<const std::string> mine,
                                  std::vector<std::string>& all);

}  // namespace orrery::results
