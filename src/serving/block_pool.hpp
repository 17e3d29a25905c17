#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "key_index.hpp"

namespace orrery::serving {

using Block = std::uint32_t;

/// The KV blocks of an instance: reference counts, a free list in the order of freeing, and an index of full blocks by
/// their keys. Without a prefix cache only numbers are kept. Each function costs O(blocks that it moves).
class BlockPool {
 public:
  BlockPool(std::uint32_t total, bool caches);

  std::uint32_t total() const { return total_; }
  std::uint32_t free() const { return free_; }
  std::uint32_t used() const { return total_ - free_; }
  bool caches() const { return caches_; }
  std::uint64_t evicted() const { return evicted_; }

  /// Returns the block with this key in `found`. Returns false if the index has none.
  bool find(std::uint64_t key, Block& found) const { return index_.find(key, found); }
  /// Returns how many of these blocks nobody uses.
  std::uint32_t idle(std::span<const Block> blocks) const;
  /// Gives one more user each to blocks that were found.
  void take_found(std::span<const Block> blocks);
  /// Takes blocks from the head of the free list, which has as many, and appends them.
  void take_new(std::uint32_t count, std::vector<Block>& to);
  /// Enters a block into the index unless it has the key.
  void enter(std::uint64_t key, Block block);
  /// Gives up the blocks of a request, the last one first.
  void release(std::span<const Block> blocks);
  /// Take or give up blocks of a pool without a cache.
  void take(std::uint32_t count) { free_ -= count; }
  void give(std::uint32_t count) { free_ += count; }

 private:
  static constexpr std::uint64_t no_key = KeyIndex::none;

  void unlink(Block block);
  void append(Block block);

  std::uint32_t total_, free_;
  bool caches_;
  std::uint64_t evicted_ = 0;
  std::vector<Block> next_, previous_;  // [total + 1] the free list; its last entry stands for both ends
  std::vector<std::uint32_t> users_;    // [total]
  std::vector<std::uint64_t> key_of_;   // [total]
  KeyIndex index_;
};

}  // namespace orrery::serving
