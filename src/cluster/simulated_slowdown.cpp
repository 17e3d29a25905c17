#include "simulated_slowdown.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "orrery/base/error.hpp"

namespace orrery::cluster {

void StepMemo::learn_alone(const std::vector<PlacedJob>& jobs) {
  std::vector<PlacedJob> unknown;
  for (const PlacedJob& job : jobs)
    if (!alone_.contains(job) && std::ranges::find(unknown, job) == unknown.end()) unknown.push_back(job);
  if (unknown.empty()) return;
  auto found = level_.alone(unknown);
  for (std::size_t i = 0; i < unknown.size(); ++i) {
    // Placements with one signature take one time, to the last bit.
    const double seconds = seconds_.try_emplace(level_.signature({unknown[i]}), found[i].seconds).first->second;
    found[i].seconds = seconds;
    alone_.emplace(std::move(unknown[i]), std::move(found[i]));
  }
}

void StepMemo::learn_together(const std::vector<std::vector<PlacedJob>>& components) {
  std::vector<Jobs> unknown, keys;
  std::vector<std::vector<double>> alone;
  for (const Jobs& jobs : components) {
    Jobs key = level_.signature(jobs);
    if (together_.contains(key) || std::ranges::find(keys, key) != keys.end()) continue;
    keys.push_back(std::move(key));
    unknown.push_back(jobs);
    alone.emplace_back();
    for (const PlacedJob& job : jobs) alone.back().push_back(alone_.at(job).seconds);
  }
  if (unknown.empty()) return;
  if (together_.size() + unknown.size() > most_)
    throw Error(
        ErrorCode::bad_input, {.key = "cluster.sharing"},
        fmt::format("more than {} components would be simulated (limit); {} are known", most_, together_.size()),
        "formula, or fewer placements");
  auto factors = level_.together(unknown, alone);
  for (std::size_t i = 0; i < unknown.size(); ++i) together_[keys[i]].factors = std::move(factors[i]);
}

const std::vector<double>& StepMemo::factors(const std::vector<PlacedJob>& component) {
  Known& known = together_.at(level_.signature(component));
  ++known.times;
  return known.factors;
}

SharingFound StepMemo::found(std::span<const std::string> names) const {
  SharingFound result;
  result.placements = alone_.size();
  for (const auto& [jobs, known] : together_) {
    Component component{{}, {}, known.factors, known.times};
    for (const PlacedJob& job : jobs) {
      component.classes.push_back(names[job.job_class]);
      component.npus.push_back(static_cast<std::uint32_t>(job.npus.size()));
    }
    result.components.push_back(std::move(component));
  }
  return result;
}

SimulatedSlowdown::SimulatedSlowdown(StepMemo& memo, std::vector<std::uint32_t> class_of, std::span<const Job> jobs,
                                     std::vector<double> packed)
    : memo_(memo), class_of_(std::move(class_of)), jobs_(jobs), packed_(std::move(packed)) {}

std::vector<std::uint32_t> SimulatedSlowdown::begin(std::uint32_t job, const Place& place,
                                                    const std::vector<std::uint32_t>&) {
  running_[job] = {
      {class_of_[jobs_[job].job_class], {place.npus.begin(), place.npus.begin() + jobs_[job].npus}}, 1, false};
  touched_.insert(job);
  return {};
}

std::vector<std::uint32_t> SimulatedSlowdown::end(std::uint32_t job) {
  touched_.erase(job);
  if (running_.at(job).is_known) {
    for (const std::uint32_t other : component_of(job))
      if (other != job) touched_.insert(other);
    for (const std::uint32_t link : memo_.alone(running_.at(job).placed).links) jobs_of_link_[link].erase(job);
  }
  running_.erase(job);
  return {};
}

std::vector<std::uint32_t> SimulatedSlowdown::component_of(std::uint32_t job) const {
  std::set<std::uint32_t> found = {job};
  std::vector<std::uint32_t> next = {job};
  while (!next.empty()) {
    const std::uint32_t at = next.back();
    next.pop_back();
    for (const std::uint32_t link : memo_.alone(running_.at(at).placed).links)
      for (const std::uint32_t other : jobs_of_link_.at(link))
        if (found.insert(other).second) next.push_back(other);
  }
  return {found.begin(), found.end()};
}

std::vector<PlacedJob> SimulatedSlowdown::placed(const std::vector<std::uint32_t>& jobs) const {
  std::vector<PlacedJob> result;
  for (const std::uint32_t job : jobs) result.push_back(running_.at(job).placed);
  return result;
}

std::vector<std::uint32_t> SimulatedSlowdown::settle() {
  std::vector<PlacedJob> begun;
  for (const std::uint32_t job : touched_)
    if (!running_.at(job).is_known) begun.push_back(running_.at(job).placed);
  memo_.learn_alone(begun);
  for (const std::uint32_t job : touched_) {
    Running& running = running_.at(job);
    if (std::exchange(running.is_known, true)) continue;
    for (const std::uint32_t link : memo_.alone(running.placed).links) jobs_of_link_[link].insert(job);
  }
  std::set<std::vector<std::uint32_t>> components;
  for (const std::uint32_t job : std::exchange(touched_, {})) components.insert(component_of(job));
  std::vector<std::vector<PlacedJob>> shared;
  for (const auto& jobs : components)
    if (jobs.size() > 1) shared.push_back(placed(jobs));
  memo_.learn_together(shared);
  std::vector<std::uint32_t> changed;
  for (const auto& jobs : components) {
    const auto factors = jobs.size() > 1 ? memo_.factors(placed(jobs)) : std::vector<double>{1};
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      Running& running = running_.at(jobs[i]);
      running.factor = factors[i] * memo_.alone(running.placed).seconds / packed_[jobs[i]];
      changed.push_back(jobs[i]);
    }
  }
  return changed;
}

}  // namespace orrery::cluster
