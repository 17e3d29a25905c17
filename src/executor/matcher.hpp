#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/base/quantity.hpp"

namespace orrery::executor {

/// Matches two sides of a conversation, in order, for each (other NPU, tag): whoever comes second finds the first.
/// `Item` is what the side that comes first leaves.
template <class Early, class Late>
class Matcher {
 public:
  struct Key {
    NpuId other;
    std::uint32_t tag;
  };

  /// The item of the other side that waits longest, if any.
  bool take(Key key, Late& item) { return take_from(late_, key, item); }
  bool take(Key key, Early& item) { return take_from(early_, key, item); }
  void leave(Key key, const Early& item) { early_[pack(key)].all.push_back(item); }
  void leave(Key key, const Late& item) { late_[pack(key)].all.push_back(item); }

  /// Calls visit(key, item) for all that waits on the early side, in no particular order.
  template <class F>
  void for_each_early(F&& visit) const {
    for (const auto& [key, items] : early_)
      for (std::size_t i = items.first; i < items.all.size(); ++i)
        visit(Key{NpuId(static_cast<std::uint32_t>(key >> 32)), static_cast<std::uint32_t>(key)}, items.all[i]);
  }

 private:
  /// First in, first out; never empty.
  template <class Item>
  struct Queue {
    std::vector<Item> all;
    std::size_t first = 0;
  };
  template <class Item>
  using Waiting = std::unordered_map<std::uint64_t, Queue<Item>>;

  static std::uint64_t pack(Key key) { return static_cast<std::uint64_t>(key.other.value()) << 32 | key.tag; }

  template <class Item>
  static bool take_from(Waiting<Item>& waiting, Key key, Item& item) {
    const auto found = waiting.find(pack(key));
    if (found == waiting.end()) return false;
    auto& queue = found->second;
    item = queue.all[queue.first++];
    if (queue.first == queue.all.size()) waiting.erase(found);
    return true;
  }

  Waiting<Early> early_;
  Waiting<Late> late_;
};

}  // namespace orrery::executor
