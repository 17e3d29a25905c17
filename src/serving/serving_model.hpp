#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "instance.hpp"
#include "orrery/network/delay_model.hpp"
#include "orrery/network/model.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/pdes/model.hpp"
#include "orrery/pdes/options.hpp"
#include "orrery/pdes/scheduler.hpp"
#include "orrery/serving/simulate.hpp"
#include "router.hpp"
#include "step_traffic.hpp"
#include "transfer_parts.hpp"
#include "transfer_ports.hpp"

namespace orrery::serving {

/// Where the router is.
enum class Routing : std::uint8_t {
  inside,      ///< there is one logical process: the router is part of it
  from_start,  ///< each rank computes all choices before the run
  by_server,   ///< a logical process of rank 0
};

/// The logical processes of one rank. Instances are clients; the router and the ports of transfers are servers.
class ServingModel final : public pdes::Model {
 public:
  /// `first_lp`: the id of its first logical process. `delays`: null unless transfers take their own time in the
  /// network of the system.
  ServingModel(const Scenario& scenario, parallel::Communicator& world, std::uint32_t first_lp = 0,
               const network::DelayModel* delays = nullptr);

  pdes::Options kernel_options(const parallel::Communicator& world) const;
  /// Schedules the first events.
  void start(pdes::Scheduler& scheduler);
  /// Lets transfers be messages over the links of this rank from now on.
  void send_over(network::MessageNetwork& links) { links_ = &links; }
  LpId first_lp() const { return LpId(base_); }
  /// Says whether an NPU belongs to an instance of this rank.
  bool has_npu(LpId npu) const { return local_of_npu_.contains(npu.value()); }
  /// Takes in that a message of a transfer is at an NPU of this rank, or at its destination.
  void take_delivery(const pdes::Event& event);
  /// Returns the instances of this rank.
  std::vector<std::unique_ptr<Instance>>& instances() { return instances_; }
  /// Returns the arrivals that this rank decided: (request, time).
  std::vector<std::pair<std::uint32_t, Time>> late_arrivals() const;
  /// Returns (request, time from the wish to the end) of the transfers to instances here.
  const std::vector<std::pair<std::uint32_t, Time>>& transfer_times() const { return transfer_times_; }

  void handle(const pdes::Event& event) override;
  void settle(Time now, pdes::Stage stage) override;
  bool admit(pdes::Event&) override { return true; }
  pdes::Awaited awaits(LpId) const override { return {.here = false, .sends = false, .replies = true}; }
  void proceed(LpId) override {}
  void receive(Rank, std::span<const std::byte>) override {}
  pdes::LookaheadBounds lookahead() override;
  Time pending_reply(Rank) const override { return Time::max(); }
  std::string status() const override;

 private:
  enum Kind : std::uint16_t {
    wake = 1,
    deliver,
    deliver_decode,
    finished,
    waiting,
    running,
    pull,
    arrive,
    release,
    ask,
    layer_due,
    traffic_wake,
    ask_due,
    prefilling
  };
  /// A transfer that the home of a request is asked for.
  struct Asked {
    std::uint32_t request = 0, tokens = 0;
    std::uint32_t member = 0;  ///< member of the home
    std::uint32_t to = 0;      ///< number of the scheduler that asks
  };
  /// Messages of a transfer that are still to come, or to be taken in by their destination.
  struct Open {
    std::uint32_t messages = 0, member = 0;
    Time asked = {};
    Time last_sent = {};  ///< when the last of those that have come was sent
  };
  /// A transfer by layers at the home of a request.
  struct Layers {
    Asked asked;
    std::uint32_t next = 0;  ///< next layer
  };
  /// A transfer at the ports.
  struct PortTransfer {
    std::uint32_t home = 0, to = 0, tokens = 0;
    std::uint32_t next = 0;  ///< next layer
    Time arrival = {};       ///< last arrival of those before it
  };
  /// What has come for an instance at the time at hand.
  struct Inbox {
    std::vector<Delivery> deliveries;
    std::vector<Arrived> arrived;
    std::vector<Asked> asked;
    std::vector<std::uint32_t> layers;  ///< requests of which a layer is complete
    bool is_touched = false;
  };

