#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "orrery/workload/generator.hpp"

namespace orrery::workload {

/// The traces of all NPUs, kept in a store.
class Assembled {
 public:
  explicit Assembled(const Description& description)
      : num_npus_(description.parallel.num_npus()), store_({.num_npus = num_npus_}, {}) {
    std::vector<NpuId> npus;
    for (std::uint32_t i = 0; i < num_npus_; ++i) npus.emplace_back(i);
    traces_ = assemble(description, npus, store_);
  }

  const trace::Store& store() const { return store_; }
  const std::vector<trace::NpuTrace>& traces() const { return traces_; }
  std::string name(const trace::NpuTrace& trace, std::uint32_t i) const {
    return std::string(store_.name_of(trace, NodeId(i)));
  }
  const trace::Group& group(const trace::NpuTrace& trace, const trace::Node& node) const {
    return store_.groups()[trace.groups[node.slot].index()];
  }
  std::uint32_t num_members(const trace::Group& group) const {
    return group.members.empty() ? num_npus_ : static_cast<std::uint32_t>(group.members.size());
  }
  template <class F>
  static void for_each(const trace::NpuTrace& trace, trace::NodeKind kind, F&& visit) {
    for (std::uint32_t i = 0; i < trace.graph->num_nodes(); ++i)
      if (trace.graph->nodes[i].kind == kind) visit(i, trace.graph->nodes[i]);
  }

 private:
  std::uint32_t num_npus_;
  trace::Store store_;
  std::vector<trace::NpuTrace> traces_;
};

}  // namespace orrery::workload
