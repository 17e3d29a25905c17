#include "orrery/check/excess.hpp"
#include "orrery/memory/lifetimes.hpp"
#include "preflight.hpp"

namespace orrery::check {
namespace {

void check_local_memory(const Subject& subject, Findings findings) {
  const Bytes size = subject.run.options.room();
  if (!subject.readable.system || size == Bytes(0)) return;
  const bool is_error = subject.configuration.run.memory == config::ExcessPolicy::error;
  for (const auto& npu : subject.run.npus) {
    const auto& tensors = npu.trace->graph->tensors;
    const auto& lifetimes = npu.program->lifetimes;
    if (tensors.sizes.empty())
      findings.notices.add("local-memory", npu.id.value(),
                           "the local memory has a size, but the trace lists no tensors: what is in it is not known");
    else if (lifetimes.initial > size && is_error)
      findings.faults.add(excess(npu, "the tensors that no node makes, which are there before the first one,",
                                 lifetimes.initial, size, memory::residents_of(tensors, lifetimes.is_initial),
                                 subject.store));
  }
}

}  // namespace

Check local_memory() {
  return {"local-memory", "the tensors that are there before the first node exceed the local memory",
          Check::Local(check_local_memory)};
}

}  // namespace orrery::check
