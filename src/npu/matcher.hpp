#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
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
    for (const auto& [key, items] : posted_.queues)
      for (std::size_t i = items.first; i < items.all.size(); ++i) visit(unpack(key), items.all[i]);
  }

  void serialize(Archive& archive) { archive(posted_, arrived_); }

  /// Moves what has been left to other channels, and applies `change` to all that has arrived. `channel(key)` returns
  /// the channel that takes the place of one.
  template <class Channel, class Change>
  void take_over(Channel channel, Change change) {
    posted_.move_to(channel);
    arrived_.move_to(channel);
    for (auto& [key, items] : arrived_.queues)
      for (Arrived& item : items.all) change(item);
  }

 private:
  /// First in, first out; never empty.
  template <class Item>
  struct Queue {
    std::vector<Item> all;
    std::size_t first = 0;
  };
  /// Nothing allocates memory once it has grown, since the nodes of empty queues serve again.
  template <class Item>
  struct Waiting {
    using Queues = std::unordered_map<std::uint64_t, Queue<Item>>;
    Queues queues;
    std::vector<typename Queues::node_type> spare;

    void serialize(Archive& archive) {
      std::vector<std::pair<std::uint64_t, std::vector<Item>>> all;
      for (const auto& [key, queue] : queues)
        all.emplace_back(
            key, std::vector<Item>(queue.all.begin() + static_cast<std::ptrdiff_t>(queue.first), queue.all.end()));
      archive(all);
      if (!archive.reads()) return;
      queues.clear();
      for (auto& [key, items] : all) queues[key].all = std::move(items);
    }
    template <class Channel>
    void move_to(Channel channel) {
      Queues moved;
      for (auto& [key, queue] : queues) moved.emplace(pack(channel(unpack(key))), std::move(queue));
      queues = std::move(moved);
    }
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

  static std::uint64_t pack(ChannelKey key) { return std::uint64_t{key.other.value()} << 32 | key.tag; }
  static ChannelKey unpack(std::uint64_t key) {
    return {NpuId(static_cast<std::uint32_t>(key >> 32)), static_cast<std::uint32_t>(key)};
  }

  Waiting<Posted> posted_;
  Waiting<Arrived> arrived_;
};

}  // namespace orrery::npu
