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
#include "orrery/npu/npus.hpp"
#include "orrery/npu/run_context.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/pdes/kernel.hpp"
#include "orrery/pdes/model.hpp"

namespace orrery::model {

/// All logical processes of one rank: its NPUs, and the communicators, memory servers and links that it hosts.
/// npu::RunContext has the ranges of their ids.
class RankModel final : public pdes::Model {
 public:
  explicit RankModel(npu::RunContext run);
  ~RankModel() override;

  /// Delays between this rank's LPs and those of the others, for the kernel; collective.
  pdes::Options kernel_options(parallel::Communicator& world) const;
  /// Schedules what happens at time 0.
  void start(pdes::Scheduler& kernel);
  /// The run ends at `now` although NPUs are not done: their times count up to it.
  void stop(Time now);

  void handle(const pdes::Event& event) override;
  void settle(Time now) override;
  bool admit(pdes::Event& event) override;
  void unpack(pdes::Event& event, std::span<const std::byte> bytes) override;
  pdes::Awaited awaits(LpId npu) const override;
  void proceed(LpId npu) override;
  void receive(Rank from, std::span<const std::byte> message) override;
  pdes::Horizon horizon() override;
  Time pending_reply(Rank to) const override;
  std::string status() const override;

  std::size_t num_npus() const { return run_.npus.size(); }
  const npu::RunContext& run() const { return run_; }
  const network::Analytical& network() const { return network_; }
  const npu::Npus& npus() const;
  const communicator::Communicators& communicators() const;
  const memory::MemoryServers& memory_servers() const;

  /// Of this rank's links that carried anything; none but in the congestion-aware network.
  std::vector<network::LinkRecord> link_records() const;
  /// The earliest one that was met on this rank, be it of another rank's NPU.
  const std::optional<Overrun>& overrun() const { return overrun_; }

 private:
  struct Parts;

  npu::RunContext run_;
  network::Analytical network_;
  std::unique_ptr<const network::SimulatedNetwork> simulated_network_;  ///< none but where links are simulated
  std::optional<Overrun> overrun_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace orrery::model
