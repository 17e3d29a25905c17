#include "formula_slowdown.hpp"

#include <algorithm>
#include <utility>

#include "orrery/base/error.hpp"

namespace orrery::cluster {

std::vector<std::uint32_t> FormulaSlowdown::sharers(const std::vector<std::uint32_t>& links) const {
  std::vector<std::uint32_t> jobs;
  for (const std::uint32_t link : links)
    if (const auto found = jobs_of_.find(link); found != jobs_of_.end())
      jobs.insert(jobs.end(), found->second.begin(), found->second.end());
  return jobs;
}

std::vector<std::uint32_t> FormulaSlowdown::begin(std::uint32_t job, const Place&,
                                                  const std::vector<std::uint32_t>& leaves) {
  std::vector<std::uint32_t> links;
  if (rules_.links == SharedLinks::one_link)
    links = {0};
  else if (leaves.size() > 1)
    links = leaves;
  for (const std::uint32_t link : links) jobs_of_[link].insert(job);
  auto others = sharers(links);
  links_of_[job] = std::move(links);
  return others;
}

std::vector<std::uint32_t> FormulaSlowdown::end(std::uint32_t job) {
  const auto found = links_of_.find(job);
  const auto links = std::move(found->second);
  links_of_.erase(found);
  for (const std::uint32_t link : links) jobs_of_[link].erase(job);
  return sharers(links);
}

double FormulaSlowdown::factor(std::uint32_t job) {
  double worst = 0;
  for (const std::uint32_t link : links_of_.at(job)) {
    double others = 0;
    for (const std::uint32_t other : jobs_of_.at(link))
      if (other != job) others += share(other);
    worst = std::max(worst, others);
  }
  const double found = 1 + share(job) * worst;
  ensure(found >= 1 - 1e-12, "sharing links makes no job faster");
  return found;
}

}  // namespace orrery::cluster