  void handle_router(const pdes::Event& event);
  void handle_ports(const pdes::Event& event);
  void take_ask(const pdes::Event& event, Inbox& inbox);
  void settle_instance(std::uint32_t local, Time now);
  void settle_router(Time now);
  void run_alone(std::uint32_t local, Time now);
  void moment_alone(Instance& instance, std::uint32_t local, Time now);
  void send_messages(std::uint32_t local, Time now, const Asked& asked);
  void send_parts(Time now, std::uint32_t request, const std::vector<TransferPart>& parts);
  void begin_layers(std::uint32_t local, Time now, const Asked& asked);
  void make_traffic(std::uint32_t local, const InstanceSpec& spec);
  void end_traffic(std::uint32_t local, Time now);
  void begin_traffic(std::uint32_t local, Time now);
  bool take_step_message(std::uint32_t local, const pdes::Event& event, const network::Message& message);
  bool sends_over_links() const { return links_ != nullptr && scenario_.options.transfer.over_network; }
  void send_layers(std::uint32_t local, Time now, std::uint32_t request);
  void handle_layer_at_ports(const pdes::Event& event);
  void ask_home(Time time, std::uint32_t request, const PortTransfer& of);
  void end_transfer(Time end, Time taken, std::uint32_t request, const PortTransfer& of);
  Inbox& touched_inbox(std::uint32_t local);
  Time next_alone(const Instance& instance, std::uint32_t local) const;
  void send_effects(std::uint32_t local, Time now);
  /// Sends an event to the router or the ports, which are on rank 0.
  void call(std::uint32_t local, LpId server, Time time, Kind kind, std::uint32_t node, std::uint64_t detail);
  pdes::Event event_of(Time time, pdes::Stage stage, LpId source, LpId target, Kind kind, std::uint32_t node,
                       std::uint64_t detail);
  void schedule_arrival();
  std::uint32_t lp_of_member(std::uint32_t member) const { return lp_of_member_[member]; }
  /// Returns the logical process of an instance, and the other way round.
  LpId lp_of(std::uint32_t number) const { return LpId(base_ + number); }
  std::uint32_t number_of(LpId lp) const { return lp.value() - base_; }
  LpId router_lp() const { return lp_of(num_lps_); }
  LpId ports_lp() const { return lp_of(num_lps_ + 1); }

  const Scenario& scenario_;
  TransferParts parts_;
  Rank here_;
  std::uint32_t base_;                        // the id of the first logical process
  const network::DelayModel* delays_;         // null: transfers do not take their own time in the network
  network::MessageNetwork* links_ = nullptr;  // null: they are no messages over links
  Routing routing_ = Routing::by_server;
  bool has_decode_ = false, needs_reports_ = false;
  std::uint32_t num_lps_ = 0;                         // of instances
  std::vector<std::uint32_t> lp_of_member_;           // [schedulers]
  std::vector<std::uint32_t> first_member_;           // [instances] the number of its first scheduler
  std::vector<Rank> rank_of_lp_;                      // [instances]
  std::uint32_t first_lp_ = 0;                        // of this rank
  std::vector<std::unique_ptr<Instance>> instances_;  // of this rank
  std::vector<Inbox> inbox_;                          // likewise
  std::vector<std::vector<Delivery>> known_;          // likewise, if choices are known from the start
  std::vector<std::size_t> next_known_;
  std::vector<std::uint32_t> touched_;   // of this rank, at the time at hand
  std::vector<std::uint64_t> sequence_;  // [instances of this rank, router, ports]
  std::unique_ptr<Router> router_;
  std::vector<Report> reports_;
  std::vector<std::pair<Time, std::vector<Report>>> reports_inside_;  // that are on their way to a router inside
  std::optional<TransferPorts> ports_;
  std::vector<std::pair<std::uint32_t, Time>> wished_, transfer_times_;
  std::unordered_map<std::uint32_t, std::uint32_t> local_of_npu_;  // NPUs of instances here
  std::unordered_map<std::uint32_t, std::uint64_t> messages_of_;   // by NPU: how many it has sent
  std::unordered_map<std::uint32_t, Open> leaving_, coming_;       // transfers from and to instances here, by request
  std::unordered_map<std::uint32_t, Instance::Prefill> prefills_;  // of transfers by layers, by request
  std::unordered_map<std::uint32_t, Layers> layers_;               // layers that are still to leave, by request
  std::unordered_map<std::uint32_t, PortTransfer> at_ports_;       // transfers by layers, at the ports
  std::multiset<Time> next_sends_;                                 // when instances here send what they were asked for
  Time lead_;  // the part of a transfer's latency that passes before a call leaves, so that others know of it
  std::vector<std::unique_ptr<StepTraffic>> traffic_;  // [instances of this rank]; null: steps are not over links
  Instance::Effects effects_;
  Time scheduled_arrival_ = Time::max();
  pdes::Scheduler* kernel_ = nullptr;
};

}  // namespace orrery::serving
