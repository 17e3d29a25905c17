#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "devices.hpp"
#include "listed_reductions.hpp"
#include "orrery/network/flow_run.hpp"
#include "orrery/pdes/model.hpp"
#include "orrery/pdes/options.hpp"

namespace orrery::network {

/// The nodes of one rank and the flows of its hosts. Every rank knows all flows.
class FlowModel final : public pdes::Model, private PacketUser {
 public:
  /// The scenario and the router outlive it, and so does the kernel that `start` gets.
  FlowModel(const FlowScenario& scenario, const PacketRouter& router, std::span<const Rank> of_node, Rank here,
            EventOrder order);

  void start(pdes::Scheduler& kernel);
  const PacketDevices& devices() const { return *devices_; }
  std::span<const FlowTimes> times() const { return times_; }  ///< [flows] as far as this rank knows
  /// Returns the times of the reductions as far as this rank knows.
  std::span<const ReductionTimes> reductions() const { return reductions_.times(); }

  void handle(const pdes::Event& event) override { devices_->serve(event); }
  void prefetch(const pdes::Event& event) const override { devices_->prefetch(event); }
  void settle(Time, pdes::Stage) override { devices_->settle(); }
  bool admit(pdes::Event&) override;
  void unpack(pdes::Event& event, std::span<const std::byte> bytes) override { devices_->unpack(event, bytes); }
  pdes::Awaited awaits(LpId) const override { return {}; }
  void proceed(LpId) override {}
  void receive(Rank, std::span<const std::byte>) override;
  pdes::LookaheadBounds lookahead() override { return {}; }
  Time pending_reply(Rank) const override { return Time::max(); }
  std::string status() const override;

 private:
  // PacketUser.
  void received(const FlowId& flow) override;
  void acknowledged(const FlowId& flow) override;
  void told_acknowledged(const FlowId& flow) override;
  void reduced(std::uint32_t tree, std::uint32_t host, std::uint64_t number, const LastArrival& last) override;
  void wake(const pdes::Event& event) override;
  void begin(std::uint32_t flow);
  void end(std::uint32_t flow);

  const FlowScenario& scenario_;
  const PacketRouter& router_;
  std::span<const Rank> of_node_;
  Rank here_;
  EventOrder order_;
  std::vector<std::vector<std::uint32_t>> followers_;  // [flows]
  std::vector<std::uint32_t> num_awaited_;             // [flows]
  std::vector<FlowTimes> times_;                       // [flows]
  ListedReductions reductions_;
  std::vector<bool> is_told_;  // [flows] the receiver knows that all is acknowledged
  pdes::Scheduler* kernel_ = nullptr;
  std::unique_ptr<PacketDevices> devices_;
};

}  // namespace orrery::network
