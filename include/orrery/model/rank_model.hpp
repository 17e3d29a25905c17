#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "orrery/base/overrun.hpp"
#include "orrery/communicator/communicators.hpp"
#include "orrery/memory/memory_servers.hpp"
#include "orrery/network/analytical.hpp"
#include "orrery/network/model.hpp"
#include "orrery/network/network_records.hpp"
#include "orrery/npu/npus.hpp"
#include "orrery/npu/run_context.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/pdes/kernel.hpp"
#include "orrery/pdes/load_recorder.hpp"
#include "orrery/pdes/model.hpp"

namespace orrery::model {

/// All logical processes of one rank: its NPUs, and the communicators, memory servers and links that it hosts. It hands
/// each event to the logical process that it is for, by the ranges of ids in npu::RunContext.
class RankModel final : public pdes::Model {
 public:
  explicit RankModel(npu::RunContext run);
  ~RankModel() override;

  /// Returns what may pass between this rank's logical processes and those of the others, and with which least delays.
  /// O(nodes of the distinct programs + members of communicators). Collective.
  pdes::Options kernel_options(parallel::Communicator& world) const;
  /// Schedules what happens at time 0. `load`: takes note of collectives and outlives the model; null: nothing does.
  void start(pdes::Scheduler& kernel, pdes::LoadRecorder* load = nullptr);
  /// Ends the run at `now` although NPUs are not done: their times count up to it.
  void stop(Time now);

  // See pdes::Model.
  void handle(const pdes::Event& event) override;
  void settle(Time now, pdes::Stage stage) override;
  bool admit(pdes::Event& event) override;
  void unpack(pdes::Event& event, std::span<const std::byte> bytes) override;
  pdes::Awaited awaits(LpId npu) const override;
  void proceed(LpId npu) override;
  void receive(Rank from, std::span<const std::byte> message) override;
  pdes::LookaheadBounds lookahead() override;
  Time pending_reply(Rank to) const override;
  std::string status() const override;

  const npu::RunContext& run() const { return run_; }
  const network::Analytical& network() const { return network_; }
  const npu::Npus& npus() const;
  const communicator::Communicators& communicators() const;
  const memory::MemoryServers& memory_servers() const;

  /// Returns what links of this rank have done, with what is recorded of messages and queues. There are none but in
  /// networks that simulate links.
  network::NetworkRecords network_records() const;
  /// Returns the earliest overrun that this rank met, which may be of another rank's NPU.
  const std::optional<Overrun>& overrun() const { return overrun_; }

 private:
  friend class SavedRank;
  friend std::vector<network::CreditWait> credit_waits_of(const RankModel& model);
  friend network::MessageNetwork* links_of(RankModel& model);
  struct Parts;

  // Only the kernel calls these.
  pdes::LookaheadBound lookahead_of_cell(std::uint32_t cell) override;
  void prefetch(const pdes::Event& event) const override;
  pdes::Scope scope(const pdes::Event& event) const override;

  npu::RunContext run_;
  network::Analytical network_;
  std::unique_ptr<const network::SimulatedNetwork> simulated_network_;  ///< none but where links are simulated
  std::vector<std::uint32_t> cell_of_;                                  ///< run_.cell_of
  std::optional<Overrun> overrun_;
  pdes::LoadRecorder* load_ = nullptr;  ///< null: nothing is recorded
  std::unique_ptr<Parts> parts_;
};

/// Returns the links of the model's rank, after `start`; null where links are not simulated.
network::MessageNetwork* links_of(RankModel& model);

/// Returns which packets of the model's rank wait for credits when no event is left.
std::vector<network::CreditWait> credit_waits_of(const RankModel& model);

}  // namespace orrery::model
