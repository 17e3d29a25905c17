// sweep CONFIG.yaml: simulates a step with several bandwidths of the first dimension of its network, in one process.
//
//     mpirun -np 2 sweep CONFIG.yaml
//
// All ranks of MPI share each simulation. The results do not depend on their number.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "orrery/base/error.hpp"
#include "orrery/base/job_context.hpp"
#include "orrery/config/read.hpp"
#include "orrery/parallel/environment.hpp"
#include "orrery/run/simulate.hpp"

namespace {

void sweep(const char* file, orrery::parallel::Communicator& world) {
  if (world.is_root()) std::printf("%12s %12s %8s\n", "bandwidth", "step time", "MFU");
  for (const int gigabytes : {75, 150, 300, 600}) {
    // The path and the value are those of `orrery run --set` (orrery show keys).
    const std::string setting = "system.network.dimensions.0.bandwidth=" + std::to_string(gigabytes) + " GB/s";
    const auto configuration = orrery::config::read({.file = file, .overrides = {setting}});
    const auto results = orrery::run::simulate(configuration, world);
    if (!world.is_root() || !results.metrics) continue;
    const double milliseconds = static_cast<double>(results.metrics->step_time.ps()) * 1e-9;
    const double utilisation = results.metrics->training.model_flops_utilisation.value_or(0);
    std::printf("%7d GB/s %9.3f ms %6.1f %%\n", gigabytes, milliseconds, 100 * utilisation);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s CONFIG.yaml\n", argv[0]);
    return EXIT_FAILURE;
  }
  orrery::parallel::Environment environment;  // MPI, if mpirun or srun has started this program
  orrery::JobContext job;
  job.log.set_sink([](orrery::Log::Level, const std::string& text) { std::fprintf(stderr, "%s\n", text.c_str()); });
  const orrery::JobContext::Scope scope(job);
  try {
    sweep(argv[1], environment.world());
  } catch (const orrery::parallel::FailedElsewhere&) {  // another rank says why
    return EXIT_FAILURE;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    if (!environment.world().failure_is_agreed()) orrery::parallel::Environment::abort(EXIT_FAILURE);
    return EXIT_FAILURE;
  }
}
