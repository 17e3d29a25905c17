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
  for (std::size_t f = 0; f < processes.size(); ++f)
    if (processes[f].per == Per::group && hosts.group_size == 0 && hosts.groups.empty())
      refuse(fmt::format("campaign.failures.{}.per", f), "found group, but there are no groups",
             "campaign.hosts.group");
  for (const Recorded& failure : recorded)
    if (failure.host >= static_cast<std::int64_t>(hosts.total()))
      refuse("campaign.recorded", fmt::format("found host {}", failure.host),
             fmt::format("0 to {}", hosts.total() - 1));
}

}  // namespace orrery::campaign
