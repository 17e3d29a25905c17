#include "block_pool.hpp"

#include "orrery/base/error.hpp"

namespace orrery::serving {

BlockPool::BlockPool(std::uint32_t total, bool caches)
    : total_(total), free_(total), caches_(caches), index_(caches ? total : 0) {
  if (!caches) return;
  next_.resize(total + 1);
  previous_.resize(total + 1);
  for (std::uint32_t i = 0; i <= total; ++i) {
    next_[i] = i == total ? 0 : i + 1;
    previous_[i] = i == 0 ? total : i - 1;
  }
  if (total == 0) next_[0] = previous_[0] = 0;
  users_.resize(total);
  key_of_.resize(total, no_key);
}

std::uint32_t BlockPool::idle(std::span<const Block> blocks) const {
  std::uint32_t count = 0;
  for (const Block block : blocks) count += users_[block] == 0 ? 1U : 0U;
  return count;
}

void BlockPool::take_found(std::span<const Block> blocks) {
  for (const Block block : blocks)
    if (users_[block]++ == 0) unlink(block);
}

void BlockPool::take_new(std::uint32_t count, std::vector<Block>& to) {
  ensure(count <= free_, "blocks are taken that are free");
  for (std::uint32_t i = 0; i < count; ++i) {
    const Block block = next_[total_];
    unlink(block);
    if (key_of_[block] != no_key) {
      index_.erase(key_of_[block]);
      key_of_[block] = no_key;
      ++evicted_;
    }
    users_[block] = 1;
    to.push_back(block);
  }
}

void BlockPool::enter(std::uint64_t key, Block block) {
  if (index_.insert(key, block)) key_of_[block] = key;
}

void BlockPool::release(std::span<const Block> blocks) {
  for (std::size_t i = blocks.size(); i-- > 0;)
    if (--users_[blocks[i]] == 0) append(blocks[i]);
}

void BlockPool::unlink(Block block) {
  next_[previous_[block]] = next_[block];
  previous_[next_[block]] = previous_[block];
  --free_;
}

void BlockPool::append(Block block) {
  const Block last = previous_[total_];
  next_[last] = block;
  previous_[block] = last;
  next_[block] = total_;
  previous_[total_] = block;
  ++free_;
}

}  // namespace orrery::serving
