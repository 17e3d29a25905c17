#include "orrery/sim/simulation.hpp"

#include <chrono>

#include <fmt/format.h>

#include "capacity.hpp"
#include "progress.hpp"
#include "ranges.hpp"

namespace orrery::sim {

Simulation::Simulation(Preparation& preparation, const config::RunOptions& options,
                       std::function<bool()> stop_requested, parallel::Communicator& world)
    : preparation_(preparation),
      world_(world),
      executor_(preparation.setting()),
      excess_is_error_(options.memory == config::ExcessPolicy::error) {
  pdes::Options kernel_options = executor_.kernel_options(world);
  kernel_options.watchdog_seconds = options.watchdog_s;
  kernel_options.stop_requested = std::move(stop_requested);
  if (world.is_root() && options.progress != config::Progress::none && !options.quiet) {
    const auto num_nodes = preparation.num_nodes() * preparation.setting().options.iterations;
    auto line = std::make_shared<ProgressLine>(options, executor_, num_nodes);
    kernel_options.progress = [line](std::uint64_t events, Time now) { line->update(events, now); };
  }
  kernel_ = std::make_unique<pdes::Kernel>(world, executor_, std::move(kernel_options));
}

Simulation::~Simulation() = default;

void Simulation::run() {
  world_.barrier();
  const auto start = std::chrono::steady_clock::now();
  executor_.start(*kernel_, world_.rank());
  kernel_->run();
  wall_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  require_no_overrun(executor_, preparation_.setting(), preparation_.store(), world_);
  if (excess_is_error_) require_capacity(executor_, preparation_.setting(), preparation_.store(), world_);
  auto unfinished = static_cast<std::int64_t>(executor_.num_unfinished());
  world_.sum(std::span(&unfinished, 1));
  if (unfinished == 0) return;
  if (kernel_->stopped_at()) {
    stopped_at_ = kernel_->stopped_at();
    executor_.stop(*stopped_at_);
    return;
  }
  const std::string report = report_stuck(preparation_, executor_, world_);
  world_.agree([&] {
    if (!world_.is_root()) return;
    throw Error(ErrorCode::stuck,
                fmt::format("the simulated system is stuck: {} of {} {} not finish\n{}", unfinished,
                            preparation_.num_npus(), preparation_.num_npus() == 1 ? "NPU does" : "NPUs do", report));
  });
}

}  // namespace orrery::sim
