#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "orrery/model/rank_model.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/pdes/model.hpp"
#include "orrery/pdes/options.hpp"
#include "orrery/pdes/scheduler.hpp"
#include "serving_model.hpp"

namespace orrery::serving {

/// The kernel as the links and the NPUs of a rank see it: without the events of servers that are none of theirs.
class SchedulerOfRank final : public pdes::Scheduler {
 public:
  /// `end`: no logical process of theirs has this id, or a higher one.
  SchedulerOfRank(pdes::Scheduler& kernel, LpId end) : kernel_(kernel), end_(end) {}

  void schedule(const pdes::Event& event) override { kernel_.schedule(event); }
  void send(Rank to, pdes::Event event, std::span<const std::byte> more) override { kernel_.send(to, event, more); }
  void resume(const pdes::Event& event) override { kernel_.resume(event); }
  bool is_certain(Time time, pdes::Awaited awaited) const override { return kernel_.is_certain(time, awaited); }
  bool advance(LpId client, Time time) override { return kernel_.advance(client, time); }
  void wait_until_certain(LpId client) override { kernel_.wait_until_certain(client); }
  void post(Rank to, std::span<const std::byte> message) override { kernel_.post(to, message); }
  void visit_server_events(const std::function<void(const pdes::Event&)>& visit) const override {
    kernel_.visit_server_events([&](const pdes::Event& event) {
      if (event.target < end_) visit(event);
    });
  }
  std::vector<pdes::Event> withdraw(const std::function<bool(const pdes::Event&)>& is_wanted,
                                    std::function<void(Time)> give_back) override {
    return kernel_.withdraw([&](const pdes::Event& event) { return event.target < end_ && is_wanted(event); },
                            std::move(give_back));
  }
  Time now() const override { return kernel_.now(); }
  std::uint32_t depth(LpId lp) const override { return kernel_.depth(lp); }
  void raise_depth(LpId lp, std::uint32_t depth) override { kernel_.raise_depth(lp, depth); }

 private:
  pdes::Scheduler& kernel_;
  LpId end_;
};

/// The logical processes of one rank that share a network: NPUs with jobs and the links between all NPUs, and beside
/// them the instances, the router and the ports. NPUs of instances have no nodes; what links bring them is for their
/// instances.
class SharedModel final : public pdes::Model {
 public:
  /// Both outlive it. The ids of the serving processes follow those of the rank.
  SharedModel(model::RankModel& rank, ServingModel& serving) : rank_(rank), serving_(serving) {}

  /// Joins what both parts may send. `of_rank`: RankModel::kernel_options.
  static pdes::Options joined(pdes::Options of_rank, const pdes::Options& of_serving);

  void handle(const pdes::Event& event) override;
  void prefetch(const pdes::Event& event) const override;
  pdes::Scope scope(const pdes::Event& event) const override;
  void settle(Time now, pdes::Stage stage) override;
  bool admit(pdes::Event& event) override;
  void unpack(pdes::Event& event, std::span<const std::byte> bytes) override;
  pdes::Awaited awaits(LpId client) const override;
  void proceed(LpId client) override;
  void receive(Rank from, std::span<const std::byte> message) override;
  pdes::LookaheadBounds lookahead() override;
  Time pending_reply(Rank to) const override;
  std::string status() const override;

 private:
  bool is_of_serving(LpId lp) const { return lp >= serving_.first_lp(); }
  bool is_delivery(const pdes::Event& event) const;
  // RankModel lets only the kernel call some of these.
  pdes::Model& of_rank() const { return rank_; }

  model::RankModel& rank_;
  ServingModel& serving_;
};

}  // namespace orrery::serving
