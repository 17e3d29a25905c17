#include "orrery/campaign/setup.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "orrery/base/error.hpp"
#include "orrery/campaign/draws.hpp"

namespace orrery::campaign {
namespace {

[[noreturn]] void refuse(std::string key, std::string_view found, std::string_view expected = {}) {
  throw Error(ErrorCode::bad_input, {.key = std::move(key)}, found, expected);
}

void validate_tiers(const std::vector<Tier>& tiers) {
  for (std::size_t i = 0; i < tiers.size(); ++i) {
    const Tier& tier = tiers[i];
    const std::string key = fmt::format("campaign.checkpoint.{}", i);
    if (tier.interval <= 0) refuse(key + ".interval", "found no work between two checkpoints", "a step or more");
    if (i > 0 && tier.interval % tiers[i - 1].interval != 0)
      refuse(key + ".interval", fmt::format("{} s of work is no multiple of {} s, the interval of tier {}",
                                            seconds(tier.interval), seconds(tiers[i - 1].interval), i - 1));
    if (std::max(tier.durable, tier.stall) > tier.interval + tier.stall && tier.durable > 0)
      refuse(key, fmt::format("a checkpoint takes {:.4g} s to be durable, but one is due every {:.4g} s",
                              seconds(tier.durable), seconds(tier.interval + tier.stall)));
  }
}

void validate_groups(const HostNumbers& hosts) {
  std::vector<bool> has_group(hosts.total(), false);
  for (const auto& group : hosts.groups)
    for (const std::uint32_t host : group) {
      if (host >= hosts.total())
        refuse("campaign.hosts.group", fmt::format("found host {}", host), fmt::format("0 to {}", hosts.total() - 1));
      if (has_group[host]) refuse("campaign.hosts.group", fmt::format("host {} is in two groups", host), "one group");
      has_group[host] = true;
    }
}

void validate_processes(const std::vector<Process>& processes, const HostNumbers& hosts) {
  for (std::size_t f = 0; f < processes.size(); ++f) {
    const Process& process = processes[f];
    const std::string key = fmt::format("campaign.failures.{}", f);
    const bool is_of_hosts = process.per == Per::npu || process.per == Per::host;
    if (process.per == Per::group && hosts.group_size == 0 && hosts.groups.empty())
      refuse(key + ".per", "found group, but there are no groups", "campaign.hosts.group");
    if (process.weibull_shape > 0 && !is_of_hosts)
      refuse(key + ".distribution", "found weibull for a group or the job, which have no age", "per: npu or host");
  }
}

/// Throws for a number of replicas with which the job may go on, but whose speed is not known.
void validate_elastic(const Elastic& elastic, std::uint32_t active) {
  if (elastic.hosts_per_replica == 0 || active == 0) return;
  const std::uint32_t most = (active - 1) / elastic.hosts_per_replica;
  for (std::uint32_t replicas = elastic.least; replicas <= most; ++replicas)
    if (std::ranges::find(elastic.speeds, replicas, &std::pair<std::uint32_t, double>::first) == elastic.speeds.end())
      refuse("campaign.elastic.speeds", fmt::format("no speed of {} replicas is given", replicas),
             fmt::format("speeds of {} to {} replicas", elastic.least, most));
}

void validate_repair(const RepairRules& repair) {
  const bool is_empty = repair.manual.is_zero() && repair.escalate == 0 && repair.automatic_fails == 0 &&
                        repair.manual_fails == 0 && repair.retire_failures == 0;
  if (!repair.any && !is_empty)
    refuse("campaign.repair.auto", "the key is missing, and repair or retire has other keys", "the time of a repair");
}

}  // namespace

double Setup::failure_rate(const Process& process) const {
  const double of_unit = process.rate / (seconds(day));
  if (process.per == Per::job) return of_unit;
  if (process.per == Per::group) {
    if (!hosts.groups.empty()) return of_unit * static_cast<double>(hosts.groups.size());
    return hosts.group_size == 0 ? 0 : of_unit * ((hosts.active + hosts.group_size - 1) / hosts.group_size);
  }
  const double factor = process.counts_bad ? 1 + hosts.bad_fraction * (hosts.bad_factor - 1) : 1;
  return of_unit * hosts.active * factor * (process.per == Per::npu ? npus_per_host : 1);
}

double Setup::failure_rate() const {
  double rate = 0;
  for (const Process& process : processes) rate += failure_rate(process);
  return rate;
}

void Setup::validate() const {
  if (work >= longest && duration >= longest)
    refuse("campaign.duration", "neither duration nor work is given", "one of them");
  if (processes.size() > most_processes)
    refuse("campaign.failures", fmt::format("found {} processes", processes.size()),
           fmt::format("{} at the most", most_processes));
  validate_tiers(tiers);
  validate_groups(hosts);
  validate_processes(processes, hosts);
  validate_elastic(elastic, hosts.active);
  validate_repair(repair);
  for (const Recorded& failure : recorded)
    if (failure.host >= static_cast<std::int64_t>(hosts.total()))
      refuse("campaign.recorded", fmt::format("found host {}", failure.host),
             fmt::format("0 to {}", hosts.total() - 1));
}

}  // namespace orrery::campaign
