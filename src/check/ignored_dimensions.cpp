#include "orrery/communicator/communications.hpp"
#include "preflight.hpp"

namespace orrery::check {
namespace {

void note_ignored_dimensions(const Subject& subject, Findings findings) {
  for (const auto& npu : subject.run.npus)
    for (const auto& use : npu.program->uses)
      if (use.dimensions != trace::all_dimensions &&
          communicator::ignores_dimensions(subject.store.groups()[npu.trace->groups[use.group_slot].index()]))
        findings.notices.add("involved_dim", npu.id.value(),
                             "involved_dim is ignored in collectives of a process group");
}

}  // namespace

Check ignored_dimensions() {
  return {"ignored-dimensions", "warning: a collective of a process group names dimensions",
          Check::Local(note_ignored_dimensions)};
}

}  // namespace orrery::check
