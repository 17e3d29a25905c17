#include "orrery/run/jobs_alone.hpp"

#include <algorithm>
#include <memory>
#include <span>

#include "orrery/run/preparation.hpp"
#include "orrery/run/simulation.hpp"
#include "orrery/workload/figures.hpp"

namespace orrery::run {

std::vector<results::JobDescription> describe_jobs(const config::Configuration& configuration) {
  std::vector<results::JobDescription> jobs;
  for (const config::Job& job : configuration.workload.jobs) {
    jobs.push_back({job.name, job.npus(), job.start, job.iterations});
    const auto& generated = job.workload.generated;
    if (generated && !generated->parallel.is_inference())
      jobs.back().tokens = static_cast<double>(workload::figures(*generated).tokens);
  }
  return jobs;
}

const workload::Description* workload_of_all(const config::Configuration& configuration) {
  const config::Workload* of_all = &configuration.workload;
  if (!configuration.workload.jobs.empty()) {
    const config::Job& job = configuration.workload.jobs.front();
    if (job.num_npus() != configuration.topology().num_npus() || job.start > Time::zero()) return nullptr;
    of_all = &job.workload;
  }
  return of_all->generated ? &*of_all->generated : nullptr;
}

std::optional<Time> simulate_alone(const config::Configuration& configuration,
                                   const std::function<bool()>& stop_requested, parallel::Communicator& world,
                                   std::vector<results::JobDescription>& jobs) {
  config::Configuration alone = configuration;
  alone.run.record_load = false;
  alone.workload.is_one_of_jobs = jobs.size() > 1;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    alone.workload.jobs = {configuration.workload.jobs[j]};
    const auto preparation = prepare(alone, world);
    const auto simulation = simulate(*preparation, alone.run, stop_requested, world);
    if (simulation->stopped_at()) return simulation->stopped_at();
    std::vector<NpuId> members = jobs[j].npus;
    std::ranges::sort(members);
    std::int64_t end = jobs[j].start.ps();
    for (const auto& npu : simulation->model().npus().records())
      if (std::ranges::binary_search(members, npu.npu)) end = std::max(end, npu.finish.ps());
    world.maximum(std::span(&end, 1));
    jobs[j].alone = Time::from_ps(end) - jobs[j].start;
  }
  return {};
}

}  // namespace orrery::run
