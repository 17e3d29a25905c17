#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "channel_key.hpp"
#include "orrery/base/archive.hpp"
#include "orrery/base/ids.hpp"

namespace orrery::npu {

/// Matches what two sides of a channel do, in order: the side that comes second finds what the first has left. `Posted`
/// is what this NPU leaves, `Arrived` what comes from the other one.
template <class Posted, class Arrived>
class Matcher {
 public:
  /// Takes out what the other side left first, if it has left anything. Returns whether it has.
  bool take(ChannelKey key, Arrived& item) { return arrived_.take(pack(key), item); }
  bool take(ChannelKey key, Posted& item) { return posted_.take(pack(key), item); }
  void leave(ChannelKey key, const Posted& item) { posted_.leave(pack(key), item); }
  void leave(ChannelKey key, const Arrived& item) { arrived_.leave(pack(key), item); }

  /// Calls visit(key, item) for all that this NPU has left, in no particular order.
  template <class Visit>
  void for_each_posted(Visit&& visit) const {
    posted_.for_each([&](std::uint64_t key, const Posted& item) { visit(unpack(key), item); });
  }

  void serialize(Archive& archive) { archive(posted_, arrived_); }

  /// Moves what has been left to other channels, and applies `change` to all that has arrived. `channel(key)` returns
  /// the channel that takes the place of one.
  template <class Channel, class Change>
  void take_over(Channel channel, Change change) {
    posted_.move_to(channel);
    arrived_.move_to(channel);
    arrived_.for_each_item(change);
  }

 private:
  /// Queues of items by channel, first in, first out. A channel without items takes no place. The table has one slot of
  /// 16 bytes for each channel, and half of its slots are free on average; the items of all channels are in one vector.
  /// Nothing allocates memory once it has grown.
  template <class Item>
  class Waiting {
   public:
    void leave(std::uint64_t key, const Item& item) {
      if (4 * (num_channels_ + 1) > 3 * slots_.size()) grow();
      const std::uint32_t entry = new_entry(item);
      Slot& slot = slots_[slot_of(key)];
      if (slot.first == none) {
        slot = {key, entry, entry};
        ++num_channels_;
      } else {
        entries_[std::exchange(slot.last, entry)].next = entry;
      }
    }

    bool take(std::uint64_t key, Item& item) {
      if (num_channels_ == 0) return false;
      const std::size_t at = slot_of(key);
      Slot& slot = slots_[at];
      if (slot.first == none) return false;
      const std::uint32_t entry = slot.first;
      item = entries_[entry].item;
      slot.first = std::exchange(entries_[entry].next, std::exchange(free_, entry));
      if (slot.first == none) free_slot(at);
      return true;
    }

    template <class Visit>
    void for_each(Visit visit) const {
      for (const Slot& slot : slots_)
        for (std::uint32_t at = slot.first; at != none; at = entries_[at].next) visit(slot.key, entries_[at].item);
    }
    template <class Change>
    void for_each_item(Change change) {
      for (const Slot& slot : slots_)
        for (std::uint32_t at = slot.first; at != none; at = entries_[at].next) change(entries_[at].item);
    }

    template <class Channel>
    void move_to(Channel channel) {
      auto slots = std::exchange(slots_, std::vector<Slot>(slots_.size()));
      for (const Slot& slot : slots)
        if (slot.first != none) {
          const std::uint64_t key = pack(channel(unpack(slot.key)));
          slots_[slot_of(key)] = {key, slot.first, slot.last};
        }
    }

    void serialize(Archive& archive) {
      std::vector<std::pair<std::uint64_t, std::vector<Item>>> all;
      for (const Slot& slot : slots_) {
        if (slot.first == none) continue;
        auto& items = all.emplace_back(slot.key, std::vector<Item>()).second;
        for (std::uint32_t at = slot.first; at != none; at = entries_[at].next) items.push_back(entries_[at].item);
      }
      std::ranges::sort(all, {}, [](const auto& channel) { return channel.first; });
      archive(all);
      if (!archive.reads()) return;
      *this = Waiting();
      for (const auto& [key, items] : all)
        for (const Item& item : items) leave(key, item);
    }

   private:
    static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
    struct Slot {
      std::uint64_t key = 0;
      std::uint32_t first = none, last = none;  ///< entries of the channel; none: the slot is free
    };
    struct Entry {
      Item item;
      std::uint32_t next;  ///< entry of the channel that follows, or the next one that is free
    };

    /// Returns where the search for a channel begins. Four tags that follow one another share a line of the cache.
    std::size_t home_of(std::uint64_t key) const {
      const int bits = std::countr_zero(slots_.size()) - 2;
      return static_cast<std::size_t>(key / 4 * 0x9e3779b97f4a7c15U >> (64 - bits) << 2U | (key & 3U));
    }
    /// Returns the slot of a channel: a free one if it has no items.
    std::size_t slot_of(std::uint64_t key) const {
      std::size_t at = home_of(key);
      while (slots_[at].first != none && slots_[at].key != key) at = (at + 1) & (slots_.size() - 1);
      return at;
    }

    /// Frees a slot, and moves those behind it forward that would not be found otherwise.
    void free_slot(std::size_t freed) {
      const std::size_t mask = slots_.size() - 1;
      for (std::size_t at = (freed + 1) & mask; slots_[at].first != none; at = (at + 1) & mask) {
        const std::size_t home = home_of(slots_[at].key);
        if (((at - home) & mask) < ((at - freed) & mask)) continue;
        slots_[freed] = slots_[at];
        freed = at;
      }
      slots_[freed] = {};
      --num_channels_;
    }

    std::uint32_t new_entry(const Item& item) {
      if (free_ == none) {
        entries_.push_back({item, none});
        return static_cast<std::uint32_t>(entries_.size() - 1);
      }
      const std::uint32_t entry = free_;
      free_ = std::exchange(entries_[entry], Entry{item, none}).next;
      return entry;
    }

    void grow() {
      const auto slots = std::exchange(slots_, std::vector<Slot>(std::max<std::size_t>(8, 2 * slots_.size())));
      for (const Slot& slot : slots)
        if (slot.first != none) slots_[slot_of(slot.key)] = slot;
    }

    std::vector<Slot> slots_;  ///< open addressing; the number of slots is a power of two
    std::vector<Entry> entries_;
    std::uint32_t free_ = none;
    std::size_t num_channels_ = 0;
  };

  static std::uint64_t pack(ChannelKey key) { return std::uint64_t{key.other.value()} << 32 | key.tag; }
  static ChannelKey unpack(std::uint64_t key) {
    return {NpuId(static_cast<std::uint32_t>(key >> 32)), static_cast<std::uint32_t>(key)};
  }

  Waiting<Posted> posted_;
  Waiting<Arrived> arrived_;
};

}  // namespace orrery::npu
