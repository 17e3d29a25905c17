#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <unordered_map>
#include <utility>

#include "orrery/trace/graph.hpp"

namespace orrery::trace {

/// Keeps equal graphs once and equal labels once, for all traces of a store.
class SharedParts {
 public:
  struct Parts {
    std::shared_ptr<const Graph> graph;
    std::shared_ptr<const Labels> labels;
  };

  /// Returns the kept parts that are equal to these, and adds them if need be. Cost O(nodes).
  Parts keep(Graph graph, Labels labels);
  /// Frees the parts that only this object holds. Cost O(kept parts).
  void free_unused();
  /// Returns how many different pairs of a graph and labels were kept.
  std::size_t num_structures() const { return structures_.size(); }
  std::size_t num_graphs() const { return graphs_.size(); }
  /// Returns the bytes of memory that graphs and labels hold.
  std::size_t bytes() const;

 private:
  template <class T>
  using ByHash = std::unordered_multimap<std::uint64_t, std::shared_ptr<const T>>;

  ByHash<Graph> graphs_;
  ByHash<Labels> labels_;
  std::set<std::pair<const Graph*, const Labels*>> structures_;
};

}  // namespace orrery::trace
