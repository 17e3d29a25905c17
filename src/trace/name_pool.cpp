#include "name_pool.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <limits>

#include "orrery/base/error.hpp"

namespace orrery::trace {
namespace {

constexpr std::size_t first_slots = 64;
constexpr std::size_t smallest_block = 4096;
constexpr std::size_t largest_block = std::size_t{1} << 20;
/// The slot of a text is fetched so many texts before the text is looked up.
constexpr std::size_t look_ahead = 16;

std::uint32_t hash_of(std::string_view text) {
  const std::size_t wide = std::hash<std::string_view>{}(text);
  return static_cast<std::uint32_t>(wide ^ (wide >> 32));
}

}  // namespace

NamePool::NamePool() : slots_(first_slots, Slot{0, 0}) {}

std::uint32_t NamePool::intern(std::string_view text) {
  if (at_ == most_expected) return look_up(text, hash_of(text));
  if (at_ == expected_.size()) expected_.push_back(look_up(text, hash_of(text)));
  std::uint32_t& expected = expected_[at_++];
  if ((*this)[expected] != text) expected = look_up(text, hash_of(text));
  return expected;
}

void NamePool::intern(std::span<const std::string_view> texts, std::span<std::uint32_t> numbers) {
  std::size_t done = 0;
  for (; done < texts.size() && at_ < most_expected; ++done) numbers[done] = intern(texts[done]);
  std::array<std::uint32_t, look_ahead> hashes;
  for (std::size_t ahead = done; done < texts.size(); ++done) {
    for (; ahead < std::min(done + look_ahead, texts.size()); ++ahead) {
      const std::uint32_t hash = hashes[ahead % look_ahead] = hash_of(texts[ahead]);
      __builtin_prefetch(&slots_[hash & (slots_.size() - 1)]);
    }
    numbers[done] = look_up(texts[done], hashes[done % look_ahead]);
  }
}

std::optional<std::uint32_t> NamePool::find(std::string_view text) const {
  const std::uint32_t entry = slots_[slot_of(text, hash_of(text))].entry;
  if (entry == 0) return {};
  return entry - 1;
}

std::size_t NamePool::slot_of(std::string_view text, std::uint32_t hash) const {
  std::size_t at = hash & (slots_.size() - 1);
  while (slots_[at].entry != 0 && (slots_[at].hash != hash || (*this)[slots_[at].entry - 1] != text))
    at = (at + 1) & (slots_.size() - 1);
  return at;
}

std::uint32_t NamePool::look_up(std::string_view text, std::uint32_t hash) {
  const std::size_t at = slot_of(text, hash);
  if (slots_[at].entry != 0) return slots_[at].entry - 1;
  ensure(texts_.size() < std::numeric_limits<std::uint32_t>::max() - 1, "more than 2^32 names");
  texts_.push_back(store(text));
  slots_[at] = {hash, static_cast<std::uint32_t>(texts_.size())};
  if (texts_.size() * 4 > slots_.size() * 3) grow();
  return static_cast<std::uint32_t>(texts_.size() - 1);
}

const char* NamePool::store(std::string_view text) {
  const auto size = static_cast<std::uint32_t>(text.size());
  ensure(size == text.size(), "a name of 4 GiB");
  const std::size_t needed = sizeof(size) + text.size();
  if (blocks_.empty() || blocks_.back().capacity() - blocks_.back().size() < needed) {
    blocks_.emplace_back().reserve(std::max(needed, std::clamp(total_, smallest_block, largest_block)));
    total_ += blocks_.back().capacity();
  }
  std::vector<char>& block = blocks_.back();
  const auto size_bytes = std::bit_cast<std::array<char, sizeof(size)>>(size);
  block.insert(block.end(), size_bytes.begin(), size_bytes.end());
  block.insert(block.end(), text.begin(), text.end());
  return block.data() + block.size() - text.size();
}

void NamePool::grow() {
  std::vector<Slot> larger(slots_.size() * 2, Slot{0, 0});
  for (const Slot& slot : slots_) {
    if (slot.entry == 0) continue;
    std::size_t at = slot.hash & (larger.size() - 1);
    while (larger[at].entry != 0) at = (at + 1) & (larger.size() - 1);
    larger[at] = slot;
  }
  slots_ = std::move(larger);
}

std::size_t NamePool::bytes() const {
  return total_ + texts_.capacity() * sizeof(const char*) + slots_.capacity() * sizeof(Slot);
}

}  // namespace orrery::trace
