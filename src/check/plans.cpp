#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <vector>

#include "orrery/base/text.hpp"
#include "orrery/collective/kind.hpp"
#include "orrery/gpu/plan_programs.hpp"
#include "preflight.hpp"

namespace orrery::check {
namespace {

/// A collective of a program as plans distinguish them.
using SizedCall = std::tuple<std::uint32_t, collective::Kind, std::uint64_t>;  // use, kind, bytes of the node

/// The sized calls of programs, found once for all NPUs that share a program.
class SizedCalls {
 public:
  const std::set<SizedCall>& of(const npu::Program& program) {
    const auto [found, added] = known_.try_emplace(&program);
    for (std::uint32_t i = 0; added && i < program.graph->num_nodes(); ++i)
      if (const auto& node = program.graph->nodes[i]; node.kind == trace::NodeKind::collective)
        found->second.insert({program.use_of_node(NodeId(i)), collective::kind_of(node.collective), node.size});
    return found->second;
  }

 private:
  std::map<const npu::Program*, std::set<SizedCall>> known_;
};

/// Returns the plans that collectives of the NPUs of this rank take.
std::set<const gpu::Plan*> plans_in_use(const Subject& subject) {
  std::set<const gpu::Plan*> used;
  SizedCalls calls;
  const std::uint32_t num_npus = subject.run.hosting.num_npus();
  for (const auto& npu : subject.run.npus)
    for (const auto& [use, kind, size] : calls.of(*npu.program)) {
      const auto members = subject.run.communicators[npu.groups[use].index()].num_members(num_npus);
      const Bytes whole = collective::whole_buffer(kind, members, Bytes(size));
      used.insert(gpu::find_plan(subject.configuration.gpu, kind, members, whole));
    }
  return used;
}

void check_plans(const Subject& subject, parallel::Communicator& world, Findings findings) {
  const gpu::Options& gpu = subject.configuration.gpu;
  if (!gpu.profile || gpu.plans.empty() || subject.run.options.replay_only) return;
  const auto here = plans_in_use(subject);
  std::vector<const gpu::Plan*> all;
  std::vector<std::int64_t> is_used;
  for (const auto& [kind, plans] : gpu.plans)
    for (const auto& plan : plans) {
      all.push_back(plan.get());
      is_used.push_back(here.contains(plan.get()) ? 1 : 0);
    }
  world.maximum(std::span(is_used));
  for (std::size_t i = 0; world.is_root() && i < all.size(); ++i)
    if (is_used[i] == 0)
      findings.notices.add(
          fmt::format("unused-plan {}", i), 0,
          fmt::format("the plan {} ({} among {}) carries out no collective of the workload: none has its kind, its "
                      "number of members and a size from {} to {} B. Algorithms carry them out "
                      "(system.collectives.{})",
                      all[i]->file, name(all[i]->kind), counted(all[i]->gpus.size(), "GPU"), all[i]->least.count(),
                      all[i]->most.count(), name(all[i]->kind)));
}

}  // namespace

Check plans() { return {"plans", "warning: a plan of GPUs carries out no collective", Check::Collective(check_plans)}; }

}  // namespace orrery::check
