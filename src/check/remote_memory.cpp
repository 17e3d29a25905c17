#include <fmt/format.h>

#include "preflight.hpp"

namespace orrery::check {
namespace {

void check_remote_memory(const Subject& subject, Findings findings) {
  const auto kind = subject.run.memory.kind();
  if (!subject.readable.system || subject.run.options.replay_only ||
      kind == memory::RemoteMemoryKind::hierarchical_pool)
    return;
  const bool has_none = kind == memory::RemoteMemoryKind::none;
  NodesWhere nodes([&](const trace::Node& node) { return node.is_access() && (has_none || node.is_of_group()); });
  for (const auto& npu : subject.run.npus)
    for (const NodeId id : nodes.of(*npu.trace->graph)) {
      const Place place = place_of(subject, npu, id);
      const auto& node = npu.trace->graph->nodes[id.index()];
      if (has_none)
        findings.faults.add(
            Error(ErrorCode::bad_input, place, "the node accesses remote memory, but the system has none",
                  "a remote memory in the configuration", "Give the remote memory a kind, a bandwidth and a latency."));
      else
        findings.faults.add(Error(ErrorCode::bad_input, place,
                                  fmt::format("the node is a {}, but the remote memory has no switches that do this",
                                              trace::name(node.kind, node.collective)),
                                  "a remote memory of the kind hierarchical-pool, or nodes without comm_type"));
    }
}

}  // namespace

Check remote_memory() {
  return {"remote-memory", "a node accesses remote memory in a way that the system does not offer",
          Check::Local(check_remote_memory)};
}

}  // namespace orrery::check
