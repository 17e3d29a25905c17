#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/base/quantity.hpp"

namespace orrery::npu {

/// What an NPU and another one say to each other with one tag.
struct Conversation {
  NpuId other;
  std::uint32_t tag;
};

/// Matches two sides of a conversation, in order: whoever comes second finds the first. `Item` is what the side that
/// comes first leaves.
template <class Early, class Late>
class Matcher {
 public:
  using Key = Conversation;

  /// The item of the other side that waits longest, if any.
  bool take(Key key, Late& item) { return late_.take(pack(key), item); }
  bool take(Key key, Early& item) { return early_.take(pack(key), item); }
  void leave(Key key, const Early& item) { early_.leave(pack(key), item); }
  void leave(Key key, const Late& item) { late_.leave(pack(key), item); }

  /// Calls visit(key, item) for all that waits on the early side, in no particular order.
  template <class F>
  void for_each_early(F&& visit) const {
    for (const auto& [key, items] : early_.queues)
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
  /// No allocation once it has grown: the nodes of empty queues serve again.
  template <class Item>
  struct Waiting {
    using Queues = std::unordered_map<std::uint64_t, Queue<Item>>;
    Queues queues;
    std::vector<typename Queues::node_type> spare;

    void leave(std::uint64_t key, const Item& item) {
      if (!spare.empty() && !queues.contains(key)) {
        spare.back().key() = key;
        queues.insert(std::move(spare.back()));
        spare.pop_back();
      }
      queues[key].all.push_back(item);
    }
    bool take(std::uint64_t key, Item& item) {
      const auto found = queues.find(key);
      if (found == queues.end()) return false;
      auto& queue = found->second;
      item = queue.all[queue.first++];
      if (queue.first < queue.all.size()) return true;
      queue.all.clear();
      queue.first = 0;
      spare.push_back(queues.extract(found));
      return true;
    }
  };

  static std::uint64_t pack(Key key) { return static_cast<std::uint64_t>(key.other.value()) << 32 | key.tag; }

  Waiting<Early> early_;
  Waiting<Late> late_;
};

}  // namespace orrery::npu
