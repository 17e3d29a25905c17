#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "library_notices.hpp"
#include "orrery/collective/kind.hpp"
#include "preflight.hpp"
#include "rings.hpp"

namespace orrery::check {
namespace {

/// The first node of each use and kind of collective of a program.
struct FirstCall {
  std::uint32_t use = 0;
  trace::CollectiveKind kind{};
  NodeId node;
};

/// The first calls of programs, found once for all NPUs that share a program.
class FirstCalls {
 public:
  /// Returns the calls in ascending order of use, then kind. O(nodes) for a new program.
  const std::vector<FirstCall>& of(const npu::Program& program) {
    const auto [found, added] = known_.try_emplace(&program);
    if (!added) return found->second;
    std::map<std::pair<std::uint32_t, trace::CollectiveKind>, NodeId> first;
    for (std::uint32_t i = 0; i < program.graph->num_nodes(); ++i)
      if (const auto& node = program.graph->nodes[i]; node.kind == trace::NodeKind::collective)
        first.try_emplace({program.use_of_node(NodeId(i)), node.collective}, NodeId(i));
    for (const auto& [call, node] : first) found->second.push_back({call.first, call.second, node});
    return found->second;
  }

 private:
  std::map<const npu::Program*, std::vector<FirstCall>> known_;
};

/// Returns the first member of a group. It is checked for all members, and is the same for any number of ranks.
bool is_first_member(NpuId npu, const trace::Group& group) {
  return npu == (group.members.empty() ? NpuId(0) : group.members.front());
}

void check_algorithms(const Subject& subject, Findings findings) {
  if (!subject.readable.system || subject.run.options.replay_only) return;
  collective::Engine& engine = subject.run.engine;
  FirstCalls first_calls;
  UnaskedRings rings(subject, findings.notices);
  LibraryNotices library(subject, findings.notices);
  std::set<std::pair<GroupId, trace::CollectiveKind>> done;
  for (const auto& npu : subject.run.npus) {
    const auto represents = [&](GroupId group) {
      return is_first_member(npu.id, *subject.run.communicators[group.index()].group);
    };
    if (std::ranges::none_of(npu.groups, represents)) continue;
    std::shared_ptr<const collective::GroupLayout> layout;
    GroupId of_layout;
    for (const auto& [use, kind, node] : first_calls.of(*npu.program)) {
      const auto group = npu.groups[use];
      if (!represents(group) || !done.insert({group, kind}).second) continue;
      const auto& spec = subject.run.communicators[group.index()];
      if (!layout || of_layout != group)
        layout = collective::layout_of(engine, *spec.group, spec.dimensions, spec.custom);
      of_layout = group;
      Faults found;
      if (found.attempt([&] { engine.validate(*layout, collective::kind_of(kind)); })) {
        rings.look_at(spec, *layout, collective::kind_of(kind), npu.id);
        library.look_at(spec, *layout, collective::kind_of(kind), Bytes(npu.program->graph->nodes[node.index()].size),
                        npu.id);
      }
      found.for_each([&](const Error& fault) {
        findings.faults.add(Error(fault.code(), place_of(subject, npu, node),
                                  fmt::format("{}: {}", trace::describe(*spec.group), fault.text())));
      });
    }
  }
}

}  // namespace

Check algorithms() {
  return {"algorithms",
          "no algorithm of the configuration can carry a collective; warning: one goes round a ring unasked, or the "
          "time that a library gives for it is extrapolated",
          Check::Local(check_algorithms)};
}

}  // namespace orrery::check
