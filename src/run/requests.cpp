#include "orrery/run/requests.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "orrery/base/error.hpp"
#include "orrery/base/text.hpp"
#include "orrery/model/rank_model.hpp"
#include "orrery/parallel/raise_faults.hpp"
#include "orrery/run/preparation.hpp"

namespace orrery::run {
namespace {

/// The network of the system, with the jobs beside the requests.
class SharedNetwork {
 public:
  /// Prepares what the ranks simulate of it. Collective. Throws as run::prepare does.
  SharedNetwork(const config::Configuration& configuration, const serving::Scenario& scenario,
                parallel::Communicator& world)
      : configuration_(configuration) {
    Faults faults;
    const auto fixed = hosts_of(scenario, world.size());
    preparation_ = std::make_unique<Preparation>(configuration, world, faults, false, fixed);
    parallel::raise_faults(faults, world);
    if (configuration.execution.goes_over_links()) rank_.emplace(preparation_->run_context());
  }

  serving::SystemNetwork for_transfers() {
    return {.delays = &preparation_->system().delays, .rank = rank_ ? &*rank_ : nullptr};
  }
  const Notices& notices() const { return preparation_->notices(); }

  /// Returns when the jobs have ended. Throws Error (stuck) on all ranks if one has not. Collective.
  std::vector<serving::JobEnd> ends_of_jobs(parallel::Communicator& world) const {
    std::vector<serving::JobEnd> ends;
    if (!rank_) return ends;
    auto unfinished = static_cast<std::int64_t>(rank_->npus().num_unfinished());
    world.sum(std::span(&unfinished, 1));
    if (unfinished > 0)
      throw Error(ErrorCode::stuck,
                  fmt::format("{} of the jobs beside serving do not finish", counted(unfinished, "NPU")));
    std::vector<std::int64_t> finish(preparation_->num_npus());
    for (const npu::NpuRecord& record : rank_->npus().records()) finish[record.npu.index()] = record.finish.ps();
    world.maximum(finish);
    for (const config::Job& job : configuration_.workload.jobs) {
      serving::JobEnd& end = ends.emplace_back(serving::JobEnd{job.name, job.start, job.start, job.num_npus()});
      for (const NpuId npu : job.npus()) end.finish = std::max(end.finish, Time::from_ps(finish[npu.index()]));
    }
    return ends;
  }

 private:
  static std::vector<HostedNpu> hosts_of(const serving::Scenario& scenario, int num_ranks) {
    const auto ranks = serving::ranks_of_instances(scenario, num_ranks);
    std::vector<HostedNpu> hosts;
    for (std::size_t i = 0; i < ranks.size(); ++i)
      for (const NpuId npu : scenario.instances[i].npus) hosts.emplace_back(npu, ranks[i]);
    return hosts;
  }

  const config::Configuration& configuration_;
  std::unique_ptr<Preparation> preparation_;
  std::optional<model::RankModel> rank_;
};

}  // namespace

serving::Results simulate_requests(const config::ServingConfiguration& configuration, const serving::Scenario& scenario,
                                   const serving::Control& control, parallel::Communicator& world) {
  if (!configuration.serving.transfer.over_network && !configuration.serving.step.over_network)
    return serving::simulate(scenario, world, control);
  SharedNetwork network(configuration.system, scenario, world);
  serving::Results results = serving::simulate(scenario, world, control, network.for_transfers());
  results.jobs = network.ends_of_jobs(world);
  return results;
}

}  // namespace orrery::run
