#include "calls.hpp"

namespace orrery::config {

void add_calls(Keys<workload::Parallel>& keys) {
  keys.add(
      {.path = "workload.parallel.calls-of-layer",
       .help =
           "collectives in which ZeRO 3 gathers a layer, one after the other, and sums its gradients: the number of "
           "its weights, if the software gathers each one by itself",
       .example = "4",
       .otherwise = Default::built_in(),
       .see = "workloads.md, *Overlap*"},
      count(1), [](auto& parallel) -> auto& { return parallel.sharding.calls.of_layer; });
  keys.add(
      {.path = "workload.parallel.call-time",
       .help =
           "time for which the NPU waits for the host before each of these collectives; only compute models that use "
           "durations know it",
       .example = "290 us",
       .otherwise = Default::described("0 ns"),
       .see = "workloads.md, *Overlap*"},
      duration(), [](auto& parallel) -> auto& { return parallel.sharding.calls.each; });
  keys.add(
      {.path = "workload.parallel.call-time-per-member",
       .help = "likewise for each member of the collective, whose part is sliced or copied by a call of its own",
       .example = "11 us",
       .otherwise = Default::described("0 ns"),
       .see = "workloads.md, *Overlap*"},
      duration(), [](auto& parallel) -> auto& { return parallel.sharding.calls.of_member; });
}

}  // namespace orrery::config
