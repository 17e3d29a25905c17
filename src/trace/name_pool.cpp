#include "name_pool.hpp"

#include <algorithm>
#include <functional>
#include <limits>

#include "orrery/base/error.hpp"

namespace orrery::trace {
namespace {

constexpr std::size_t first_slots = 64;
constexpr std::size_t smallest_block = 4096;
constexpr std::size_t largest_block = std::size_t{1} << 20;

}  // namespace

NamePool::NamePool() : slots_(first_slots, Slot{0, 0}) {}

std::uint32_t NamePool::intern(std::string_view text) {
  if (at_ == most_expected) return look_up(text);
  if (at_ == expected_.size()) expected_.push_back(look_up(text));
  std::uint32_t& expected = expected_[at_++];
  if (texts_[expected] != text) expected = look_up(text);
  return expected;
}

std::uint32_t NamePool::look_up(std::string_view text) {
  const std::size_t wide = std::hash<std::string_view>{}(text);
  const auto hash = static_cast<std::uint32_t>(wide ^ (wide >> 32));
  std::size_t at = hash & (slots_.size() - 1);
  for (; slots_[at].entry != 0; at = (at + 1) & (slots_.size() - 1))
    if (slots_[at].hash == hash && texts_[slots_[at].entry - 1] == text) return slots_[at].entry - 1;
  ensure(texts_.size() < std::numeric_limits<std::uint32_t>::max() - 1, "more than 2^32 names");
  texts_.push_back(store(text));
  slots_[at] = {hash, static_cast<std::uint32_t>(texts_.size())};
  if (texts_.size() * 4 > slots_.size() * 3) grow();
  return static_cast<std::uint32_t>(texts_.size() - 1);
}

std::string_view NamePool::store(std::string_view text) {
  if (text.empty()) return {};
  if (capacity_ - used_ < text.size()) {
    capacity_ = std::max(text.size(), std::clamp(total_, smallest_block, largest_block));
    blocks_.push_back(std::make_unique_for_overwrite<char[]>(capacity_));
    total_ += capacity_;
    used_ = 0;
  }
  char* to = blocks_.back().get() + used_;
  std::ranges::copy(text, to);
  used_ += text.size();
  return {to, text.size()};
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
  return total_ + texts_.capacity() * sizeof(std::string_view) + slots_.capacity() * sizeof(Slot);
}

}  // namespace orrery::trace
