#include "orrery/serving/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "orrery/base/error.hpp"
#include "orrery/base/faults.hpp"
#include "orrery/pdes/kernel.hpp"
#include "serving_model.hpp"
#include "shared_model.hpp"

namespace orrery::serving {
namespace {

/// Collects what the ranks know on rank 0.
class Collection {
 public:
  Collection(const Scenario& scenario, ServingModel& model, parallel::Communicator& world)
      : scenario_(scenario), model_(model), world_(world) {}

  Results collect() {
    collect_requests();
    collect_instances();
    collect_steps();
    for (auto& instance : model_.instances())
      for (Scheduler& member : instance->members())
        for (std::size_t i = 0; i < TokenGaps::num_bins; ++i) results_.gaps.counts()[i] += member.gaps().counts()[i];
    world_.sum(results_.gaps.counts());
    return std::move(results_);
  }

 private:
  void collect_requests() {
    std::vector<RequestRecord> mine;
    for (auto& instance : model_.instances())
      for (Scheduler& member : instance->members()) {
        mine.insert(mine.end(), member.finished().begin(), member.finished().end());
        member.finished() = {};
      }
    for (const auto& [request, time] : model_.late_arrivals()) mine.push_back({.id = request, .arrival = time});
    for (const auto& [request, time] : model_.transfer_times()) mine.push_back({.id = request, .transfer_time = time});
    const auto all = world_.gather(std::span<const RequestRecord>(mine), Rank(0));
    if (!world_.is_root()) return;
    results_.requests.resize(scenario_.requests.size());
    for (std::uint32_t id = 0; id < scenario_.requests.size(); ++id) {
      results_.requests[id].id = id;
      if (scenario_.requests[id].after == Request::nobody)
        results_.requests[id].arrival = scenario_.requests[id].arrival;
    }
    for (const RequestRecord& record : all) results_.requests[record.id].merge(record);
    for (const RequestRecord& record : results_.requests) results_.end = std::max(results_.end, record.last);
  }

  void collect_instances() {
    std::vector<InstanceRecord> mine;
    for (auto& instance : model_.instances()) {
      instance->close_records();
      for (Scheduler& member : instance->members()) mine.push_back(member.record());
    }
    results_.instances = world_.gather(std::span<const InstanceRecord>(mine), Rank(0));
  }

  void collect_steps() {
    if (!scenario_.options.record_steps) return;
    std::vector<StepRecord> steps;
    std::vector<StepItem> items;
    std::vector<std::uint32_t> preempted;
    for (auto& instance : model_.instances()) {
      steps.insert(steps.end(), instance->steps.begin(), instance->steps.end());
      items.insert(items.end(), instance->items.begin(), instance->items.end());
      preempted.insert(preempted.end(), instance->preempted.begin(), instance->preempted.end());
    }
    results_.steps = world_.gather(std::span<const StepRecord>(steps), Rank(0));
    results_.items = world_.gather(std::span<const StepItem>(items), Rank(0));
    results_.preempted = world_.gather(std::span<const std::uint32_t>(preempted), Rank(0));
  }

  const Scenario& scenario_;
  ServingModel& model_;
  parallel::Communicator& world_;
  Results results_;
};

/// Throws Error (stuck) on all ranks if requests have not ended. Collective.
void require_all_ended(const Scenario& scenario, ServingModel& model, const Results& results,
                       parallel::Communicator& world) {
  std::string mine;
  for (const auto& instance : model.instances())
    for (const Scheduler& member : instance->members())
      if (member.num_waiting() + member.num_running() > 0)
        mine += fmt::format("\n  instance {}: {}", member.number(), member.describe_waiting());
  std::vector<std::size_t> sizes;
  const auto bytes = world.gather_bytes(std::as_bytes(std::span(mine)), Rank(0), sizes);
  world.agree([&] {
    if (!world.is_root()) return;
    const auto left = std::ranges::count_if(results.requests, [](const auto& r) { return r.last < Time::zero(); });
    if (left == 0) return;
    throw Error(ErrorCode::stuck, fmt::format("{} of {} requests do not end: nothing is under way that would wake an "
                                              "instance{}",
                                              left, scenario.requests.size(),
                                              std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())));
  });
}

}  // namespace

std::vector<Role> Scenario::roles() const {
  std::vector<Role> roles;
  for (const InstanceSpec& instance : instances) roles.insert(roles.end(), instance.members, instance.role);
  return roles;
}

Results simulate(const Scenario& scenario, parallel::Communicator& world, const Control& control,
                 const SystemNetwork& network) {
  model::RankModel* const rank = network.rank;
  pdes::Options options;
  if (rank != nullptr) options = rank->kernel_options(world);
  ServingModel model(scenario, world, options.num_lps, rank == nullptr ? network.delays : nullptr);
  std::optional<SharedModel> shared;
  if (rank != nullptr) shared.emplace(*rank, model);
  options = rank != nullptr ? SharedModel::joined(std::move(options), model.kernel_options(world))
                            : model.kernel_options(world);
  options.watchdog_seconds = control.watchdog_seconds;
  options.progress = control.progress;
  if (control.stop_requested)
    options.stop_mode = [&] { return control.stop_requested() ? pdes::StopMode::now : pdes::StopMode::none; };
  pdes::Kernel kernel(world, shared ? static_cast<pdes::Model&>(*shared) : model, std::move(options));
  std::optional<SchedulerOfRank> of_rank;
  const auto start = std::chrono::steady_clock::now();
  if (rank != nullptr) {
    of_rank.emplace(kernel, model.first_lp());
    rank->start(*of_rank);
    model.send_over(*model::links_of(*rank));
  }
  model.start(kernel);
  kernel.run();
  if (kernel.stopped_at())
    throw Error(ErrorCode::interrupted, fmt::format("stopped on request at simulated {} ps; no results are written. "
                                                    "The same command runs again from the start",
                                                    kernel.stopped_at()->ps()));
  Results results = Collection(scenario, model, world).collect();
  results.wall_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  auto events = static_cast<std::int64_t>(kernel.statistics().events);
  world.sum(std::span(&events, 1));
  results.events = static_cast<std::uint64_t>(events);
  require_all_ended(scenario, model, results, world);
  return results;
}

}  // namespace orrery::serving
