#include "preflight.hpp"

namespace orrery::check {
namespace {

void note_roofline(const Subject& subject, Findings findings) {
  for (const auto& npu : subject.run.npus)
    if (npu.program->num_unknown_compute > 0)
      findings.notices.add("roofline", npu.id.value(),
                           "compute nodes have neither num_ops nor tensor_size: with the roofline on they take no time",
                           npu.program->num_unknown_compute);
}

}  // namespace

Check roofline() {
  return {"roofline", "warning: the roofline gives a compute node no time, as its size is not known",
          Check::Local(note_roofline)};
}

}  // namespace orrery::check
