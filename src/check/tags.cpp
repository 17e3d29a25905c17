#include <fmt/format.h>

#include <algorithm>

#include "preflight.hpp"

namespace orrery::check {
namespace {

using trace::NodeKind;

bool is_too_large(std::uint64_t tag) { return tag > 0xffffffffU; }

void check_tags(const Subject& subject, Findings findings) {
  for (const auto& npu : subject.run.npus) {
    const auto& tags = npu.trace->tags;
    if (std::ranges::none_of(tags, is_too_large)) continue;
    const auto& graph = *npu.trace->graph;
    for (std::uint32_t i = 0; i < graph.num_nodes(); ++i) {
      const auto& node = graph.nodes[i];
      if ((node.kind != NodeKind::send && node.kind != NodeKind::receive) || !is_too_large(tags[node.detail])) continue;
      findings.faults.add(Error(ErrorCode::bad_input, place_of(subject, npu, NodeId(i)),
                                fmt::format("comm_tag is {}", static_cast<std::int64_t>(tags[node.detail])),
                                "0 or more and below 2^32"));
    }
  }
}

}  // namespace

Check tags() {
  return {"tags", "the tag of a message does not fit 32 bits, which is what events carry", Check::Local(check_tags)};
}

}  // namespace orrery::check
