#pragma once

#include <algorithm>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "orrery/base/archive.hpp"
#include "orrery/base/ids.hpp"
#include "orrery/npu/options.hpp"
#include "orrery/trace/graph.hpp"
#include "turns.hpp"

namespace orrery::npu {

/// An item of a ReadyQueue: a node, and what comes before its id in the order of nodes.
struct RankedNode {
  std::int64_t rank = 0;
  std::uint32_t node = 0;

  friend auto operator<=>(const RankedNode&, const RankedNode&) = default;
};

/// The nodes that are ready for one resource, in ascending order. An item is a NodeId value or a RankedNode. One that
/// is alone takes no memory beside this object.
template <class Item>
class ReadyQueue {
 public:
  bool empty() const { return least_ == none(); }
  std::size_t size() const { return empty() ? 0 : 1 + (others_ ? others_->size() : 0); }
  /// Calls visit(item) for each item, in no particular order.
  template <class Visit>
  void for_each(Visit&& visit) const {
    if (empty()) return;
    visit(least_);
    if (others_) std::ranges::for_each(*others_, visit);
  }

  void add(Item item) {
    if (empty()) {
      least_ = item;
      return;
    }
    if (item < least_) std::swap(item, least_);
    if (!others_) others_ = std::make_unique<std::vector<Item>>();
    others_->push_back(item);
    std::ranges::push_heap(*others_, std::greater<>());
  }
  /// Returns the least item. There must be one.
  const Item& least() const { return least_; }
  /// Takes the least item out and returns it. There must be one.
  Item take() {
    if (!others_ || others_->empty()) return std::exchange(least_, none());
    std::ranges::pop_heap(*others_, std::greater<>());
    const Item first = std::exchange(least_, others_->back());
    others_->pop_back();
    return first;
  }
  void serialize(Archive& archive) { archive(least_, others_); }

 private:
  static constexpr Item none() {
    if constexpr (std::is_same_v<Item, RankedNode>)
      return {std::numeric_limits<std::int64_t>::max(), ~std::uint32_t{0}};
    else
      return ~Item{0};
  }

  std::unique_ptr<std::vector<Item>> others_;  // a heap with the least one first; null until there has been one
  Item least_ = none();                        // none(): there is no item
};

/// The resources of an NPU: how many places each has free, and which nodes are ready for it.
class Resources {
 public:
  Resources(const Options& options, ResourceMap map) : map_(map), all_(map.count()) {
    all_[ResourceMap::compute].free = options.compute_streams;
    all_[ResourceMap::communication].free = options.comm_streams;
    all_[ResourceMap::unlimited].free = ~0U;
    order_ = options.comm_order;
  }

  std::size_t count() const { return all_.size(); }

  /// Returns the resource that a node needs.
  std::uint16_t of(NodeId id) const { return map_.of(id); }

  /// Adds a node that has become ready at `now`. O(log nodes that are ready).
  void add(NodeId id, const trace::Graph& graph, Time now) {
    const auto resource = of(id);
    ready_ |= bit_of(resource);
    if (resource != ResourceMap::communication || order_ == CommOrder::lowest_id)
      return all_[resource].ready.add(id.value());
    std::int64_t rank = now.ps();
    if (order_ == CommOrder::lifo) rank = -rank;
    if (order_ == CommOrder::priority) rank = -std::int64_t{graph.priority_of(id)};
    ranked_.add({rank, id.value()});
  }

  /// Returns the first resource from `resource` on that may have nodes that are ready; count() if there is none.
  std::size_t next_ready(std::size_t resource) const {
    if (resource >= num_bits) return resource;
    const std::uint64_t left = ready_ >> resource;
    return left == 0 ? count() : resource + static_cast<std::size_t>(std::countr_zero(left));
  }
  /// Returns whether the resource has a free place and a node that is ready.
  bool can_take(std::size_t resource) const {
    const Resource& its = all_[resource];
    return its.free > 0 && (!its.ready.empty() || (resource == ResourceMap::communication && !ranked_.empty()));
  }
  /// Returns the node that comes next. There must be one.
  NodeId next(std::size_t resource) const {
    const auto& ready = all_[resource].ready;
    return NodeId(ready.empty() ? ranked_.least().node : ready.least());
  }
  /// Returns the node that comes next, which is no longer ready. There must be one.
  NodeId take(std::size_t resource) {
    auto& ready = all_[resource].ready;
    const NodeId id(ready.empty() ? ranked_.take().node : ready.take());
    if (resource < num_bits - 1 && num_ready(resource) == 0) ready_ &= ~bit_of(resource);
    return id;
  }

  void occupy(std::uint16_t resource) {
    if (resource != ResourceMap::unlimited) --all_[resource].free;
  }
  void release(std::uint16_t resource) {
    if (resource != ResourceMap::unlimited) ++all_[resource].free;
  }

  /// Returns the number of nodes that are ready for a resource.
  std::size_t num_ready(std::size_t resource) const {
    return all_[resource].ready.size() + (resource == ResourceMap::communication ? ranked_.size() : 0);
  }
  /// Calls visit(NodeId) for each node that is ready for a resource, in no particular order.
  template <class Visit>
  void for_each_ready(std::size_t resource, Visit&& visit) const {
    all_[resource].ready.for_each([&](std::uint32_t id) { visit(NodeId(id)); });
    if (resource == ResourceMap::communication)
      ranked_.for_each([&](const RankedNode& item) { visit(NodeId(item.node)); });
  }
  void serialize(Archive& archive) { archive(all_, ready_, ranked_); }

 private:
  struct Resource {
    [[no_unique_address]] ReadyQueue<std::uint32_t> ready;
    std::uint32_t free = 1;  // places

    void serialize(Archive& archive) { archive(ready, free); }
  };

  static constexpr std::size_t num_bits = 64;
  static std::uint64_t bit_of(std::size_t resource) { return std::uint64_t{1} << std::min(resource, num_bits - 1); }

  ResourceMap map_;
  std::vector<Resource> all_;
  std::uint64_t ready_ = 0;  // a bit for each resource that may have ready nodes; the last one for all from there on
  ReadyQueue<RankedNode> ranked_;  // of communication, unless its order is that of ids
  CommOrder order_ = CommOrder::lowest_id;
};

}  // namespace orrery::npu
