#include "orrery/study/campaign_tables.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>

#include <fmt/format.h>

#include "orrery/base/text.hpp"
#include "orrery/campaign/formulas.hpp"
#include "table_columns.hpp"

namespace orrery::study {
namespace {

using campaign::Period;
using CampaignRow = campaign::Row;
using CampaignState = campaign::State;
using results::FileTable;

FileTable replications_table(const CampaignResults& found) {
  const auto& rows = found.rows;
  FileTable table{"/campaign/replications", "one row for each replication", {}};
  std::int64_t number = 0;
  table.columns.push_back(
      counts("number", "1", "number of the replication", rows, [&](const CampaignRow&) { return number++; }));
  table.columns.push_back(counts("time", "ns", "wall time", rows, &CampaignRow::time));
  for (std::size_t s = 0; s < campaign::num_states; ++s)
    table.columns.push_back(counts(std::string(campaign::state_names[s]), "ns", "time in this state", rows,
                                   [&](const CampaignRow& row) { return row.times[s]; }));
  const std::pair<const char*, std::uint64_t CampaignRow::*> all[] = {
      {"failures", &CampaignRow::failures}, {"selections", &CampaignRow::selections}, {"spares", &CampaignRow::spares},
      {"retired", &CampaignRow::retired},   {"restarts", &CampaignRow::restarts},     {"unseen", &CampaignRow::unseen}};
  for (const auto& [name, member] : all) table.columns.push_back(counts(name, "1", name, rows, member));
  table.columns.push_back(counts("depleted", "1", "1: no host was left", rows, &CampaignRow::depleted));
  table.columns.push_back(numbers("allocated", "s", "time of active and standby hosts", rows, &CampaignRow::allocated));
  table.columns.push_back(numbers("ettr", "1", "useful over wall time", rows, &CampaignRow::ettr));
  table.columns.push_back(numbers("goodput", "1", "useful over allocated host time", rows,
                                  [&](const CampaignRow& row) { return row.goodput(found.setup.hosts.active); }));
  return table;
}

FileTable summary_table(const CampaignResults& found) {
  const auto& all = found.estimates;
  FileTable table{"/campaign/summary", "means over the replications that were not depleted",
                  summary_columns(campaign::metrics(), all)};
  table.columns.push_back(numbers("p05", "1", "quantile of 5 %", all, &campaign::Estimate::low));
  table.columns.push_back(numbers("p95", "1", "quantile of 95 %", all, &campaign::Estimate::high));
  return table;
}

/// Returns the mean over all replications of what a process cost in a state, in ns.
double mean_cost(const std::vector<CampaignRow>& rows, std::size_t process, std::size_t state) {
  double sum = 0;
  for (const CampaignRow& row : rows)
    sum += static_cast<double>(row.by_process[process * campaign::num_states + state]);
  return rows.empty() ? 0 : sum / static_cast<double>(rows.size());
}

FileTable lost_table(const CampaignResults& found) {
  const auto& processes = found.setup.processes;
  FileTable table{"/campaign/lost", "what each process cost in a replication, on the mean", {}};
  table.columns.push_back(texts("process", "name", processes, &campaign::Process::name));
  table.columns.push_back(numbers("failures", "1", "failures", processes, [&](const campaign::Process& process) {
    double sum = 0;
    for (const CampaignRow& row : found.rows)
      sum += static_cast<double>(row.failures_of[static_cast<std::size_t>(&process - processes.data())]);
    return sum / static_cast<double>(found.rows.size());
  }));
  for (std::size_t s = 1; s < campaign::num_states; ++s)
    table.columns.push_back(numbers(std::string(campaign::state_names[s]), "s", "wall time in this state", processes,
                                    [&](const campaign::Process& process) {
                                      const auto f = static_cast<std::size_t>(&process - processes.data());
                                      return mean_cost(found.rows, f, s) * 1e-9;
                                    }));
  return table;
}

FileTable timeline_table(const CampaignResults& found) {
  const auto& periods = found.timeline;
  FileTable table{"/campaign/timeline", "what replication 0 did; running periods include checkpoints", {}};
  table.columns.push_back(counts("begin", "ns", "begin", periods, &Period::begin));
  table.columns.push_back(counts("end", "ns", "end", periods, &Period::end));
  table.columns.push_back(texts("state", "what the job did", periods, [](const Period& period) {
    return std::string(campaign::state_names[static_cast<std::size_t>(period.state)]);
  }));
  table.columns.push_back(texts("process", "cause; empty: none", periods, [&](const Period& period) {
    return period.process < 0 ? std::string() : found.setup.processes[static_cast<std::size_t>(period.process)].name;
  }));
  table.columns.push_back(counts("hosts", "1", "active hosts", periods, &Period::hosts));
  return table;
}

FileTable times_table(const CampaignResults& found) {
  std::vector<std::pair<std::string, double>> all = {{"step", campaign::seconds(found.job.times.step)}};
  for (std::size_t i = 0; i < found.setup.tiers.size(); ++i) {
    const campaign::Tier& tier = found.setup.tiers[i];
    all.emplace_back(fmt::format("checkpoint.{}.interval", i), campaign::seconds(tier.interval));
    all.emplace_back(fmt::format("checkpoint.{}.stall", i), campaign::seconds(tier.stall));
    all.emplace_back(fmt::format("checkpoint.{}.durable", i), campaign::seconds(tier.durable));
    all.emplace_back(fmt::format("checkpoint.{}.read", i), campaign::seconds(tier.read));
  }
  FileTable table{"/campaign/times", "times of the job that the campaign is made of", {}};
  table.columns.push_back(texts("time", "what takes it", all, [](const auto& pair) { return pair.first; }));
  table.columns.push_back(
      numbers("seconds", "s", "how long it takes", all, [](const auto& pair) { return pair.second; }));
  return table;
}

FileTable forms_table(const CampaignResults& found) {
  auto forms = closed_forms(found.setup);
  if (found.job.parameters > 0)
    for (std::size_t i = 0; i < found.file.configuration.campaign.tiers.size(); ++i)
      forms.push_back({fmt::format("checkpoint.{}.bytes", i), "B", "size of a checkpoint",
                       found.job.parameters * found.file.configuration.campaign.tiers[i].bytes_per_parameter});
  FileTable table{"/campaign/closed_forms", "what formulas say of the campaign", {}};
  table.columns.push_back(texts("name", "name", forms, &ClosedForm::name));
  table.columns.push_back(texts("unit", "unit", forms, &ClosedForm::units));
  table.columns.push_back(texts("description", "what it is", forms, &ClosedForm::description));
  table.columns.push_back(numbers("value", "1", "value", forms, &ClosedForm::value));
  return table;
}

FileTable optimum_table(const CampaignResults& found) {
  std::vector<std::pair<std::string, const campaign::Tried*>> rows;
  for (const auto& [what, search] : found.searches)
    for (const campaign::Tried& tried : search.tried) rows.emplace_back(what, &tried);
  const auto add = [&](const char* name, const char* unit, const char* text, auto value) {
    return numbers(name, unit, text, rows, [&](const auto& row) { return value(*row.second); });
  };
  using campaign::Tried;
  FileTable table{"/campaign/optimum", "settings that --optimise tried, with common draws", {}};
  table.columns.push_back(texts("varied", "what was varied", rows, [](const auto& row) { return row.first; }));
  table.columns.push_back(add("interval", "s", "work between two checkpoints of the first tier", [](const Tried& t) {
    return t.setup.tiers.empty() ? 0 : campaign::seconds(t.setup.tiers.front().interval);
  }));
  table.columns.push_back(add("standby", "1", "standbys", [](const Tried& t) { return t.setup.hosts.standby; }));
  table.columns.push_back(add("ettr", "1", "mean", [](const Tried& t) { return t.ettr.mean; }));
  table.columns.push_back(
      add("ettr_half_width", "1", "of the 95 % interval", [](const Tried& t) { return t.ettr.half_width; }));
  table.columns.push_back(add("goodput", "1", "mean", [](const Tried& t) { return t.goodput.mean; }));
  table.columns.push_back(
      add("goodput_half_width", "1", "of the 95 % interval", [](const Tried& t) { return t.goodput.half_width; }));
  table.columns.push_back(add("difference", "1", "mean difference from the best in the objective",
                              [](const Tried& t) { return t.difference.mean; }));
  table.columns.push_back(add("difference_half_width", "1", "of the 95 % interval of paired differences",
                              [](const Tried& t) { return t.difference.half_width; }));
  table.columns.push_back(add("best", "1", "1: the best", [](const Tried& t) { return t.is_best; }));
  table.columns.push_back(
      add("as_good", "1", "1: the difference is within its interval", [](const Tried& t) { return t.is_as_good; }));
  table.columns.push_back(add("closed_form", "1", "ETTR by renewal for crashes alone", [](const Tried& t) {
    return t.setup.tiers.empty() || t.setup.failure_rate() <= 0 ? 0 : campaign::exact_ettr(t.setup);
  }));
  return table;
}

/// Adds what holds for all processes that strike the job at a constant rate.
void add_checkpoint_forms(const campaign::Setup& setup, double mtbf, std::vector<ClosedForm>& forms) {
  const campaign::Tier& tier = setup.tiers.front();
  const double stall = campaign::seconds(tier.stall), interval = campaign::seconds(tier.interval);
  const double restart = campaign::mean_restart(setup);
  forms.push_back({"young", "s", "interval of Young", campaign::young_interval(mtbf, stall)});
  forms.push_back({"daly_first", "s", "interval of Daly, first order", campaign::daly_first_interval(mtbf, stall)});
  forms.push_back({"daly", "s", "interval of Daly, higher order", campaign::daly_interval(mtbf, stall)});
  forms.push_back({"optimum", "s", "exact best interval", campaign::optimum_interval(mtbf, stall)});
  forms.push_back({"restart", "s", "mean time from a failure to the first new work", restart});
  forms.push_back({"exact_ettr", "1", "effective training time ratio by renewal", campaign::exact_ettr(setup)});
  forms.push_back({"approximate_ettr", "1", "effective training time ratio if failures are rare",
                   campaign::approximate_ettr(mtbf, interval, stall, restart)});
  if (setup.work < campaign::longest)
    forms.push_back({"exact_time", "s", "mean time of the work by renewal",
                     campaign::seconds(setup.work) / campaign::exact_ettr(setup)});
}

}  // namespace

std::vector<ClosedForm> closed_forms(const campaign::Setup& setup) {
  std::vector<ClosedForm> forms;
  const double rate = setup.failure_rate();
  if (rate <= 0) return forms;
  const double mtbf = 1 / rate;
  forms.push_back({"mtbf", "s", "mean time between failures of the job", mtbf});
  if (!setup.tiers.empty()) add_checkpoint_forms(setup, mtbf, forms);
  if (setup.processes.size() == 1 && setup.processes.front().weibull_shape > 0) {
    const auto& process = setup.processes.front();
    const double hosts = setup.failure_rate(process) * campaign::seconds(campaign::day) / process.rate;
    forms.push_back(
        {"first_failure", "s", "mean time to the first failure",
         campaign::first_failure(campaign::seconds(campaign::day) / process.rate, hosts, process.weibull_shape)});
  }
  if (setup.repair.any) {
    double failures = 0;
    for (const auto& process : setup.processes)
      if (process.repairs && process.per != campaign::Per::job) failures += setup.failure_rate(process);
    const double in_repair =
        failures * (setup.repair.automatic.average() + setup.repair.escalate * setup.repair.manual.average());
    forms.push_back({"in_repair", "1", "hosts in repair, the mean", in_repair});
    forms.push_back({"in_repair_99", "1", "hosts in repair, the quantile of 99 %",
                     static_cast<double>(campaign::hosts_in_repair(in_repair, 0.99))});
  }
  return forms;
}

results::TableFile campaign_file_of(const CampaignResults& found, const std::string& command_line) {
  results::TableFile content{.format = "orrery-campaign",
                             .inputs = found.file.configuration.inputs,
                             .attributes = {{"command_line", command_line}},
                             .groups = {{"/campaign", "a training job over weeks"}},
                             .tables = {}};
  for (auto* const table : {replications_table, summary_table, lost_table, timeline_table, times_table, forms_table})
    content.tables.push_back(table(found));
  if (!found.searches.empty()) content.tables.push_back(optimum_table(found));
  return content;
}

}  // namespace orrery::study
