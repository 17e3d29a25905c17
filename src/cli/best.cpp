#include <fmt/format.h>

#include "command.hpp"
#include "config_options.hpp"
#include "logged_job.hpp"
#include "option_values.hpp"
#include "orrery/study/explore.hpp"
#include "study_options.hpp"

namespace orrery::cli {
namespace {

void best_as_job(const study::BestCommand& command, const CommandJob& job) {
  if (command.serve.empty()) honour_signals();
  study::best(command, job.command_line, job.world);
}

const Subcommand& best_subcommand() {
  static const Subcommand command{
      "best",
      "Find the fastest ways to train a model on a system, or to use it there.",
      "MODEL",
      "  orrery best llama3-8b --on dgx-h100-superpod --npus 64 --batch 128\n"
      "  mpirun -np 2 orrery best mixtral-8x7b --on dgx-h100-superpod --npus 256 --stack h100-megatron",
      {{"Question",
        {{"on", "SYSTEM", "a preset of configs/systems, or a file; needed"},
         {"npus", "N", "number of NPUs; needed"},
         {"batch", "B", "sequences of a step (default: one for each NPU)"},
         {"stack", "STACK", "a preset of configs/stacks, which knows the software"},
         {"cost", "PRICES", "a preset of configs/prices, or a file, for what systems and steps cost"},
         {"phase", "PHASE", "a step of inference instead of training: prefill or decode"},
         {"serve", "REQUESTS",
          "serve these requests instead of training: a file of them, or a .yaml with serving.requests"},
         {"slo", "BOUNDS", "what requests are to meet: ttft=500ms,tpot=50ms, perhaps share=0.9"},
         walltime_option()}},
       study_output("best.h5"),
       own_inputs()}};
  return command;
}

study::BestCommand make_best(const Arguments& arguments) {
  if (!arguments.positional())
    refuse_usage("orrery best: of which model? Give a preset, such as llama3-8b, or a file.");
  study::BestCommand command;
  command.model = *arguments.positional();
  command.system = needed(arguments, "best", "on", "dgx-h100-superpod");
  command.stack = arguments.text("stack").value_or("");
  command.cost = arguments.text("cost").value_or("");
  needed(arguments, "best", "npus", "64");
  command.npus = *arguments.count("npus");
  command.batch = arguments.count("batch");
  command.phase = arguments.text("phase").value_or("");
  if (!command.phase.empty() && command.phase != "prefill" && command.phase != "decode")
    refuse_usage(fmt::format("orrery best: --phase {}: expected prefill or decode", command.phase));
  command.serve = arguments.text("serve").value_or("");
  command.slo = arguments.text("slo").value_or("");
  if (command.serve.empty() != command.slo.empty())
    refuse_usage(command.slo.empty() ? "orrery best: --serve needs the bounds to meet: --slo ttft=500ms,tpot=50ms"
                                     : "orrery best: --slo is of requests: give them with --serve FILE");
  if (!command.serve.empty() && !command.phase.empty())
    refuse_usage("orrery best: --phase is of one step, and --serve of requests: give one of them");
  if (!command.serve.empty() && (command.batch || !command.cost.empty()))
    refuse_usage("orrery best: --batch and --cost are of training, and --serve is not");
  command.explore = explore_options(arguments, "best", "best.h5");
  command.explore.write_configurations = true;
  return command;
}

}  // namespace

extern const CommandEntry best_entry;
const CommandEntry best_entry{best_subcommand,
                              [](const Arguments& arguments) { return as_job(make_best(arguments), best_as_job); }};

}  // namespace orrery::cli
