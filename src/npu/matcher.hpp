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
  /// Queues of items by channel, first in, first out. A channel without items takes no place. The items of all channels
  /// are in one vector, and a table of which half is free at least says where those of a channel begin: 16 bytes an
  /// item and 8 to 16 bytes a channel beside the items. Nothing allocates memory once it has grown.
  template <class Item>
  class Waiting {
   public:
    void leave(std::uint64_t key, const Item& item) {
      if (2 * (num_channels_ + 1) > firsts_.size()) grow();
      const std::uint32_t entry = new_entry(key, item);
      const std::size_t slot = slot_of(key);
      if (const std::uint32_t first = firsts_[slot]; first != none) {
        entries_[std::exchange(entries_[first].last, entry)].next = entry;
        return;
      }
      set_first(slot, entry);
      ++num_channels_;
    }

    bool take(std::uint64_t key, Item& item) {
      if (num_channels_ == 0) return false;
      const std::size_t slot = slot_of(key);
      const std::uint32_t taken = firsts_[slot];
      if (taken == none) return false;
      Entry& entry = entries_[taken];
      item = entry.item;
      if (entry.next == none) {
        free_slot(slot);
      } else {
        firsts_[slot] = entry.next;
        entries_[entry.next].last = entry.last;
      }
      entry.next = std::exchange(free_, taken);
      return true;
    }

    template <class Visit>
    void for_each(Visit visit) const {
      for (const std::uint32_t first : firsts_)
        for (std::uint32_t at = first; at != none; at = entries_[at].next) visit(entries_[at].key, entries_[at].item);
    }
    template <class Change>
    void for_each_item(Change change) {
      for (const std::uint32_t first : firsts_)
        for (std::uint32_t at = first; at != none; at = entries_[at].next) change(entries_[at].item);
    }

    template <class Channel>
    void move_to(Channel channel) {
      const auto firsts = std::exchange(firsts_, std::vector<std::uint32_t>(firsts_.size(), none));
      num_displaced_ = 0;
      for (const std::uint32_t first : firsts) {
        if (first == none) continue;
        const std::uint64_t key = pack(channel(unpack(entries_[first].key)));
        for (std::uint32_t at = first; at != none; at = entries_[at].next) entries_[at].key = key;
        set_first(slot_of(key), first);
      }
    }

    void serialize(Archive& archive) {
      std::vector<std::pair<std::uint64_t, std::vector<Item>>> all;
      for (const std::uint32_t first : firsts_) {
        if (first == none) continue;
        auto& items = all.emplace_back(entries_[first].key, std::vector<Item>()).second;
        for (std::uint32_t at = first; at != none; at = entries_[at].next) items.push_back(entries_[at].item);
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
    struct Entry {
      std::uint64_t key;
      std::uint32_t next;  ///< entry of the channel that follows, or the next one that is free
      std::uint32_t last;  ///< last entry of the channel, in its first one
      Item item;
    };

    /// Returns where the search for a channel begins. 16 tags that follow one another share a line of the cache.
    std::size_t home_of(std::uint64_t key) const {
      const int bits = std::countr_zero(firsts_.size()) - 4;
      return static_cast<std::size_t>(key / 16 * 0x9e3779b97f4a7c15U >> (64 - bits) << 4U | (key & 15U));
    }
    /// Returns the slot of a channel: a free one if it has no items.
    std::size_t slot_of(std::uint64_t key) const {
      std::size_t at = home_of(key);
      while (firsts_[at] != none && entries_[firsts_[at]].key != key) at = (at + 1) & (firsts_.size() - 1);
      return at;
    }

    void set_first(std::size_t slot, std::uint32_t entry) {
      firsts_[slot] = entry;
      if (home_of(entries_[entry].key) != slot) ++num_displaced_;
    }

    /// Frees a slot, and moves those behind it forward that would not be found otherwise.
    void free_slot(std::size_t freed) {
      --num_channels_;
      if (num_displaced_ == 0) {
        firsts_[freed] = none;
        return;
      }
      const std::size_t mask = firsts_.size() - 1;
      if (home_of(entries_[firsts_[freed]].key) != freed) --num_displaced_;
      for (std::size_t at = (freed + 1) & mask; firsts_[at] != none; at = (at + 1) & mask) {
        const std::size_t home = home_of(entries_[firsts_[at]].key);
        if (((at - home) & mask) < ((at - freed) & mask)) continue;
        firsts_[freed] = firsts_[at];
        if (home == freed) --num_displaced_;
        freed = at;
      }
      firsts_[freed] = none;
    }

    std::uint32_t new_entry(std::uint64_t key, const Item& item) {
      if (free_ == none) {
        const auto entry = static_cast<std::uint32_t>(entries_.size());
        entries_.push_back({key, none, entry, item});
        return entry;
      }
      const std::uint32_t entry = free_;
      free_ = std::exchange(entries_[entry], Entry{key, none, entry, item}).next;
      return entry;
    }

    void grow() {
      const std::size_t size = std::max<std::size_t>(32, 2 * firsts_.size());
      const auto firsts = std::exchange(firsts_, std::vector<std::uint32_t>(size, none));
      num_displaced_ = 0;
      for (const std::uint32_t first : firsts)
        if (first != none) set_first(slot_of(entries_[first].key), first);
    }

    std::vector<std::uint32_t> firsts_;  ///< first entries of channels: open addressing, a power of two of slots
    std::vector<Entry> entries_;
    std::uint32_t free_ = none;
    std::size_t num_channels_ = 0;
    std::size_t num_displaced_ = 0;  ///< channels that are not where the search for them begins
  };

  static std::uint64_t pack(ChannelKey key) { return std::uint64_t{key.other.value()} << 32 | key.tag; }
  static ChannelKey unpack(std::uint64_t key) {
    return {NpuId(static_cast<std::uint32_t>(key >> 32)), static_cast<std::uint32_t>(key)};
  }

  Waiting<Posted> posted_;
  Waiting<Arrived> arrived_;
};

}  // namespace orrery::npu
