#include <fmt/format.h>

#include "orrery/sim/commands.hpp"
#include "orrery/workload/transformer.hpp"

namespace orrery::sim {

void generate(const config::GenerateCommand& command) {
  const workload::Transformer model{command.tensor,        command.pipeline, command.data,    command.layers,
                                    command.micro_batches, command.hidden,   command.sequence};
  workload::write_traces(model, command.output, command.force);
  fmt::print(
      "{0} NPUs = {1} tensor x {2} pipeline x {3} data parallel, {4} layers, {5} micro-batches: {6}.<npu>.et and "
      "{6}.json\n",
      model.num_npus(), model.tensor, model.pipeline, model.data, model.layers, model.micro_batches,
      command.output.string());
}

}  // namespace orrery::sim
