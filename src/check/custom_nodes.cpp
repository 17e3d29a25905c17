#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "preflight.hpp"

namespace orrery::check {
namespace {

/// Returns whether the trace has the node with this id as a collective that runs the file of this number.
bool has_node(const trace::NpuTrace& trace, std::uint64_t id, std::uint32_t file) {
  const auto& ids = trace.labels->ids;
  const NodeId at(static_cast<std::uint32_t>(std::ranges::lower_bound(ids, id - trace.first_id) - ids.begin()));
  return at.index() < ids.size() && trace.id_of(at) == id && trace.graph->custom_of(at) == file;
}

void note_custom_nodes(const Subject& subject, parallel::Communicator& world, Findings findings) {
  const auto& custom_nodes = subject.configuration.workload.custom_nodes;
  if (custom_nodes.empty()) return;
  std::vector<std::int64_t> found(custom_nodes.size());
  for (const auto& npu : subject.run.npus)
    for (std::size_t i = 0; const auto& [id, file] : custom_nodes) found[i++] += has_node(*npu.trace, id, file);
  world.sum(std::span(found));
  std::vector<std::uint64_t> missing;
  for (std::size_t i = 0; const auto& [id, file] : custom_nodes)
    if (found[i++] == 0) missing.push_back(id);
  if (!world.is_root() || missing.empty()) return;
  findings.notices.add("custom-nodes", fmt::format("custom collectives of nodes: no trace has a collective with id {}",
                                                   fmt::join(missing, ", ")));
}

}  // namespace

Check custom_nodes() {
  return {"custom-nodes", "warning: the configuration names a collective that no trace has",
          Check::Collective(note_custom_nodes)};
}

}  // namespace orrery::check
