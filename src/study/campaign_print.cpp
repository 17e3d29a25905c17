#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "orrery/base/text.hpp"
#include "orrery/campaign/formulas.hpp"
#include "orrery/study/campaign_tables.hpp"
#include "readable_seconds.hpp"

namespace orrery::study {
namespace {

using CampaignRow = campaign::Row;
using CampaignState = campaign::State;

constexpr std::size_t most_causes = 7;
constexpr CampaignState shown_states[] = {CampaignState::lost, CampaignState::detect,  CampaignState::select,
                                          CampaignState::wait, CampaignState::restart, CampaignState::slow,
                                          CampaignState::pause};

const campaign::Estimate& find(const CampaignResults& found, std::string_view name) {
  const auto all = campaign::metrics();
  const auto at = std::ranges::find(all, name, &campaign::Metric::name);
  return found.estimates[static_cast<std::size_t>(at - all.begin())];
}

void print_job(const CampaignResults& found) {
  const auto& hosts = found.setup.hosts;
  fmt::print("{} of {} NPUs, {}; step {}\n", counted(hosts.active, "host"), found.setup.npus_per_host,
             counted(hosts.standby, "standby", "standbys"), readable_seconds(campaign::seconds(found.job.times.step)));
  for (std::size_t i = 0; i < found.setup.tiers.size(); ++i) {
    const auto& tier = found.setup.tiers[i];
    fmt::print("checkpoint {} every {}: stall {}, durable {}, read {}\n", i,
               readable_seconds(campaign::seconds(tier.interval)), readable_seconds(campaign::seconds(tier.stall)),
               readable_seconds(campaign::seconds(std::max(tier.durable, tier.stall))),
               readable_seconds(campaign::seconds(tier.read)));
  }
}

void print_ratios(const CampaignResults& found) {
  const auto& setup = found.setup;
  const auto& ettr = find(found, "ettr");
  const auto& failures = find(found, "failures");
  const auto& time = find(found, "time");
  fmt::print("{} of {}: {:.1f} failures, {} between two\n", counted(found.rows.size(), "replication"),
             readable_seconds(time.mean), failures.mean,
             failures.mean > 0 ? readable_seconds(time.mean / failures.mean) : std::string("-"));
  const bool has_form = setup.failure_rate() > 0 && !setup.tiers.empty();
  fmt::print("ETTR {:.4f} +- {:.4f} (95 %){}\n", ettr.mean, ettr.half_width,
             has_form ? fmt::format(", {} {:.4f}", campaign::has_exact_ettr(setup) ? "exact" : "crashes alone",
                                    campaign::exact_ettr(setup))
                      : "");
  const auto& goodput = find(found, "goodput");
  fmt::print("goodput {:.4f} +- {:.4f}", goodput.mean, goodput.half_width);
  const double tokens = found.job.times.tokens;
  if (tokens > 0) {
    const double full = tokens / campaign::seconds(found.job.times.step);
    fmt::print("; {} of {} tokens/s", with_prefix(full * ettr.mean), with_prefix(full));
  }
  fmt::print("\n");
  if (has_form && setup.tiers.front().stall > 0) {
    const double mtbf = 1 / setup.failure_rate(), stall = campaign::seconds(setup.tiers.front().stall);
    fmt::print("best interval for crashes: Young {}, Daly {}, exact {}\n",
               readable_seconds(campaign::young_interval(mtbf, stall)),
               readable_seconds(campaign::daly_interval(mtbf, stall)),
               readable_seconds(campaign::optimum_interval(mtbf, stall)));
  }
  if (found.usd_per_npu_hour) {
    const double hours = find(found, "allocated").mean / 3600 * setup.npus_per_host;
    fmt::print("cost {} USD{}\n", with_prefix(hours * *found.usd_per_npu_hour),
               found.joules_per_npu_hour
                   ? fmt::format(", energy {} MWh", with_prefix(hours * *found.joules_per_npu_hour / 3.6e9))
                   : "");
  }
}

/// Prints shares of the wall time by cause, the largest first.
void print_losses(const CampaignResults& found) {
  const auto& processes = found.setup.processes;
  double time = 0;
  for (const CampaignRow& row : found.rows) time += static_cast<double>(row.time);
  const auto share = [&](std::size_t f, CampaignState state) {
    double sum = 0;
    for (const CampaignRow& row : found.rows)
      sum += static_cast<double>(row.by_process[f * campaign::num_states + static_cast<std::size_t>(state)]);
    return time > 0 ? sum / time : 0;
  };
  std::vector<std::size_t> order(processes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto whole = [&](std::size_t f) {
    double sum = 0;
    for (const CampaignState state : shown_states) sum += share(f, state);
    return sum;
  };
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return whole(a) > whole(b); });
  const auto line = [&](std::string_view name, auto value) {
    fmt::print("  {:<15.15}", name);
    for (const CampaignState state : shown_states) fmt::print(" {:>8}", value(state));
    fmt::print("\n");
  };
  line("of wall time",
       [](CampaignState state) { return std::string(campaign::state_names[static_cast<std::size_t>(state)]); });
  const std::size_t shown = order.size() > most_causes + 1 ? most_causes : order.size();
  for (std::size_t i = 0; i < shown; ++i)
    line(processes[order[i]].name, [&](CampaignState state) { return fmt::format("{:.5f}", share(order[i], state)); });
  if (shown < order.size())
    line(fmt::format("{} others", order.size() - shown), [&](CampaignState state) {
      double sum = 0;
      for (std::size_t i = shown; i < order.size(); ++i) sum += share(order[i], state);
      return fmt::format("{:.5f}", sum);
    });
  fmt::print("checkpoints stop the job for {:.5f} of the wall time\n", find(found, "stall").mean);
}

void print_search(const CampaignResults& found, const std::string& what, const campaign::Search& search) {
  const campaign::Tried& best = search.best();
  const auto value = [&](const campaign::Tried& tried) {
    if (what == "standby") return fmt::to_string(tried.setup.hosts.standby);
    return fmt::to_string(tried.setup.tiers.front().interval / found.job.times.step);
  };
  std::vector<std::string> as_good;
  for (const campaign::Tried& tried : search.tried)
    if (tried.is_as_good && !tried.is_best) as_good.push_back(value(tried));
  const auto& objective = what == "standby" ? best.goodput : best.ettr;
  fmt::print("best {} {}{}: {} {:.4f} +- {:.4f}{}\n", what, value(best), what == "interval" ? " steps" : "",
             what == "standby" ? "goodput" : "ETTR", objective.mean, objective.half_width,
             search.is_at_edge ? "; it is at the edge of what was tried" : "");
  if (as_good.size() > 1) fmt::print("  as good within the error: {} to {}\n", as_good.front(), as_good.back());
  if (as_good.size() == 1) fmt::print("  as good within the error: {}\n", as_good.front());
}

}  // namespace

void print_campaign(const CampaignResults& found) {
  print_job(found);
  print_ratios(found);
  if (!found.setup.processes.empty()) print_losses(found);
  for (const auto& [what, search] : found.searches) print_search(found, what, search);
}

}  // namespace orrery::study
