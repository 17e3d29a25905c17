#include "campaign_trial.hpp"

#include <algorithm>

#include "orrery/base/text.hpp"
#include "orrery/campaign/campaign.hpp"
#include "orrery/cluster/cluster.hpp"
#include "orrery/cost/cost.hpp"
#include "orrery/run/collect.hpp"
#include "orrery/study/campaign_times.hpp"

namespace orrery::study {

std::map<std::string_view, double> campaign_metrics(const config::Configuration& configuration, double step_s) {
  std::map<std::string_view, double> found;
  if (!configuration.campaign.is_given() || configuration.campaign.processes.empty()) return found;
  config::CampaignFile file{configuration, true, true};
  auto& options = file.configuration.campaign;
  if (!options.step.time) options.step.time = campaign::nanoseconds(step_s);
  const auto alone = parallel::make_serial();
  CampaignCommand command;
  command.output = "campaign-trial";
  command.keeps_times = false;
  const JobTimes job = times_of(file, command, *alone);
  const auto setup = campaign::setup_of(options, job.times, job.num_npus);
  const auto rows = options.sampling.accuracy > 0 ? campaign::simulate_until(setup, options.sampling.accuracy, *alone)
                                                  : campaign::simulate(setup, options.sampling.replications, *alone);
  const auto estimates = campaign::estimates(rows, setup);
  const auto mean = [&](std::string_view name) {
    for (std::size_t i = 0; i < estimates.size(); ++i)
      if (campaign::metrics()[i].name == name) return estimates[i].mean;
    ensure(false, "a campaign has this metric");
    return 0.0;
  };
  found["ettr"] = mean("ettr");
  found["goodput"] = mean("goodput");
  found["lost_npu_hours"] = mean("lost_npu_hours");
  found["campaign_time"] = mean("time");
  if (job.times.tokens > 0)
    found["effective_tokens_per_s"] = job.times.tokens / campaign::seconds(job.times.step) * mean("ettr");
  if (const auto hardware = run::hardware_of(configuration)) {
    const auto hour = cost::cost_of_step(*hardware, 3600, 1);
    const double hours = mean("allocated") / 3600 * setup.npus_per_host / hardware->num_npus;
    if (hour.price) found["campaign_cost"] = hours * *hour.price;
    if (hour.energy) found["campaign_energy"] = hours * *hour.energy;
  }
  return found;
}

bool has_cluster_alone(const config::Configuration& configuration) {
  const auto& workload = configuration.workload;
  return configuration.cluster.is_given() && !workload.generated && workload.traces.empty() && workload.jobs.empty();
}

std::map<std::string_view, double> cluster_metrics(const config::Configuration& configuration) {
  auto options = configuration.cluster;
  if (options.rules.sharing == cluster::Sharing::simulate ||
      std::ranges::any_of(options.arrivals.classes, [](const auto& c) { return !c.workload.empty(); }))
    throw Error(ErrorCode::bad_input, configuration.place_of("cluster"),
                "found jobs whose steps are simulated in a study",
                "classes with times, and cluster.sharing: none or formula");
  if (options.places.npus == 0) options.places.npus = topology::Topology(configuration.dimensions).num_npus();
  if (options.arrivals.columns.empty()) options.arrivals.columns = "acme";
  cluster::validate(options, false);
  std::string trace;
  if (!options.arrivals.trace.empty())
    trace = read_text(options.arrivals.trace, configuration.place_of("cluster.trace.file"));
  const auto alone = parallel::make_serial();
  const auto found = cluster::run(options, trace, {}, nullptr, *alone);
  const auto mean = [&](auto value) {
    double sum = 0;
    for (const auto& summary : found.summaries) sum += value(summary);
    return sum / static_cast<double>(found.summaries.size());
  };
  using Summary = cluster::Summary;
  return {{"job_wait", mean([](const Summary& s) { return s.all.wait.mean; })},
          {"job_wait_p95", mean([](const Summary& s) { return s.all.wait.p95; })},
          {"jct", mean([](const Summary& s) { return s.all.jct.mean; })},
          {"jct_p95", mean([](const Summary& s) { return s.all.jct.p95; })},
          {"job_slowdown", mean([](const Summary& s) { return s.all.slowdown.mean; })},
          {"cluster_utilisation", mean([](const Summary& s) { return s.utilisation; })},
          {"cluster_fragmentation", mean([](const Summary& s) { return s.fragmentation; })},
          {"cluster_makespan", mean([](const Summary& s) { return s.makespan; })}};
}

}  // namespace orrery::study
